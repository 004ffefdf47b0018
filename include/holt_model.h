/* Models that sandboxes use at llm.holt, in libholt; holt.h includes this file. A sandbox gets them
 * when it is created (models of struct holt_sandbox_options). */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "holt.h"

#ifdef __cplusplus
extern "C" {
#endif

struct holt_model {
    const char *name;     /* in the sandbox */
    const char *upstream; /* as the provider calls it */
    const char *provider;
    const char *kind; /* "anthropic" or "openai" */
    bool has_price;
    uint64_t input_nanos; /* billionths of a dollar for a token */
    uint64_t output_nanos;
    uint64_t cache_read_nanos;
    uint64_t cache_write_nanos;
};

struct holt_model_list {
    const struct holt_model *const *models;
    size_t count;
    const char *prices_date; /* "": there is no table of prices */
};

/* Lists the models that the caller's owner may give to sandboxes. */
HOLT_API int holt_model_list(struct holt *holt, int64_t deadline, struct holt_model_list **ret,
                             struct holt_error *error);

/* One day of one sandbox with one model. */
struct holt_model_use {
    const char *day; /* of UTC: "2026-01-31" */
    const char *sandbox_id;
    const char *owner;
    const char *model;
    uint64_t requests;
    uint64_t unsettled; /* of them: counted as what they could have used at most */
    uint64_t input_tokens;
    uint64_t cache_read_tokens;
    uint64_t cache_write_tokens;
    uint64_t output_tokens;
    uint64_t cost_nanos; /* billionths of a dollar */
};

struct holt_model_usage {
    const struct holt_model_use *const *rows; /* oldest first */
    size_t count;
};

struct holt_model_usage_options {
    size_t size;
    uint32_t days;       /* until now, with today; 0: today */
    const char *sandbox; /* NULL: all */
    const char *label;   /* "key=value"; NULL: any */
    const char *owner;   /* NULL: all that the caller sees */
};

/* Returns what was used. options may be NULL. */
HOLT_API int holt_model_usage(struct holt *holt, const struct holt_model_usage_options *options,
                              int64_t deadline, struct holt_model_usage **ret,
                              struct holt_error *error);

#ifdef __cplusplus
}
#endif
