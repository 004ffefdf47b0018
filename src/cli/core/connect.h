/* Getting hold of a daemon: the one HOLT_HOST names, else the one of this machine. */
#pragma once

struct holt;

struct connection {
    struct holt *holt;
    char *host; /* for further connections to the same daemon */
};

/* Connects, and starts the daemon of this machine if need be. 0, or -1 after having reported why.
 */
int connection_open(struct connection *ret);

/* The same with a daemon that is there already, and without a word. */
int connection_open_quietly(struct connection *ret);
void connection_close(struct connection *connection);
