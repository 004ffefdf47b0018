// SPDX-License-Identifier: Apache-2.0
/* Dockerfiles from anywhere: refused with a reason, or stages whose instructions become steps. */
#include <assert.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "builder/dockerfile/plan.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int look(struct plan *plan, const struct plan_source *source, json_t *paths,
                char ret_hex[65], struct err *err)
{
    (void)plan;
    (void)paths;
    (void)err;
    assert(source->from && source->patterns[0]);
    (void)snprintf(ret_hex, 65, "abc");
    return 0;
}

static void stage_plan(const struct stages *stages, size_t index)
{
    struct plan plan = { .stages = stages, .stage = index, .look = look };
    struct err err = { 0 };

    plan_init(&plan, NULL, NULL, "", "");
    if (plan_stage(&plan, &err) < 0)
        assert(err.kind != ERR_NONE && err.msg[0]);
    assert(plan.workdir[0] == '/' && json_is_array(plan.steps));
    plan_done(&plan);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct dockerfile file;
    struct stages stages;
    struct err err = { 0 };

    if (dockerfile_parse((const char *)data, size, &file, &err) < 0) {
        assert(err.kind != ERR_NONE && err.msg[0]);
        return 0;
    }
    if (stages_find(&file, NULL, "amd64", &stages, &err) == 0) {
        assert(stages.count > 0);
        for (size_t i = 0; i < stages.count; i++)
            stage_plan(&stages, i);
        stages_done(&stages);
    }
    dockerfile_done(&file);
    return 0;
}
