/* Builds that clients of E2B have begun, and where their templates are kept on the object store:
 *
 *   {"id", "name", "public", "createdAt", "updatedAt", "cpuCount", "memoryMB",
 *    "tags": {TAG: {"build", "createdAt"}},
 *    "builds": {BUILD: {"status", "tags": [], "createdAt", "cpuCount", "memoryMB", "message",
 *                       "step"}}}
 *
 * The files of a build are Holt's template build-BUILD. What a build has said is known until the
 * daemon ends or many others have ended since; one that was going on then has failed. Of a template
 * the newest builds are kept, and those that have a tag. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "store/template/template.h"

struct build_spec;
struct e2b_builds;
struct e2b_objects;
struct err;
struct host;

enum {
    E2B_BUILDS_RUNNING_MAX = 4,
    E2B_BUILDS_MAX = 64,  /* with those that wait for their turn */
    E2B_BUILDS_KEPT = 32, /* of one template, besides those with a tag */
    E2B_ID_BYTES = 21,
    E2B_CPUS_DEFAULT = 2,
    E2B_MEMORY_DEFAULT_MB = 1024,
};

int e2b_builds_open(struct host *host, struct e2b_objects *objects, const char *state_dir,
                    struct e2b_builds **ret, struct err *err);

/* Ends what goes on. Accepts NULL. */
void e2b_builds_close(struct e2b_builds *builds);

/* Twenty digits that nobody has had before. */
int e2b_id_new(char into[E2B_ID_BYTES], struct err *err);

/* A copy of a template on the object store, by id or name, with what has become of its builds; or
 * NULL. */
json_t *e2b_builds_find(struct e2b_builds *builds, const char *word);

/* All of them. */
json_t *e2b_builds_list(struct e2b_builds *builds);

/* Changes a template on the object store, by id or name, while nobody else does; where there is
 * none, the fallback becomes it (NULL: ERR_NOT_FOUND). A change that fails is none. */
typedef int (*e2b_change_fn)(json_t *template, void *context, struct err *err);
int e2b_builds_change(struct e2b_builds *builds, const char *word, const json_t *fallback,
                      e2b_change_fn change, void *context, struct err *err);

/* Takes a template from the object store, by id, and ends what goes on for it. The files of builds
 * that a sandbox still stands on go later. */
int e2b_builds_remove(struct e2b_builds *builds, const char *id, struct err *err);

/* Begins a build that the template, by id, has already as "waiting". ERR_EXHAUSTED when too many go
 * on. */
int e2b_builds_begin(struct e2b_builds *builds, const char *template_id, const char *id,
                     struct build_spec *spec, struct err *err);

/* What one has said, from the offset-th on; and whether it still waits for its turn. */
json_t *e2b_builds_logs(struct e2b_builds *builds, const char *id, size_t offset, size_t limit,
                        bool *ret_waits);

/* Where uploaded files are, absolute. */
const char *e2b_builds_files(const struct e2b_builds *builds);

/* What a client must show to upload the files with this hash; 64 digits. */
void e2b_builds_ticket(const struct e2b_builds *builds, const char *hash, char into[65]);

/* The name of Holt's own template with a build's files. */
void e2b_build_template(const char *id, char into[TEMPLATE_NAME_MAX + 1]);

/* The build whose files such a template has, by its name, or NULL: it is somebody's own. */
const char *e2b_build_of(const char *template);
