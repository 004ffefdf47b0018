/* What a template says of its sandboxes, and E2B's clients take for granted. */
#pragma once

#include <jansson.h>

struct err;
struct host;
struct sandbox;
struct sandbox_limits;

/* Puts the template's environment (the client's values take precedence), user and working directory
 * into the metadata of a new sandbox, and its resources into the limits. */
int e2b_start_note(struct host *host, const char *template, json_t *metadata,
                   struct sandbox_limits *limits, struct err *err);

/* Starts the template's start command in a sandbox that has just been booted, with the metadata's
 * environment. */
int e2b_start_begin(struct host *host, struct sandbox *sandbox, const json_t *metadata,
                    struct err *err);

/* Waits until the start command is ready, if the template has a ready command. watch_fd hangs up
 * when the client goes away. */
int e2b_start_await(struct host *host, struct sandbox *sandbox, const json_t *metadata,
                    int watch_fd, struct err *err);

/* Starts the start command again if it has ended since it was started (by a rollback, a stop or an
 * error), and waits until it is ready. It also waits if another request has just started it.
 * Returns 1 if it is ready, or 0 if there was nothing to do; negative with err set. */
int e2b_start_again(struct host *host, struct sandbox *sandbox, const json_t *metadata,
                    int watch_fd, struct err *err);

/* One after the other. */
int e2b_start_run(struct host *host, struct sandbox *sandbox, const json_t *metadata, int watch_fd,
                  struct err *err);
