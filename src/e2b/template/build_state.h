/* What the object store says of the builds of a template (e2b/template/build.h has its fields). */
#pragma once

#include <jansson.h>
#include <stdbool.h>

struct build_state;
struct e2b_objects;
struct err;

/* Notes how a build has ended; one that is ready gets its tags. */
void e2b_build_settle(json_t *template, const char *id, const struct build_state *state);

/* Forgets the oldest builds that no tag leads to, beyond so many. */
void e2b_builds_trim(json_t *template);

/* Whether one of these templates has the build, and it has not failed. */
bool e2b_build_is_known(const json_t *templates, const char *id);

/* Whatever the last daemon had begun has ended with it. */
int e2b_builds_mark_lost(struct e2b_objects *objects, struct err *err);
