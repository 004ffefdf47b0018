/* What a client asks of files, put to a worker of the sandbox. */
#pragma once

struct call;
struct err;
struct file_call;
struct file_call_request;
struct sandbox;

/* The sandbox, with a reference, and the call that has its answers; the caller drops whichever of
 * the two is there, also after an error, the call first. */
int file_ask(const struct call *call, const struct file_call_request *wish,
             struct sandbox **ret_sandbox, struct file_call **ret, struct err *err);
