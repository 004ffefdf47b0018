/* As whom a request of E2B's acts inside its sandbox. */
#pragma once

#include "base/file_entry.h"
#include "host/process.h"

struct e2b_request;
struct err;
struct file_call;

/* A name, or several of whom the first that the sandbox has counts: what a request that names
 * nobody means. */
struct e2b_user {
    char name[PROCESS_USER_MAX + 1];
    bool is_named;                 /* by the request */
    char home[ENTRY_PATH_MAX + 1]; /* "": e2b_user_look has not been asked */
};

/* Whom a Connect call names (Basic, without a password), or a REST call (?username=). */
int e2b_user_of_call(const struct e2b_request *request, struct e2b_user *ret, struct err *err);
int e2b_user_of_query(const struct e2b_request *request, struct e2b_user *ret, struct err *err);

/* Asks the sandbox who that is. ERR_UNAUTHENTICATED for nobody. */
int e2b_user_look(struct file_call *files, struct e2b_user *user, struct err *err);

/* A path as the client wrote it, from the root: others than absolute ones begin at the user's home.
 * Without "." and "..", and without a slash at its end. ERR_INVALID when it is too long. */
int e2b_user_path(const struct e2b_user *user, const char *path, char ret[ENTRY_PATH_MAX + 1],
                  struct err *err);

/* The error of a name that the sandbox does not know. */
int e2b_user_refuse(const char *name, struct err *err);
