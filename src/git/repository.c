// SPDX-License-Identifier: Apache-2.0
#include "git/repository.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"

enum { CHUNK_BYTES = 64 << 10, IGNORE_MAX = 64 << 10, MESSAGE_SIZE = 2048, TRAILER_SIZE = 192 };

DEFINE_CLEANUP(git_commit_free, git_commit *);
DEFINE_CLEANUP(git_tree_free, git_tree *);
DEFINE_CLEANUP(git_reference_free, git_reference *);
DEFINE_CLEANUP(git_signature_free, git_signature *);

static int git_failed(struct err *err, const char *what)
{
    const git_error *last = git_error_last();

    return err_set(err, ERR_INVALID, "git cannot %s: %.150s", what,
                   last && last->message ? last->message : "unknown error");
}

/* --- the branch ------------------------------------------------------------------------------- */

static void trailer_format(const struct branch *branch, char ret[TRAILER_SIZE])
{
    (void)snprintf(ret, TRAILER_SIZE, "\nHolt-Codebase: %s\nHolt-Version: ", branch->codebase);
}

/* Reads the version that a commit has, as branch_commit has written it. */
static int version_read(struct branch *branch, const git_commit *commit, struct err *err)
{
    const char *message = git_commit_message(commit), *at;
    char trailer[TRAILER_SIZE];

    trailer_format(branch, trailer);
    at = message ? strstr(message, trailer) : NULL;
    if (at) {
        branch->version = (uint32_t)strtoul(at + strlen(trailer), NULL, 10);
        return 0;
    }
    (void)err_set(err, ERR_EXISTS, "branch '%.100s' exists, and its last commit is not of '%.100s'",
                  branch->ref + strlen("refs/heads/"), branch->name);
    return err_remedy(err, "name another branch");
}

static int tip_read(struct branch *branch, bool has_version, struct err *err)
{
    cleanup_with(git_commit_free_slot) git_commit *commit = NULL;
    cleanup_with(git_tree_free_slot) git_tree *tree = NULL;

    if (git_commit_lookup(&commit, branch->repository, &branch->tip) < 0) {
        char id[GIT_ID_LEN + 1];

        return err_set(err, ERR_INVALID,
                       "the repository lacks commit %s, which version 0 was copied from",
                       git_oid_tostr(id, sizeof(id), &branch->tip));
    }
    if (git_commit_tree(&tree, commit) < 0 || git_index_read_tree(branch->index, tree) < 0)
        return git_failed(err, "read the last commit");
    branch->has_tip = true;
    branch->tree = *git_tree_id(tree);
    return has_version ? version_read(branch, commit, err) : 0;
}

/* A branch that somebody works on must not move under them, also if it has no commit yet. */
static int checkout_refuse(struct branch *branch, struct err *err)
{
    cleanup_with(git_reference_free_slot) git_reference *head = NULL;
    bool is_head = git_reference_lookup(&head, branch->repository, "HEAD") == 0 &&
                   git_reference_type(head) == GIT_REFERENCE_SYMBOLIC &&
                   strcmp(git_reference_symbolic_target(head), branch->ref) == 0;

    if (!is_head && !(branch->old && git_branch_is_checked_out(branch->old) == 1))
        return 0;
    (void)err_set(err, ERR_BUSY, "branch '%.100s' is checked out",
                  branch->ref + strlen("refs/heads/"));
    return err_remedy(err, "name another branch, and merge it with git");
}

static int repository_open(struct branch *branch, struct err *err)
{
    if (git_repository_open_ext(&branch->repository, "/", GIT_REPOSITORY_OPEN_NO_SEARCH, NULL) < 0)
        return git_failed(err, "open the repository");
    if (git_repository_odb(&branch->odb, branch->repository) < 0 ||
        git_index_new(&branch->index) < 0)
        return git_failed(err, "read the repository");
    return 0;
}

