/* One command of a shell as a stream: started, its output, its end. */
#pragma once

struct call;
struct err;
struct shell_command;
struct stream;

/* In the sandbox of this id or name. When the client goes away before the end, the command is
 * interrupted. */
int shell_stream_run(const struct call *call, const char *sandbox,
                     const struct shell_command *command, struct stream **ret, struct err *err);
