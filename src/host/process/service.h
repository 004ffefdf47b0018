/* Launched services: processes that outlive their client, with a port that is forwarded to the host
 * for as long as they run. */
#pragma once

#include <stdint.h>

struct err;
struct process_spec;
struct record;
struct sandbox;

/* Starts a detached process and, if it has a port, forwards that. The record is with a reference.
 * Fails as sandbox_exec and sandbox_forward do; then nothing is left of it. */
int service_launch(struct sandbox *sandbox, const struct process_spec *spec, struct record **ret,
                   struct err *err);

enum readiness {
    SERVICE_READY,
    SERVICE_STARTING, /* not within the time */
    SERVICE_ENDED,    /* it is over, and will not be started again */
};

struct readiness_spec {
    const char
        *http_path; /* ready when a GET of it succeeds; NULL: when its port takes connections */
    uint64_t timeout_ms;
    int watch_fd; /* a connection that may hang up; -1: none */
};

/* Waits for a service with a port. -ECANCELED when the peer of watch_fd has hung up. */
int service_wait_ready(struct sandbox *sandbox, struct record *record,
                       const struct readiness_spec *spec, enum readiness *ret, struct err *err);

/* Ends the forwards of services that are over, or of all. */
void services_tend(struct sandbox *sandbox);
void services_close(struct sandbox *sandbox);

/* Forwards again what an earlier life of the daemon did, on the same ports where they are free. */
void services_recover(struct sandbox *sandbox);
