/* Services: detached processes with a port that is forwarded to the host while they run. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "host/process/process.h"

struct err;
struct record;
struct sandbox;

/* Starts a detached process, forwards its port (if it has one), and returns its record with a
 * reference. Fails like sandbox_exec and sandbox_forward, and leaves nothing then. */
int service_launch(struct sandbox *sandbox, const struct process_spec *spec, struct record **ret,
                   struct err *err);

enum readiness {
    SERVICE_READY,
    SERVICE_STARTING, /* not ready when the time was over */
    SERVICE_ENDED,    /* ended, and will not be restarted; or is_first_run, and the run ended */
};

struct readiness_spec {
    const char
        *http_path; /* ready when a GET of it succeeds; NULL: when the port accepts connections */
    uint64_t timeout_ms;
    int watch_fd;      /* a connection that may hang up; -1: none */
    bool is_first_run; /* does not wait for a restart */
};

/* Waits until a service with a port is ready: it or a descendant listens there, and answers. If it
 * is SERVICE_STARTING, err has the reason. -ECANCELED if the peer of watch_fd hung up. */
int service_wait_ready(struct sandbox *sandbox, struct record *record,
                       const struct readiness_spec *spec, enum readiness *ret, struct err *err);

/* What is known of a server that front ends start when they need it: its last run. */
struct server_run {
    char next_key[PROCESS_TAG_MAX]; /* idempotency key of the next run, so that there is only one */
    bool is_known;                  /* there was a run; what follows is about the last one */
    bool is_over;
    uint64_t started_ms;    /* since 1970 */
    struct process_end end; /* valid if is_over */
};

/* Finds the last run of the server of this name. */
void server_find(struct sandbox *sandbox, const char *name, struct server_run *ret);

/* Returns whether the run ended because of Holt or an error: neither by itself with success, nor
 * because a client ended it. */
bool server_was_lost(const struct server_run *run);

enum { SERVER_REASON_SIZE = 300 };

/* Returns a variable (NAME=VALUE) with which the next run learns why the last one ended. */
const char *server_reason(const struct server_run *run, char text[static SERVER_REASON_SIZE]);

/* Closes the forwards of ended services. */
void services_prune(struct sandbox *sandbox);

/* Closes the forwards of all services. */
void services_close(struct sandbox *sandbox);

/* Opens the forwards of a previous daemon again, on the same host ports if they are free. */
void services_recover(struct sandbox *sandbox);
