// SPDX-License-Identifier: Apache-2.0
#include "e2b/control/usage.h"

#include "e2b/control/sandbox_json.h"
#include "e2b/core/e2b.h"
#include "host/observe/stats.h"

struct e2b_whole e2b_whole_of(struct e2b_request *request, const struct sandbox_limits *asked,
                              uint64_t quota_bytes)
{
    struct e2b_whole whole = { .disk_bytes = e2b_disk_bytes(request, quota_bytes) };

    sandbox_limits_in_force(request->host, asked, &whole.limits);
    return whole;
}

unsigned e2b_cpu_count(const struct e2b_whole *whole)
{
    return (whole->limits.cpu_millis + 999) / 1000;
}

uint64_t e2b_cpu_between(const struct sandbox_stats *first, const struct sandbox_stats *second)
{
    uint64_t ms = second->taken_ms - first->taken_ms;

    return ms == 0 || second->cpu_us < first->cpu_us ? 0
                                                     : (second->cpu_us - first->cpu_us) * 10 / ms;
}

/* The moments of two looks are not exactly those that are counted between, so a busy one may seem
 * to use more than there is. */
double e2b_cpu_share(const struct e2b_whole *whole, uint64_t hundredths)
{
    unsigned cpus = e2b_cpu_count(whole);
    uint64_t of_all = hundredths / (cpus ? cpus : 1);

    return of_all < 10000 ? (double)of_all / 100 : 100;
}
