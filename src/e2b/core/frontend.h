/* E2B's protocol as a front end of the HTTP server: control API, envd, and ports of sandboxes. */
#pragma once

#include "http/frontend.h"

struct e2b;
struct err;
struct host;

/* Opens what E2B's clients keep below the state directory, and finishes what a killed daemon left.
 */
int e2b_open(struct host *host, const char *state_dir, struct e2b **ret, struct err *err);

/* The HTTP server must be stopped. Accepts NULL. */
void e2b_close(struct e2b *e2b);

/* The context is the struct e2b. */
extern const struct frontend_ops e2b_frontend;
