/* A file of a sandbox, as a request of E2B's names it. */
#pragma once

#include "base/files/file_entry.h"
#include "e2b/core/user.h"

struct e2b_request;
struct err;
struct file_call;
struct file_request;

/* A file worker of the sandbox, and the user that it works for. */
struct e2b_files {
    struct file_call *call;
    struct e2b_user user;
    bool is_rest;
};

/* For the user of a Connect call, or of a REST call. The caller calls e2b_files_close, also when it
 * fails. */
int e2b_files_open(const struct e2b_request *request, bool is_rest, struct e2b_files *ret,
                   struct err *err);
void e2b_files_close(struct e2b_files *files);

/* Returns the path of a message, or the user's home for an empty one. */
const char *e2b_files_path(const char *path);

/* Sends a request with the rights of root on behalf of the user. Relative paths start at the user's
 * home; reported paths are absolute; entries have all details. */
int e2b_files_ask(struct e2b_files *files, struct file_request *request, struct err *err);

/* The same, and the one entry that is the answer. Its texts are valid until the next call. */
int e2b_files_ask_one(struct e2b_files *files, struct file_request *request, struct file_entry *ret,
                      struct err *err);

/* Translates a refusal into E2B's words: a missing path, an unknown user; other errors stay.
 * Returns r or its replacement. */
int e2b_files_explain(const struct e2b_files *files, int r, struct err *err);
