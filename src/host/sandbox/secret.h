/* The secrets of a sandbox and its network. */
#pragma once

struct err;
struct host;
struct sandbox_info;
struct sandbox_spec;

/* Fills in the secrets of a new sandbox, whose network is known. Fails like secret_grants_make, and
 * with ERR_INVALID if the network reaches no host of a secret: secrets do not widen it. A host with
 * a wildcard is not looked at. */
int sandbox_secrets_fill(struct host *host, const struct sandbox_spec *spec,
                         struct sandbox_info *info, struct err *err);
