/* Secrets of E2B's clients, for host/secret. */
#pragma once

struct e2b_objects;
struct err;
struct host;
struct secret_value;

/* Says at the start whether there are values that the key must open. */
void e2b_secrets_recover(struct host *host, struct e2b_objects *objects);

/* Opens the value of a secret of this owner; context is the struct e2b. A secret_source_fn. */
int e2b_secret_value(void *context, const char *owner, const char *id, struct secret_value *ret,
                     struct err *err);
