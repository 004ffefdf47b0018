// SPDX-License-Identifier: Apache-2.0
#include "cli/run/outcome.h"

#include <stdint.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/json.h"
#include "cli/core/report.h"

/* The line is: before 'command' after. An outcome without one speaks for itself. */
static const struct outcome {
    const char *name;
    const char *before;
    const char *after;
    int status; /* where the daemon gives none */
} outcomes[] = {
    { "OUTCOME_EXITED", NULL, NULL, STATUS_OK },
    { "OUTCOME_SIGNALED", NULL, NULL, STATUS_HOLT },
    { "OUTCOME_TIMED_OUT", "", " timed out", 124 },
    { "OUTCOME_OOM", "", " ran out of memory", 137 },
    { "OUTCOME_KILLED", "", " was killed", 137 },
    { "OUTCOME_LOST", "lost ", "", STATUS_HOLT },
    { "OUTCOME_NOT_STARTED", "cannot start ", "", 126 },
};

static const struct outcome *find(const char *name)
{
    static const struct outcome unknown = { "", "the daemon gave no outcome of ", "", STATUS_HOLT };

    for (size_t i = 0; i < ARRAY_SIZE(outcomes); i++)
        if (strcmp(outcomes[i].name, name) == 0)
            return &outcomes[i];
    return &unknown;
}

int run_outcome(const char *command, const json_t *ended)
{
    const char *name = "", *reason = "", *killer = "";
    const struct outcome *outcome;
    uint32_t exit_code = 0;
    struct err err;

    if (json_get_text(ended, "outcome", &name, &err) < 0 ||
        json_get_text(ended, "reason", &reason, &err) < 0 ||
        json_get_text(ended, "killedBy", &killer, &err) < 0 ||
        json_get_u32(ended, "exitCode", &exit_code, &err) < 0)
        return report("the daemon's answer cannot be read: %s", err.msg);
    outcome = find(name);
    /* Who sent a signal knows, and the status says which. */
    if (outcome->before && strcmp(killer, "KILLED_BY_USER") != 0)
        (void)report("%s'%.200s'%s%s%s", outcome->before, command, outcome->after,
                     *reason ? ": " : "", reason);
    return exit_code > 0 ? (int)(exit_code & 0xff) : outcome->status;
}
