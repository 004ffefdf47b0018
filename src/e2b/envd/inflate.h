/* gzip, undone as it comes. */
#pragma once

#include <stddef.h>

struct err;
struct inflater;

/* Takes what came out: 0, or a negative errno with err set, which ends it all. */
typedef int inflate_fn(void *context, const void *data, size_t len, struct err *err);

struct inflater *inflater_new(inflate_fn *take, void *context);

/* Fails with ERR_INVALID if the data is not gzip. */
int inflater_feed(struct inflater *inflater, const void *data, size_t len, struct err *err);

/* Nothing more comes: ERR_INVALID when something is missing. */
int inflater_finish(const struct inflater *inflater, struct err *err);

/* Accepts NULL. */
void inflater_free(struct inflater *inflater);
