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

/* One after the other. */
int e2b_start_run(struct host *host, struct sandbox *sandbox, const json_t *metadata, int watch_fd,
                  struct err *err);
