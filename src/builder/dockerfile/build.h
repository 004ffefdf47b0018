/* Builds a template from a Dockerfile: each stage is a build (builder/build.h), in the calling
 * thread's turn. */
#pragma once

#include <jansson.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

struct caller;
struct err;
struct host;
struct sandbox;
struct template_info;
struct template_record;

struct dockerfile_build {
    const struct caller *caller;
    const char *text;         /* the Dockerfile */
    const char *name;         /* of the template: a name, or a reference with a tag */
    const char *target;       /* stage; "": the last one */
    const json_t *args;       /* values of ARGs, an object of strings */
    struct sandbox *context;  /* NULL: nothing is copied from a context */
    const char *context_path; /* absolute */
    bool is_forced;           /* do not use the cache of steps */
    const atomic_bool *is_cancelled;

    /* Receives each line of the log. */
    void (*log)(void *context, const char *line);
    void *log_context;
};

/* Builds the template, which takes over its name from an earlier one of the caller's owner. */
int dockerfile_build(struct host *host, const struct dockerfile_build *asked,
                     struct template_record *ret_record, struct template_info *ret,
                     struct err *err);
