/* The descriptors of the daemon. New work is refused while enough of them are left to end what
 * runs: that needs some too. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct err;

enum {
    DESCRIPTORS_MIN = 512,       /* that the daemon needs to start */
    DESCRIPTORS_PER_SANDBOX = 3, /* of one without processes and clients */
};

struct descriptors {
    unsigned open;
    unsigned max;
    unsigned reserve; /* of max: not for new sandboxes; a half of it not for new processes */
    bool is_low;      /* three quarters of what is not in the reserve are open */
};

void descriptors_count(struct descriptors *ret);

/* Fails if the process may have too few descriptors for a daemon. */
int descriptors_check_limit(struct err *err);

/* Refuses a new sandbox, or a new process, worker or port in one, with ERR_EXHAUSTED. */
int descriptors_check_sandbox(struct err *err);
int descriptors_check_process(struct err *err);

/* Returns how many sandboxes this machine's memory and the limit of descriptors allow. */
uint32_t descriptors_sandboxes_max(void);
