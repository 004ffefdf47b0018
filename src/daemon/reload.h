/* SIGHUP: the configuration is read again. */
#pragma once

struct command_line;
struct host;

/* Reads file, environment and words again, applies what may change while the daemon runs and says
 * in the log, and as an event, what that was and which keys need a restart. When anything is wrong
 * everything stays as it is. */
void reload(int argc, char *const *argv, struct command_line *line, struct host *host);

/* Sets what is logged, by the word of the configuration. */
void reload_log_level(const char *name);
