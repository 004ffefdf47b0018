/* The events of a tool call as a stream: progress, then the result. */
#pragma once

struct call;
struct err;
struct stream;
struct tool_request;

/* Opens the stream, which keeps the message that the request points into. */
int tool_stream_open(const struct call *call, const char *sandbox,
                     const struct tool_request *request, struct stream **ret, struct err *err);
