// SPDX-License-Identifier: Apache-2.0
#include "host/owner/ceiling.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/text/parse.h"
#include "host/core/limits.h"
#include "runtime/runtime.h"

static const char *const names[CEILINGS] = {
    [CEILING_SANDBOXES] = "sandboxes", [CEILING_MEMORY] = "memory",
    [CEILING_CPUS] = "cpus",           [CEILING_DISK] = "disk",
    [CEILING_PIDS] = "pids",           [CEILING_TTL] = "ttl",
    [CEILING_RUNTIMES] = "runtimes",   [CEILING_RUNTIME_MIN] = "runtime-min",
    [CEILING_NETWORK] = "network",
};

const char *ceiling_name(enum ceiling which)
{
    return names[which];
}

bool ceiling_find(const char *name, enum ceiling *ret)
{
    for (enum ceiling i = 0; i < CEILINGS; i++) {
        if (strcmp(names[i], name) == 0) {
            *ret = i;
            return true;
        }
    }
    return false;
}

static int number_parse(enum ceiling which, const char *text, uint64_t *ret)
{
    uint32_t millis;
    int r;

    if (strcmp(text, "none") == 0) {
        *ret = CEILING_UNLIMITED;
        return 0;
    }
    if (which == CEILING_MEMORY || which == CEILING_DISK)
        return parse_size(text, ret);
    if (which == CEILING_TTL) {
        r = parse_duration_ms(text, ret);
        return r == 0 && *ret == 0 ? -EINVAL : r; /* 0 is "never" in a request */
    }
    if (which != CEILING_CPUS)
        return parse_u64(text, ret);
    r = parse_cpus(text, &millis);
    if (r == 0)
        *ret = millis;
    return r;
}

/* Checks a comma-separated list of names without empty ones. */
static bool is_runtimes(const char *text)
{
    char word[CEILING_NAME_SIZE];

    for (;;) {
        size_t len = strcspn(text, ",");

        if (len == 0 || len >= sizeof(word))
            return false;
        (void)snprintf(word, sizeof(word), "%.*s", (int)len, text);
        if (!is_name(word))
            return false;
        if (text[len] == '\0')
            return true;
        text += len + 1;
    }
}

static bool is_network(const char *text)
{
    return strcmp(text, "none") == 0 || strcmp(text, "allow") == 0 || strcmp(text, "open") == 0;
}

static int network_parse(struct ceilings *ceilings, const char *text)
{
    if (!is_network(text))
        return -EINVAL;
    (void)snprintf(ceilings->network, sizeof(ceilings->network), "%s", text);
    return 0;
}

/* A name that this Holt does not know would let nothing through. */
static int runtime_min_parse(struct ceilings *ceilings, const char *text)
{
    const struct runtime_ops *ops;
    bool is_none = strcmp(text, "none") == 0;
    struct err ignored;

    if (!is_none && runtime_find(text, &ops, &ignored) < 0)
        return -EINVAL;
    (void)snprintf(ceilings->runtime_min, sizeof(ceilings->runtime_min), "%s", is_none ? "" : text);
    return 0;
}

static int runtimes_parse(struct ceilings *ceilings, const char *text)
{
    bool is_all = strcmp(text, "all") == 0;

    if (strlen(text) >= sizeof(ceilings->runtimes))
        return -ERANGE;
    if (!is_all && !is_runtimes(text))
        return -EINVAL;
    (void)snprintf(ceilings->runtimes, sizeof(ceilings->runtimes), "%s", is_all ? "" : text);
    return 0;
}

static int text_parse(struct ceilings *ceilings, enum ceiling which, const char *text)
{
    if (which == CEILING_NETWORK)
        return network_parse(ceilings, text);
    if (which == CEILING_RUNTIME_MIN)
        return runtime_min_parse(ceilings, text);
    return runtimes_parse(ceilings, text);
}

int ceiling_parse(struct ceilings *ceilings, enum ceiling which, const char *text, struct err *err)
{
    static const char *const kinds[CEILINGS] = {
        [CEILING_SANDBOXES] = "a number or none",
        [CEILING_MEMORY] = "a size like 8G, or none",
        [CEILING_CPUS] = "a number of CPUs like 1.5, or none",
        [CEILING_DISK] = "a size like 20G, or none",
        [CEILING_PIDS] = "a number or none",
        [CEILING_TTL] = "a time like 24h, or none",
        [CEILING_RUNTIMES] = "a comma-separated list of runtimes, or all",
        [CEILING_RUNTIME_MIN] = "native, bwrap or gvisor, or none",
        [CEILING_NETWORK] = "none, allow or open",
    };
    uint64_t number = 0;
    int r = which < CEILING_NUMBERS ? number_parse(which, text, &number)
                                    : text_parse(ceilings, which, text);

    if (r < 0)
        return err_set(err, ERR_INVALID, "the ceiling %s must be %s, not '%.40s'", names[which],
                       kinds[which], text);
    if (which < CEILING_NUMBERS)
        ceilings->numbers[which] = number;
    ceilings->is_set[which] = true;
    return 0;
}

/* Writes the number in the largest unit that divides it. */
static void unit_format(uint64_t number, const uint64_t *factors, const char *const *units,
                        char ret[CEILING_TEXT_SIZE])
{
    while (*factors > 1 && (number == 0 || number % *factors != 0)) {
        factors++;
        units++;
    }
    (void)snprintf(ret, CEILING_TEXT_SIZE, "%" PRIu64 "%s", number / *factors, *units);
}

