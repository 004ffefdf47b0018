/* Makes steps (builder/step.c) and settings of the instructions of a Dockerfile's stage. Files are
 * looked at through a function, so this needs no sandbox. */
#pragma once

#include <jansson.h>
#include <stddef.h>

#include "builder/dockerfile/parse.h"
#include "builder/dockerfile/words.h"

struct err;

enum { STAGES_MAX = 64 };

/* A stage: the instructions after a FROM. */
struct stage {
    const struct instruction *from;
    const struct instruction *items;
    size_t count;
    char *base; /* an image, a template, an earlier stage, or "scratch" */
    char *name; /* of AS, in small letters; "": none */
};

struct stages {
    struct stage items[STAGES_MAX];
    size_t count;
    json_t *args;     /* of the instructions ARG before the first FROM, with their values */
    json_t *defaults; /* values of ARGs that need none: the platform's, and proxies */
    json_t *given;    /* the caller's values */
    char escape;
};

/* Finds the stages. given: the caller's values of ARGs. arch as images spell it. */
int stages_find(const struct dockerfile *file, const json_t *given, const char *arch,
                struct stages *ret, struct err *err);
void stages_done(struct stages *stages);

/* Returns the index of an earlier stage that a word names, by its name or number; -1: none. */
int stage_named(const struct stages *stages, size_t before, const char *word);

/* Returns the index of the target: the last stage for "". */
int stage_target(const struct stages *stages, const char *word, struct err *err);

/* What a COPY or ADD takes. */
struct plan_source {
    const char *from;      /* "": the context; else a stage or an image */
    char *const *patterns; /* ends with NULL */
};

/* The state of a stage while its instructions are read. All are objects, arrays or strings. */
struct plan {
    const struct stages *stages;
    size_t stage; /* its index */
    json_t *env, *args, *image, *steps, *shell;
    char *user, *workdir;
    bool has_cmd; /* of the stage itself */

    /* Finds the files of a source and computes their digest. Adds the paths to the array. */
    int (*look)(struct plan *plan, const struct plan_source *source, json_t *paths,
                char ret_hex[65], struct err *err);
    void *context;
};

/* Initialises a plan with the settings of the base: env and image are copied; NULL: none. */
void plan_init(struct plan *plan, const json_t *env, const json_t *image, const char *user,
               const char *workdir);
void plan_done(struct plan *plan);

/* Adds the steps of a stage. Errors name the line. */
int plan_stage(struct plan *plan, struct err *err);
