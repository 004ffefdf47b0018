/* Connections to the daemon that HOLT_HOST names, or else to that of this machine. */
#pragma once

struct holt;

struct connection {
    struct holt *holt; /* NULL: not connected */
};

/* Connects; starts the daemon of this machine if it does not run. Returns 0, or -1 after a report.
 */
int connection_open(struct connection *ret);

/* Connects to a running daemon. Returns 0, or -1 without a report. */
int connection_open_quietly(struct connection *ret);

/* Closes the connection, if there is one. */
void connection_close(struct connection *connection);