int branch_open(struct branch *branch, const char *const texts[GIT_TEXTS], struct err *err)
{
    const char *base = texts[3];
    int len = snprintf(branch->ref, sizeof(branch->ref), "refs/heads/%s", texts[0]), is_valid = 0;
    int r = repository_open(branch, err);

    if (r < 0)
        return r;
    branch->version = GIT_NO_VERSION;
    (void)snprintf(branch->codebase, sizeof(branch->codebase), "%s", texts[1]);
    (void)snprintf(branch->name, sizeof(branch->name), "%s", texts[2]);
    if ((size_t)len >= sizeof(branch->ref) || *texts[0] == '-' ||
        git_reference_name_is_valid(&is_valid, branch->ref) < 0 || !is_valid)
        return err_set(err, ERR_INVALID, "'%.100s' is not a name for a branch", texts[0]);
    if (git_reference_lookup(&branch->old, branch->repository, branch->ref) < 0)
        branch->old = NULL;
    r = checkout_refuse(branch, err);
    if (r < 0)
        return r;
    if (branch->old) {
        const git_oid *id = git_reference_target(branch->old);

        if (!id)
            return err_set(err, ERR_INVALID, "branch '%.100s' is another name of a branch",
                           texts[0]);
        branch->tip = *id;
    } else if (*base == '\0') {
        return 0;
    } else if (git_oid_fromstr(&branch->tip, base) < 0) {
        return git_failed(err, "read the commit of version 0");
    }
    return tip_read(branch, branch->old != NULL, err);
}

void branch_close(struct branch *branch)
{
    git_reference_free(branch->old);
    git_index_free(branch->index);
    git_odb_free(branch->odb);
    git_repository_free(branch->repository);
}

/* --- changes ---------------------------------------------------------------------------------- */

/* What git keeps for itself, here or in a repository within this one. */
static bool is_of_git(const char *path)
{
    for (const char *at = path; *at; at += strcspn(at, "/"), at += *at == '/')
        if (strncasecmp(at, ".git", 4) == 0 && (at[4] == '/' || at[4] == '\0'))
            return true;
    return false;
}

static bool is_left_out(struct branch *branch, const char *path)
{
    int is_ignored = 0;

    if (is_of_git(path))
        return true;
    if (git_index_get_bypath(branch->index, path, 0))
        return false;
    return git_ignore_path_is_ignored(&is_ignored, branch->repository, path) == 0 && is_ignored;
}

static int entry_put(struct branch *branch, const char *path, uint32_t mode, const git_oid *id,
                     struct err *err)
{
    const git_index_entry entry = { .path = path, .mode = mode, .id = *id };

    if (git_index_add(branch->index, &entry) < 0)
        return git_failed(err, "take a path");
    return 0;
}

/* The new version may ignore what the work tree does not. */
static void ignore_add(struct branch *branch, int fd)
{
    cleanup_free char *text = calloc(1, IGNORE_MAX);
    ssize_t len = text ? pread(fd, text, IGNORE_MAX - 1, 0) : -1;

    if (len > 0)
        (void)git_ignore_add_rule(branch->repository, text);
}

static int stream_copy(git_odb_stream *stream, int fd, uint64_t size)
{
    static char chunk[CHUNK_BYTES];

    while (size > 0) {
        ssize_t len = read(fd, chunk, size < sizeof(chunk) ? (size_t)size : sizeof(chunk));

        if (len < 0 && errno == EINTR)
            continue;
        if (len <= 0)
            return len < 0 ? -errno : -EIO;
        if (git_odb_stream_write(stream, chunk, (size_t)len) < 0)
            return -EIO;
        size -= (uint64_t)len;
    }
    return 0;
}

int branch_put_file(struct branch *branch, const char *path, uint32_t mode, int fd, struct err *err)
{
    git_odb_stream *stream = NULL;
    struct stat st;
    git_oid id;
    int r;

    if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
        return err_set(err, ERR_INTERNAL, "'%.100s' is not a file", path);
    if (strcmp(path, ".gitignore") == 0)
        ignore_add(branch, fd);
    if (is_left_out(branch, path))
        return 0;
    if (git_odb_open_wstream(&stream, branch->odb, (git_object_size_t)st.st_size, GIT_OBJECT_BLOB) <
        0)
        return git_failed(err, "write a file");
    r = stream_copy(stream, fd, (uint64_t)st.st_size);
    if (r < 0 || git_odb_stream_finalize_write(&id, stream) < 0)
        r = git_failed(err, "write a file");
    git_odb_stream_free(stream);
    return r < 0 ? r
                 : entry_put(branch, path,
                             mode & S_IXUSR ? GIT_FILEMODE_BLOB_EXECUTABLE : GIT_FILEMODE_BLOB, &id,
                             err);
}

