/* A directory of the user that an agent works on: a copy goes into the sandbox, and what the agent
 * changed comes back only after a check.
 *
 * The sandbox is not trusted. Every path is opened below the descriptor of the directory without
 * following a link; nothing named .git is written, because git runs hooks and settings from there;
 * set-user-ID bits, devices and links that lead out of the directory are left out; and a file that
 * has changed on the host since the copy is never replaced. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/files/file_entry.h"

struct holt;

/* A file as it was when it was copied. */
struct repo_file {
    char *path;
    enum entry_type type;
    uint32_t mode;
    uint64_t size;
    int64_t mtime_s;
    uint32_t mtime_ns;
    char *target; /* of a link; NULL */
};

struct repo {
    const char *text;        /* as the user wrote it */
    int fd;                  /* of the directory */
    const char *inside;      /* its path in the sandbox */
    struct repo_file *files; /* in the order of paths once it is copied */
    size_t count;
};

/* One changed path; deleted if type is ENTRY_NONE. */
struct repo_change {
    char *path; /* relative to the directory */
    enum entry_type type;
    uint32_t mode;
    char *target;        /* of a link */
    unsigned staged;     /* the number of the file with its contents */
    const char *refusal; /* why it is not taken; NULL: it is */
};

struct repo_changes {
    struct repo_change *items;
    size_t count;
    size_t dropped;  /* items behind these that are not used */
    unsigned in_git; /* changed paths in .git, which are not in items */
    unsigned hooks;  /* of these: hooks and settings */
    int staging_fd;  /* a directory with the contents of changed files */
    char staging[64];
    bool is_replaced; /* the directory itself was replaced */
};

/* Opens the directory. Returns 0, or the exit status after a report. */
int repo_open(struct repo *repo, const char *text);

/* Copies it into the sandbox, and remembers what was copied. Returns like repo_open. */
int repo_push(struct repo *repo, struct holt *holt, const char *sandbox);

void repo_done(struct repo *repo);

/* Returns what was copied at this path; NULL: nothing was. */
const struct repo_file *repo_find(const struct repo *repo, const char *path);

/* Returns whether a path has a component .git, in any case; *ret_is_hook: it is one of those that
 * git executes or obeys. */
bool repo_path_is_git(const char *path, bool *ret_is_hook);

/* Adds a change that the daemon has reported; old_path may be "". */
void repo_changes_add(struct repo_changes *changes, const char *path, const char *old_path,
                      const char *type, bool is_deleted);

/* Fetches the contents of all changed files to a private directory. Returns like repo_open. */
int repo_changes_fetch(struct repo_changes *changes, const struct repo *repo, struct holt *holt,
                       const char *sandbox);

/* Writes the changes to the directory: all that are not refused, or none if a file has changed
 * there meanwhile. Returns like repo_open. */
int repo_apply(const struct repo *repo, const struct repo_changes *changes);

void repo_changes_done(struct repo_changes *changes);
