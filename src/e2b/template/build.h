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
    E2B_UUID_BYTES = 37,
    E2B_CPUS_DEFAULT = 2,
    E2B_MEMORY_DEFAULT_MB = 1024,
};

int e2b_builds_open(struct host *host, struct e2b_objects *objects, const char *state_dir,
                    struct e2b_builds **ret, struct err *err);

/* Cancels running builds. Accepts NULL. */
void e2b_builds_close(struct e2b_builds *builds);

/* Makes an unused id of twenty digits. */
int e2b_id_new(char into[E2B_ID_BYTES], struct err *err);

/* Writes the UUID that clients see as the id of a build. It has the digits of a build's id, and
 * those of a hash for the name of a template that no client has built. */
void e2b_build_uuid(const char *id, char ret[E2B_UUID_BYTES]);

/* Returns it as JSON. */
json_t *e2b_build_uuid_json(const char *id);

/* Writes the id of a build as it is stored: that of a UUID, or a word as it is. */
void e2b_build_parse(const char *word, char ret[E2B_ID_BYTES]);

/* A template that exists for a caller, by id or name. */
struct e2b_template_word {
    const struct caller *caller;
    const char *word;
};

/* Returns a copy of a stored template with the state of its builds; or NULL. */
json_t *e2b_builds_find(struct e2b_builds *builds, const struct caller *caller, const char *word);

/* Returns copies of all stored templates. */
json_t *e2b_builds_list(struct e2b_builds *builds);

/* Changes a stored template, by id or name, atomically. If there is none, the fallback is stored
 * (NULL: ERR_NOT_FOUND). A change that fails changes nothing. */
typedef int (*e2b_change_fn)(json_t *template, void *context, struct err *err);
int e2b_builds_change(struct e2b_builds *builds, const struct e2b_template_word *asked,
                      const json_t *fallback, e2b_change_fn change, void *context, struct err *err);

/* Removes a stored template by id and cancels its builds. Files of builds that a sandbox uses are
 * removed later. */
int e2b_builds_remove(struct e2b_builds *builds, const char *id, struct err *err);

/* Starts a build that the template, by id, lists as "waiting". Fails with ERR_EXHAUSTED at the
 * limit of builds. */
int e2b_builds_begin(struct e2b_builds *builds, const struct e2b_template_word *asked,
                     const char *id, struct build_spec *spec, struct err *err);

/* Returns the log of a build from the offset-th line on, and whether the build is still queued. */
json_t *e2b_builds_logs(struct e2b_builds *builds, const char *id, size_t offset, size_t limit,
                        bool *ret_waits);

/* Returns the absolute path of the files that an owner has uploaded; the caller frees it. Each
 * owner has its own: a hash is only what a client calls its files. */
char *e2b_builds_files(const struct e2b_builds *builds, const char *owner);

/* Makes the ticket that permits an upload of an owner's files with this hash; 64 digits. */
void e2b_builds_ticket(const struct e2b_builds *builds, const char *owner, const char *hash,
                       char into[65]);

/* Writes the name of the template that holds a build's files. */
void e2b_build_template(const char *id, char into[TEMPLATE_NAME_MAX + 1]);

/* Returns the build whose files a template has, by its name, or NULL. */
const char *e2b_build_of(const char *template);
