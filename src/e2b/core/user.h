/* The user that an E2B request acts as inside its sandbox. */
#pragma once

#include "host/process/process.h"

struct e2b_request;
struct err;

/* The user of a request that names none: a name, or several, of which the first that exists counts.
 */
struct e2b_user {
    char name[PROCESS_USER_MAX + 1];
    bool is_named; /* by the request */
};

/* Returns the user that a Connect call (Basic, without a password) or a REST call (?username=)
 * names. */
int e2b_user_of_call(const struct e2b_request *request, struct e2b_user *ret, struct err *err);
int e2b_user_of_query(const struct e2b_request *request, struct e2b_user *ret, struct err *err);

/* The error of a name that the sandbox does not know. */
int e2b_user_refuse(const char *name, struct err *err);
