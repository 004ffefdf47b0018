/* Whether the processes of a sandbox work although no client uses it.
 *
 * An idle timeout acts on a sandbox that nobody used for that time, and whose processes meanwhile
 * used less than 1 % of one CPU and no block device. Used by the expiry thread only. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct sandbox;

enum { IDLE_SAMPLES = 6 };

/* What the processes of a sandbox had used at a moment of clock_boot_ms, which lies between two
 * others: this thread may have to wait for a CPU itself. */
struct idle_sample {
    int64_t after, before;
    uint64_t cpu_us;
    uint64_t io_bytes; /* read from storage or written to files on it */
};

struct idle_watch {
    struct idle_sample samples[IDLE_SAMPLES]; /* oldest first, since a client used the sandbox */
    unsigned count;
    int64_t check_at; /* no earlier look is needed */
    bool is_working;  /* the last look, when the idle time was over, found work */
};

/* Looks at the sandbox if that is needed, and lowers *wait_ms to the time until the next look. */
void idle_look(struct sandbox *sandbox, int64_t now, uint64_t *wait_ms);
