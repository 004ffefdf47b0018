/* Secrets of E2B's clients, for host/secret. */
#pragma once

struct err;
struct secret_value;

/* Opens the value of a secret of this owner; context is the struct e2b. A secret_source_fn. */
int e2b_secret_value(void *context, const char *owner, const char *id, struct secret_value *ret,
                     struct err *err);
