/* Which runtime a sandbox gets, and which it may have: by holt.conf, the ceilings of its owner and
 * the settings of its template. A rule only ever makes the runtime stronger. */
#pragma once

#include <stdbool.h>

#include "host/owner/ceiling.h"

struct config;
struct err;
struct host;
struct runtime_ops;

/* What the runtime is for. */
struct runtime_holder {
    const char *owner;
    const char *template; /* its name in the store; NULL: none */
};

/* Chooses the runtime: the one asked for (NULL: none), the default of the template or of the host,
 * whichever is stronger, or else the first one that all rules allow. Fails with ERR_DENIED for one
 * that holt.conf or the template refuse, and ERR_EXHAUSTED (CeilingReached) for one that the
 * ceilings of the owner do. */
int host_choose_runtime(struct host *host, const struct runtime_holder *holder, const char *asked,
                        const struct runtime_ops **ret, struct err *err);

/* Checks that a sandbox of this runtime may be started; the errors are the same. */
int host_check_runtime(struct host *host, const struct runtime_holder *holder, const char *name,
                       struct err *err);

/* Applies runtime.allow and runtime.min to all later starts. */
void runtime_rules_configure(struct host *host, const struct config *config);

/* Checks runtime.allow and runtime.min: all runtimes are known, and one is left. */
int runtime_rules_check(const struct config *config, struct err *err);

/* Checks the names of runtimes in settings of a template; "" is none. */
int template_runtime_check(const char *runtime, const char *runtime_min, struct err *err);

/* Sets the default runtime and the weakest runtime of a template; "" unsets one. */
int template_runtime_write(struct host *host, const char *store_name, const char *runtime,
                           const char *runtime_min, struct err *err);
