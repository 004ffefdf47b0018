/* What plan.c, plan_copy.c and plan_settings.c share. */
#pragma once

#include <stdlib.h>

#include "builder/dockerfile/plan.h"

/* The variables that words of an instruction may name. */
struct scope plan_scope(const struct plan *plan);

/* Takes the step. */
void plan_step(struct plan *plan, json_t *step);

/* Reads the words of an instruction that may be a list of JSON. Release: words_free. */
int plan_words(const struct plan *plan, const struct instruction *item, char ***ret,
               struct err *err);

/* Returns the value of --name=value; NULL: the instruction has no such flag. */
const char *instruction_flag(const struct instruction *item, const char *name);

/* Fails for a flag that is not in the list, which ends with NULL. */
int instruction_flags_check(const struct instruction *item, const char *const *known,
                            struct err *err);

static inline void text_set(char **slot, char *text)
{
    free(*slot);
    *slot = text;
}

/* One for each instruction. */
int plan_copy(struct plan *plan, const struct instruction *item, struct err *err);
int plan_env(struct plan *plan, const struct instruction *item, struct err *err);
int plan_label(struct plan *plan, const struct instruction *item, struct err *err);
int plan_maintainer(struct plan *plan, const struct instruction *item, struct err *err);
int plan_arg(struct plan *plan, const struct instruction *item, struct err *err);
int plan_expose(struct plan *plan, const struct instruction *item, struct err *err);
int plan_volume(struct plan *plan, const struct instruction *item, struct err *err);
int plan_cmd(struct plan *plan, const struct instruction *item, struct err *err);
int plan_entrypoint(struct plan *plan, const struct instruction *item, struct err *err);
int plan_shell(struct plan *plan, const struct instruction *item, struct err *err);
int plan_stopsignal(struct plan *plan, const struct instruction *item, struct err *err);
int plan_healthcheck(struct plan *plan, const struct instruction *item, struct err *err);
int plan_user(struct plan *plan, const struct instruction *item, struct err *err);
int plan_workdir(struct plan *plan, const struct instruction *item, struct err *err);
int plan_onbuild(struct plan *plan, const struct instruction *item, struct err *err);
