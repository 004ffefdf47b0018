/* The use of models in the text format of Prometheus, see host/observe/metrics.h. */
#pragma once

struct buf;
struct caller;
struct llm;

/* Appends what all sandboxes together have used. */
int metrics_write_models(struct llm *llm, struct buf *out);

/* Appends what each owner that the caller may know has used of each model. */
int metrics_write_owner_models(struct llm *llm, const struct caller *caller, struct buf *out);
