/* Every tool: its name, its parameters, what it may do. One table for those who execute them
 * (toolbox/tool.h), those who list them (api/) and those who ask for them with wrong parameters. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/tool.h"

enum { TOOL_CHOICES_MAX = 4 };

struct tool_param {
    const char *name;
    const char *alias; /* NULL: none */
    enum tool_type type;
    bool is_needed;
    bool may_be_empty;                     /* of a text that is needed */
    int64_t number, least, most;           /* default and bounds of a number */
    const char *text;                      /* default of a text; NULL: "" */
    const char *choices[TOOL_CHOICES_MAX]; /* the first is the default */
    const char *about;                     /* one sentence, for a model */
};

enum tool_work {
    TOOL_BY_WORKER,  /* tier 1: no process is started */
    TOOL_BY_PROCESS, /* tier 2 */
    TOOL_BY_HOST,    /* tier 0: it is about the sandbox as a whole */
};

struct tool {
    const char *name;
    const char *title; /* a few words, for a person */
    const char *about; /* for a model: what it does and when to use it */
    enum tool_work work;
    enum worker_tool worker;                   /* of TOOL_BY_WORKER */
    bool is_read_only;                         /* changes nothing */
    bool destroys;                             /* may take away what was there */
    bool is_idempotent;                        /* twice is as once */
    bool is_open;                              /* reaches beyond the sandbox */
    struct tool_param params[TOOL_VALUES_MAX]; /* ends with one that has no name */
};

/* All of them in turn, from 0; NULL behind the last. */
const struct tool *tool_at(size_t index);

/* By name, or NULL. */
const struct tool *tool_find(const char *name);

size_t tool_param_count(const struct tool *tool);
