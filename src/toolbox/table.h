/* The table of all tools: name, parameters, properties. It serves execution (toolbox/tool.h), lists
 * (api/, mcp/) and the check of parameters (toolbox/params.h). */
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
    bool may_be_empty;                     /* of a required text */
    int64_t number, least, most;           /* default and bounds of a number */
    const char *text;                      /* default of a text; NULL: "" */
    const char *choices[TOOL_CHOICES_MAX]; /* the first is the default */
    const char *about;                     /* one sentence for a model */
};

enum tool_work {
    TOOL_BY_WORKER,  /* tier 1: a worker in the sandbox, which starts no process */
    TOOL_BY_PROCESS, /* tier 2 */
    TOOL_BY_HOST,    /* tier 0: operations on the sandbox as a whole */
};

struct tool {
    const char *name;
    const char *title; /* a few words for a person */
    const char *about; /* for a model: effect, and when to use it */
    enum tool_work work;
    enum worker_tool worker;                   /* of TOOL_BY_WORKER */
    bool is_read_only;                         /* changes nothing */
    bool destroys;                             /* may delete or overwrite data */
    bool is_idempotent;                        /* repeating it has no further effect */
    bool is_open;                              /* acts on something outside of Holt */
    struct tool_param params[TOOL_VALUES_MAX]; /* up to one without a name */
};

/* Returns the tool at an index, from 0; NULL behind the last one. */
const struct tool *tool_at(size_t index);

/* Finds a tool by name, or returns NULL. */
const struct tool *tool_find(const char *name);

/* Returns the tier that executes the tool: 0: the host, 1: a worker, 2: a process. */
unsigned tool_tier(const struct tool *tool);

size_t tool_param_count(const struct tool *tool);
