/* As whom a request of E2B's acts inside its sandbox. */
#pragma once

#include "host/process/process.h"

struct e2b_request;
struct err;

/* A name, or several of whom the first that the sandbox has counts: what a request that names
 * nobody means. */
struct e2b_user {
    char name[PROCESS_USER_MAX + 1];
    bool is_named; /* by the request */
};

/* Whom a Connect call names (Basic, without a password), or a REST call (?username=). */
int e2b_user_of_call(const struct e2b_request *request, struct e2b_user *ret, struct err *err);
int e2b_user_of_query(const struct e2b_request *request, struct e2b_user *ret, struct err *err);

/* The error of a name that the sandbox does not know. */
int e2b_user_refuse(const char *name, struct err *err);
