// SPDX-License-Identifier: Apache-2.0
#include "cli/run/outcome.h"

#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "cli/core/command.h"
#include "cli/core/report.h"
#include "holt.h"

/* The report is: before 'command' after. An outcome without one needs no report. */
static const struct outcome {
    const char *before;
    const char *after;
    int status; /* if the daemon gives none */
} outcomes[] = {
    [HOLT_OUTCOME_UNKNOWN] = { "the daemon gave no outcome of ", "", STATUS_HOLT },
    [HOLT_EXITED] = { NULL, NULL, STATUS_OK },
    [HOLT_SIGNALED] = { NULL, NULL, STATUS_HOLT },
    [HOLT_TIMED_OUT] = { "", " timed out", 124 },
    [HOLT_OOM] = { "", " ran out of memory", 137 },
    [HOLT_KILLED] = { "", " was killed", 137 },
    [HOLT_LOST] = { "lost ", "", STATUS_HOLT },
    [HOLT_NOT_STARTED] = { "cannot start ", "", 126 },
};

int run_outcome(const char *command, const struct holt_end *end)
{
    const struct outcome *outcome = &outcomes[end->outcome];

    /* A user who sent a signal knows of it, and the status has its number. */
    if (outcome->before && strcmp(end->killed_by, "user") != 0)
        (void)report("%s'%.200s'%s%s%s", outcome->before, command, outcome->after,
                     *end->reason ? ": " : "", end->reason);
    return end->exit_code > 0 ? end->exit_code & 0xff : outcome->status;
}

int run_ready_status(const char *verb, const char *command, const struct holt_process_info *process)
{
    struct err err;

    if (process->has_ended_unready)
        return report("%s: '%.200s' has ended (see 'holt logs')", verb, command);
    if (process->is_ready)
        return command_printed();
    (void)err_set(&err, ERR_DEADLINE, "%s: '%.200s' (%s) is not ready in time: %.200s", verb,
                  command, process->id, process->unready_reason);
    (void)err_remedy(&err, "it continues to run (see 'holt logs', 'holt ps')");
    return report_err(&err);
}
