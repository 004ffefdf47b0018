/* A tool at work, as a stream: what it has to say, then its result. */
#pragma once

#include <jansson.h>

struct call;
struct err;
struct stream;
struct tool_call_request;

/* Opens the stream. The request points into the message, which the stream keeps. */
int tool_stream_open(const struct call *call, const json_t *message,
                     const struct tool_call_request *wish, struct stream **ret, struct err *err);
