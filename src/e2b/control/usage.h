/* What a sandbox uses of what it has, as E2B counts. */
#pragma once

#include <stdint.h>

#include "host/sandbox/info.h"

struct e2b_request;
struct sandbox_stats;

/* What its metrics are measured against. */
struct e2b_whole {
    struct sandbox_limits limits;
    uint64_t disk_bytes;
};

struct e2b_whole e2b_whole_of(struct e2b_request *request, const struct sandbox_limits *asked,
                              uint64_t quota_bytes);

/* Processors, counted up. */
unsigned e2b_cpu_count(const struct e2b_whole *whole);

/* Of one processor between two looks, in hundredths of a per cent. */
uint64_t e2b_cpu_between(const struct sandbox_stats *first, const struct sandbox_stats *second);

/* Of that, per cent of all processors that the sandbox has: at most 100. */
double e2b_cpu_share(const struct e2b_whole *whole, uint64_t hundredths);
