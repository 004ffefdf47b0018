/* Reload of the configuration on SIGHUP. */
#pragma once

struct command_line;
struct host;

/* Reads file, environment and arguments again, applies the live keys, and reports in the log and as
 * an event which keys were applied and which need a restart. On any error nothing changes. */
void reload(int argc, char *const *argv, struct command_line *line, struct host *host);

/* Sets the log level by its name in the configuration. */
void reload_log_level(const char *name);