int branch_put_link(struct branch *branch, const char *path, const char *target, struct err *err)
{
    git_oid id;

    if (is_left_out(branch, path))
        return 0;
    if (git_odb_write(&id, branch->odb, target, strlen(target), GIT_OBJECT_BLOB) < 0)
        return git_failed(err, "write a link");
    return entry_put(branch, path, GIT_FILEMODE_LINK, &id, err);
}

/* A path that became a directory may have had entries of its own by now. */
int branch_remove(struct branch *branch, const char *path, struct err *err)
{
    (void)err;
    if (!is_of_git(path))
        (void)git_index_remove(branch->index, path, 0);
    return 0;
}

/* --- commits ---------------------------------------------------------------------------------- */

static void message_format(const struct branch *branch, const struct branch_commit *commit,
                           char ret[MESSAGE_SIZE])
{
    char trailer[TRAILER_SIZE], first[200];

    trailer_format(branch, trailer);
    (void)snprintf(first, sizeof(first), "Version %u of %.150s", commit->version, branch->name);
    (void)snprintf(ret, MESSAGE_SIZE, "%.1100s\n%s%u\n%s%.64s%s",
                   *commit->message ? commit->message : first, trailer, commit->version,
                   *commit->sandbox ? "Holt-Sandbox: " : "", commit->sandbox,
                   *commit->sandbox ? "\n" : "");
}

static int commit_make(struct branch *branch, const struct branch_commit *commit, git_tree *tree,
                       struct err *err)
{
    cleanup_with(git_signature_free_slot) git_signature *by = NULL;
    cleanup_with(git_commit_free_slot) git_commit *parent = NULL;
    const git_commit *parents[1];
    char message[MESSAGE_SIZE];

    if (branch->has_tip && git_commit_lookup(&parent, branch->repository, &branch->tip) < 0)
        return git_failed(err, "read the last commit");
    parents[0] = parent;
    message_format(branch, commit, message);
    if (git_signature_new(&by, "Holt", "holt@localhost", commit->time, 0) < 0 ||
        git_commit_create(&branch->tip, branch->repository, NULL, by, by, NULL, message, tree,
                          branch->has_tip, parents) < 0)
        return git_failed(err, "write the commit");
    branch->tree = *git_tree_id(tree);
    branch->has_tip = true;
    branch->made++;
    return 0;
}

int branch_commit(struct branch *branch, const struct branch_commit *commit, struct err *err)
{
    cleanup_with(git_tree_free_slot) git_tree *tree = NULL;
    git_oid id;

    if (git_index_write_tree_to(&id, branch->index, branch->repository) < 0)
        return git_failed(err, "write the directories");
    if (branch->has_tip && git_oid_equal(&id, &branch->tree))
        return 0;
    if (git_tree_lookup(&tree, branch->repository, &id) < 0)
        return git_failed(err, "read the directories");
    return commit_make(branch, commit, tree, err);
}

int branch_finish(struct branch *branch, char ret[GIT_ID_LEN + 1], struct err *err)
{
    cleanup_with(git_reference_free_slot) git_reference *made = NULL;
    cleanup_close int root_fd = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int r = 0;

    if (!branch->has_tip)
        return err_set(err, ERR_INVALID, "codebase '%.100s' has nothing to commit", branch->name);
    (void)git_oid_tostr(ret, GIT_ID_LEN + 1, &branch->tip);
    if (branch->old && git_oid_equal(&branch->tip, git_reference_target(branch->old)))
        return 0;
    if (root_fd < 0 || syncfs(root_fd) < 0) /* the branch must not name what a crash loses */
        return err_sys(err, -errno, "write the commits to the disk");
    if (branch->old)
        r = git_reference_create_matching(&made, branch->repository, branch->ref, &branch->tip, 1,
                                          git_reference_target(branch->old),
                                          "holt codebase branch");
    else
        r = git_reference_create(&made, branch->repository, branch->ref, &branch->tip, 0,
                                 "holt codebase branch");
    if (r == GIT_EMODIFIED || r == GIT_EEXISTS || r == GIT_ELOCKED)
        return err_set(err, ERR_BUSY, "branch '%.100s' was changed meanwhile",
                       branch->ref + strlen("refs/heads/"));
    if (r < 0)
        return git_failed(err, "write the branch");
    return syncfs(root_fd) < 0 ? err_sys(err, -errno, "write the branch to the disk") : 0;
}
