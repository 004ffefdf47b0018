/* Templates in libholt; holt.h includes this file. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "holt.h"

#ifdef __cplusplus
extern "C" {
#endif

struct holt_template {
    const char *name;
    const char *kind; /* "host", "image" or "imported" */
    uint64_t size_bytes;
    uint64_t files;
    int64_t created_ms;
    const char *owner; /* what an internal template belongs to; "": not internal */

    const char *owner_name;         /* its owner; names are unique for each owner */
    const char *const *shared_with; /* owners that may use it; for its owner and admins */
    size_t shared_count;
    bool is_public; /* all owners of the host may use it */

    const char *digest; /* of the image that it was pulled from, "sha256:..."; "": none */

    const char *const *command; /* what its image starts, ends with NULL; only in lists and found */
    size_t command_count;
    const char *const *ports; /* that its image exposes, "80/tcp"; likewise */
    size_t port_count;
    uint64_t shared_bytes; /* of size_bytes, that other templates have as well; only in lists */
};

struct holt_template_list {
    size_t count;
    const struct holt_template *const *items;
};

/* Receives the progress of an import. A nonzero return value cancels it ("canceled"). */
typedef int (*holt_import_fn)(void *context, uint64_t bytes, uint64_t files);

/* Receives how much of the archive, or of the layers of an image, was read. The total grows when an
 * archive turns out to be an image. */
typedef void (*holt_import_source_fn)(void *context, uint64_t bytes, uint64_t total);

/* Defaults for the sandboxes of a template; 0 and NULL mean none. */
struct holt_template_settings {
    size_t size;
    const char *const *env;    /* "NAME=value", ends with NULL; for the E2B API */
    const char *workdir;       /* absolute */
    const char *user;          /* a name or number */
    const char *start_command; /* for bash: runs from the start of a sandbox */
    const char *ready_command; /* for bash: succeeds when the start command is ready */
    bool allows_setuid;        /* set-user-ID programs work inside the sandbox */
    uint32_t cpus;             /* limits of a sandbox */
    uint64_t memory_bytes;
    const char *runtime;     /* the default; NULL: that of the host */
    const char *runtime_min; /* the weakest; NULL: any */
};

struct holt_import_options {
    size_t size;
    const char *name;
    const char *path; /* absolute, on the machine of the daemon */
    holt_import_fn on_progress;
    void *context;
    const struct holt_template_settings *settings; /* NULL: none */
    holt_import_source_fn on_source;               /* not called for a directory */
};

struct holt_template_prune_options {
    size_t size;
    bool wants_all;    /* also what was imported, built or committed; otherwise only images */
    uint64_t older_ms; /* only what was made this long ago; 0: all of it */
    bool is_dry;       /* remove nothing */
};

struct holt_template_pruned {
    size_t count; /* templates that were removed, or would be */
    const struct holt_template *const *items;
    uint64_t freed_bytes;
};

/* Removes templates of the caller's owner that nothing uses. options may be NULL. */
HOLT_API int holt_template_prune(struct holt *holt,
                                 const struct holt_template_prune_options *options,
                                 int64_t deadline, struct holt_template_pruned **ret,
                                 struct holt_error *error);

/* List the templates without an owner, or all. */
HOLT_API int holt_template_list(struct holt *holt, int64_t deadline,
                                struct holt_template_list **ret, struct holt_error *error);
HOLT_API int holt_template_list_all(struct holt *holt, int64_t deadline,
                                    struct holt_template_list **ret, struct holt_error *error);

/* Finds the template that a sandbox created with this name would have: NAME, OWNER/NAME or the
 * reference of an image. Fails with "not_found". */
HOLT_API int holt_template_find(struct holt *holt, const char *name, int64_t deadline,
                                struct holt_template **ret, struct holt_error *error);
HOLT_API int holt_template_import(struct holt *holt, const struct holt_import_options *options,
                                  int64_t deadline, struct holt_template **ret,
                                  struct holt_error *error);

/* Pulls an image from a registry as a template that has the reference as its name, unless it has
 * not changed. The daemon does not store the credentials. ret may be NULL. */
struct holt_pull_options {
    size_t size;
    const char *reference;           /* [REGISTRY[:PORT]/]REPOSITORY[:TAG][@sha256:HEX] */
    const char *username, *password; /* of the registry; NULL: none */
    holt_import_fn on_progress;      /* NULL: none */
    holt_import_source_fn on_source; /* what registries have sent; NULL: none */
    void *context;
};
HOLT_API int holt_template_pull(struct holt *holt, const struct holt_pull_options *options,
                                int64_t deadline, struct holt_template **ret,
                                struct holt_error *error);

/* Pushes a template to a registry as an image. The daemon does not store the credentials. ret may
 * be NULL. */
struct holt_push_options {
    size_t size;
    const char *name;                /* of the template */
    const char *reference;           /* [REGISTRY[:PORT]/]REPOSITORY[:TAG] */
    const char *username, *password; /* of the registry; NULL: none */
    holt_import_source_fn on_source; /* what the registry has or got; NULL: none */
    void *context;
};

struct holt_pushed_image {
    const char *reference;
    const char *digest; /* of its manifest, "sha256:..." */
};

HOLT_API int holt_template_push(struct holt *holt, const struct holt_push_options *options,
                                int64_t deadline, struct holt_pushed_image **ret,
                                struct holt_error *error);

/* Builds a template from a Dockerfile, with the files of a directory of a sandbox. The template
 * takes over its name from an earlier one. ret may be NULL. */
struct holt_build_options {
    size_t size;
    const char *name;        /* a name, or a reference with a tag */
    const char *dockerfile;  /* its text */
    const char *sandbox;     /* with the files; NULL: there are none */
    const char *path;        /* of the directory; NULL: /workspace */
    const char *target;      /* stage; NULL: the last one */
    const char *const *args; /* "NAME=value", ends with NULL */
    bool is_forced;          /* run all steps, even if nothing has changed */
    void (*on_line)(void *context, const char *line); /* of the log; NULL: none */
    void *context;
};

HOLT_API int holt_template_build(struct holt *holt, const struct holt_build_options *options,
                                 int64_t deadline, struct holt_template **ret,
                                 struct holt_error *error);

/* Creates a template from the current files of a sandbox. ret may be NULL. */
HOLT_API int holt_template_commit(struct holt *holt, const char *sandbox, const char *name,
                                  int64_t deadline, struct holt_template **ret,
                                  struct holt_error *error);
/* Replaces the owners that may use a template: those of the list, which ends with NULL (NULL:
 * none), or all of the host. Only its owner and admins may do it. ret may be NULL. */
struct holt_share_options {
    size_t size;
    const char *const *owners;
    bool is_public;
};

HOLT_API int holt_template_share(struct holt *holt, const char *name,
                                 const struct holt_share_options *options, int64_t deadline,
                                 struct holt_template **ret, struct holt_error *error);

struct holt_template_runtime {
    const char *runtime; /* the default, where it is at least as strong as that of the host */
    const char *min;     /* the weakest one */
};

/* Sets the runtimes of the sandboxes of a template; NULL or "" unsets one. Applies to later
 * creates, forks and starts. ret may be NULL. */
HOLT_API int holt_template_set_runtime(struct holt *holt, const char *name,
                                       const struct holt_template_runtime *runtime,
                                       int64_t deadline, struct holt_template **ret,
                                       struct holt_error *error);
HOLT_API int holt_template_remove(struct holt *holt, const char *name, int64_t deadline,
                                  struct holt_error *error);

#ifdef __cplusplus
}
#endif
