/* Ceilings: what the objects of one owner may use together, and what each of them may have. Plain
 * data; host/owner/owner.h counts the use and enforces them. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/access/caller.h"

struct err;
struct sandbox_limits;

enum ceiling {
    CEILING_SANDBOXES, /* including throw-away machines */
    CEILING_MEMORY,    /* bytes: the sum of the limits, as the next three */
    CEILING_CPUS,      /* thousandths */
    CEILING_DISK,      /* bytes, of the quotas */
    CEILING_PIDS,
    CEILING_AMOUNTS,               /* the ones above are sums */
    CEILING_TTL = CEILING_AMOUNTS, /* milliseconds of one sandbox */
    CEILING_NUMBERS,
    CEILING_RUNTIMES = CEILING_NUMBERS, /* comma-separated */
    CEILING_RUNTIME_MIN,                /* the weakest runtime */
    CEILING_NETWORK,                    /* none, allow or open */
    CEILINGS
};

#define CEILING_UNLIMITED UINT64_MAX
#define OWNER_EVERY "*" /* in holt.conf: every owner but root */

enum { CEILING_TEXT_SIZE = 128, CEILING_NAME_SIZE = 16 };

struct ceilings {
    bool is_set[CEILINGS];
    uint64_t numbers[CEILING_NUMBERS]; /* CEILING_UNLIMITED: explicitly none */
    char runtimes[CEILING_TEXT_SIZE];  /* "": all */
    char runtime_min[CEILING_NAME_SIZE];
    char network[8];
};

/* Returns the word of a ceiling in holt.conf and on the command line: "sandboxes", "memory", ... */
const char *ceiling_name(enum ceiling which);
bool ceiling_find(const char *name, enum ceiling *ret);

/* Sets a ceiling from text as in holt.conf; "none" is no ceiling of a number or of the weakest
 * runtime, "all" none of the runtimes. Fails with ERR_INVALID. */
int ceiling_parse(struct ceilings *ceilings, enum ceiling which, const char *text, struct err *err);

/* Writes a ceiling so that ceiling_parse reads it back; "none" or "all" if it is not set. */
void ceiling_format(const struct ceilings *ceilings, enum ceiling which,
                    char ret[CEILING_TEXT_SIZE]);

/* Writes an amount in the unit of a ceiling: "8G", "1.500", "24h", "20". */
void ceiling_format_number(enum ceiling which, uint64_t number, char ret[CEILING_TEXT_SIZE]);

/* Returns the ceiling as a number; CEILING_UNLIMITED if it is not set. */
uint64_t ceiling_number(const struct ceilings *ceilings, enum ceiling which);

/* Takes one ceiling over from another set. */
void ceiling_copy(struct ceilings *to, const struct ceilings *from, enum ceiling which);

/* Lowers the limits that the request does not set to the ceilings, so that what nobody asked for
 * never exceeds a ceiling by itself. A limit of 0 is none, and gets what the machine has. */
void ceilings_fill_limits(const struct ceilings *ceilings, const struct sandbox_limits *asked,
                          struct sandbox_limits *limits);

/* Computes the time to live of a sandbox; 0 asks for none and gets the ceiling. Fails with
 * ERR_EXHAUSTED above it. */
int ceilings_limit_ttl(const struct ceilings *ceilings, const char *owner, uint64_t asked_ms,
                       uint64_t *ret_ms, struct err *err);

/* The ceilings in holt.conf, one entry for each owner. */
struct owner_settings {
    struct owner_setting {
        char owner[OWNER_NAME_MAX + 1]; /* or OWNER_EVERY */
        struct ceilings ceilings;
    } * items;
    size_t count;
};

/* Sets a key of the form OWNER.CEILING. Fails with ERR_INVALID. */
int owner_settings_set(struct owner_settings *settings, const char *key, const char *value,
                       struct err *err);

/* Finds the entry of this owner; NULL if there is none. */
const struct ceilings *owner_settings_find(const struct owner_settings *settings,
                                           const char *owner);

void owner_settings_copy(const struct owner_settings *settings, struct owner_settings *ret);
bool owner_settings_equal(const struct owner_settings *one, const struct owner_settings *other);

/* Writes them in the syntax of holt.conf. */
void owner_settings_print(const struct owner_settings *settings, FILE *out);
void owner_settings_done(struct owner_settings *settings);
