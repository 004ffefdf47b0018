/* A file of a sandbox, as a request of E2B's names it. */
#pragma once

#include "api/e2b_user.h"
#include "base/file_entry.h"

struct e2b_request;
struct err;
struct file_call;
struct file_request;

/* A worker of the sandbox, and for whom it works. */
struct e2b_files {
    struct file_call *call;
    struct e2b_user user;
};

/* For the user of a Connect call, or of a REST call. The caller calls e2b_files_close, also when it
 * fails. */
int e2b_files_open(const struct e2b_request *request, bool is_rest, struct e2b_files *ret,
                   struct err *err);
void e2b_files_close(struct e2b_files *files);

/* The path of a field of the message, from the root. */
int e2b_files_path(const struct e2b_request *request, const char *field,
                   const struct e2b_files *files, char ret[ENTRY_PATH_MAX + 1], struct err *err);

/* Asks for something with the rights of root, for the user; entries have their details. */
int e2b_files_ask(struct e2b_files *files, struct file_request *request, struct err *err);

/* The same, and the one entry that is the answer. Its texts are valid until the next call. What is
 * not there is said so in E2B's words. */
int e2b_files_ask_one(struct e2b_files *files, struct file_request *request, struct file_entry *ret,
                      struct err *err);

/* What is not there, said in E2B's words; any other error as it is. Returns r. */
int e2b_files_explain(int r, const char *path, struct err *err);
