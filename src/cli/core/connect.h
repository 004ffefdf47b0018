/* Connections to the daemon that HOLT_HOST names, or else to that of this machine. */
#pragma once

#include <stdbool.h>

struct command;
struct holt;

struct connection {
    struct holt *holt; /* NULL: not connected */
};

/* Connects; starts the daemon of this machine if it does not run. Returns 0, or -1 after a report.
 */
int connection_open(struct connection *ret);

/* Connects for a command without operands, whose options it parses as command_parse does. Returns
 * false with the exit status if help was printed or something is wrong. */
bool connection_open_for(const struct command *command, void *options, int argc, char **argv,
                         struct connection *ret, int *ret_status);

/* Connects to a running daemon. Returns 0, or -1 without a report. */
int connection_open_quietly(struct connection *ret);

/* Closes the connection, if there is one. */
void connection_close(struct connection *connection);
