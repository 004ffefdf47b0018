// SPDX-License-Identifier: Apache-2.0
#include "host/tool_worker.h"

#include <stdlib.h>

#include "base/err.h"

int tool_worker_run(struct sandbox *sandbox, const struct tool_worker_job *job,
                    struct tool_worker_answer *ret, struct err *err)
{
    (void)sandbox, (void)job, (void)ret;
    return err_set(err, ERR_UNSUPPORTED, "there are no tool workers yet");
}

void tool_worker_answer_done(struct tool_worker_answer *answer)
{
    for (size_t i = 0; i < answer->change_count; i++)
        free(answer->changes[i].path);
    answer->change_count = 0;
    buf_done(&answer->content);
}
