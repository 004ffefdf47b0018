/* The thread that copies the bytes of all ports. */
#pragma once

struct config;
struct err;
struct ports;

int ports_start(const struct config *config, struct ports **ret, struct err *err);

/* Ends the thread, after the last guest is gone. Accepts NULL. */
void ports_stop(struct ports *ports);

/* Frees the ports, which must outlive the reactor. Accepts NULL. */
void ports_free(struct ports *ports);