void ceiling_format_number(enum ceiling which, uint64_t number, char ret[CEILING_TEXT_SIZE])
{
    static const uint64_t bytes[] = { 1ULL << 40, 1ULL << 30, 1ULL << 20, 1ULL << 10, 1 };
    static const uint64_t times[] = { 3600000, 60000, 1000, 1 };
    static const char *const byte_units[] = { "T", "G", "M", "K", "" };
    static const char *const time_units[] = { "h", "m", "s", "ms" };

    if (number == CEILING_UNLIMITED)
        (void)snprintf(ret, CEILING_TEXT_SIZE, "none");
    else if (which == CEILING_MEMORY || which == CEILING_DISK)
        unit_format(number, bytes, byte_units, ret);
    else if (which == CEILING_TTL)
        unit_format(number, times, time_units, ret);
    else if (which == CEILING_CPUS && number % 1000 != 0)
        (void)snprintf(ret, CEILING_TEXT_SIZE, "%" PRIu64 ".%03" PRIu64, number / 1000,
                       number % 1000);
    else
        (void)snprintf(ret, CEILING_TEXT_SIZE, "%" PRIu64,
                       which == CEILING_CPUS ? number / 1000 : number);
}

void ceiling_format(const struct ceilings *ceilings, enum ceiling which,
                    char ret[CEILING_TEXT_SIZE])
{
    bool is_set = ceilings->is_set[which];

    if (which == CEILING_RUNTIMES)
        (void)snprintf(ret, CEILING_TEXT_SIZE, "%s",
                       is_set && ceilings->runtimes[0] ? ceilings->runtimes : "all");
    else if (which == CEILING_RUNTIME_MIN)
        (void)snprintf(ret, CEILING_TEXT_SIZE, "%s",
                       is_set && ceilings->runtime_min[0] ? ceilings->runtime_min : "none");
    else if (which == CEILING_NETWORK)
        (void)snprintf(ret, CEILING_TEXT_SIZE, "%s", is_set ? ceilings->network : "open");
    else
        ceiling_format_number(which, ceiling_number(ceilings, which), ret);
}

uint64_t ceiling_number(const struct ceilings *ceilings, enum ceiling which)
{
    return ceilings->is_set[which] ? ceilings->numbers[which] : CEILING_UNLIMITED;
}

void ceiling_copy(struct ceilings *to, const struct ceilings *from, enum ceiling which)
{
    to->is_set[which] = from->is_set[which];
    if (which < CEILING_NUMBERS)
        to->numbers[which] = from->numbers[which];
    else if (which == CEILING_RUNTIMES)
        memcpy(to->runtimes, from->runtimes, sizeof(to->runtimes));
    else if (which == CEILING_RUNTIME_MIN)
        memcpy(to->runtime_min, from->runtime_min, sizeof(to->runtime_min));
    else
        memcpy(to->network, from->network, sizeof(to->network));
}

/* Returns the limit lowered to the ceiling; a ceiling of 0 allows nothing, and is left to the
 * count, as a limit of 0 would be none. */
static uint64_t limit_lower(const struct ceilings *ceilings, enum ceiling which, uint64_t limit,
                            uint64_t machine)
{
    uint64_t ceiling = ceiling_number(ceilings, which);

    if (ceiling == CEILING_UNLIMITED || ceiling == 0)
        return limit;
    if (limit == 0)
        limit = machine;
    return limit < ceiling ? limit : ceiling;
}

void ceilings_fill_limits(const struct ceilings *ceilings, const struct sandbox_limits *asked,
                          struct sandbox_limits *limits)
{
    uint64_t memory = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
    uint64_t cpus = (uint64_t)sysconf(_SC_NPROCESSORS_ONLN) * 1000;

    if (asked->memory_bytes == 0)
        limits->memory_bytes = limit_lower(ceilings, CEILING_MEMORY, limits->memory_bytes, memory);
    if (asked->cpu_millis == 0)
        limits->cpu_millis =
            (uint32_t)limit_lower(ceilings, CEILING_CPUS, limits->cpu_millis, cpus);
    if (asked->pids == 0)
        limits->pids =
            (uint32_t)limit_lower(ceilings, CEILING_PIDS, limits->pids, SANDBOX_PIDS_MAX);
}

int ceilings_limit_ttl(const struct ceilings *ceilings, const char *owner, uint64_t asked_ms,
                       uint64_t *ret_ms, struct err *err)
{
    uint64_t ceiling = ceiling_number(ceilings, CEILING_TTL);
    char asked[CEILING_TEXT_SIZE], most[CEILING_TEXT_SIZE];

    if (asked_ms <= ceiling) {
        *ret_ms = asked_ms == 0 && ceiling != CEILING_UNLIMITED ? ceiling : asked_ms;
        return 0;
    }
    ceiling_format_number(CEILING_TTL, asked_ms, asked);
    ceiling_format_number(CEILING_TTL, ceiling, most);
    (void)err_refuse(err, CAUSE_CEILING_REACHED,
                     "a sandbox of owner '%s' lives at most %.30s, not %.30s (ceiling owner.ttl)",
                     owner, most, asked);
    return err_remedy(err, "ask for a shorter time, or let an administrator raise it with "
                           "'holt owner set --ttl'");
}
