/* Services: detached processes with a port that is forwarded to the host while they run. */
#pragma once

#include <stdint.h>

struct err;
struct process_spec;
struct record;
struct sandbox;

/* Starts a detached process, forwards its port (if it has one), and returns its record with a
 * reference. Fails like sandbox_exec and sandbox_forward, and leaves nothing then. */
int service_launch(struct sandbox *sandbox, const struct process_spec *spec, struct record **ret,
                   struct err *err);

enum readiness {
    SERVICE_READY,
    SERVICE_STARTING, /* not ready when the time was over */
    SERVICE_ENDED,    /* ended, and will not be restarted */
};

struct readiness_spec {
    const char
        *http_path; /* ready when a GET of it succeeds; NULL: when the port accepts connections */
    uint64_t timeout_ms;
    int watch_fd; /* a connection that may hang up; -1: none */
};

/* Waits until a service with a port is ready: it or a descendant listens there, and answers. If it
 * is SERVICE_STARTING, err has the reason. -ECANCELED if the peer of watch_fd hung up. */
int service_wait_ready(struct sandbox *sandbox, struct record *record,
                       const struct readiness_spec *spec, enum readiness *ret, struct err *err);

/* Closes the forwards of ended services. */
void services_prune(struct sandbox *sandbox);

/* Closes the forwards of all services. */
void services_close(struct sandbox *sandbox);

/* Opens the forwards of a previous daemon again, on the same host ports if they are free. */
void services_recover(struct sandbox *sandbox);
