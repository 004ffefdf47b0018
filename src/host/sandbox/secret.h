/* The secrets of a sandbox and its network. */
#pragma once

struct err;
struct host;
struct sandbox_info;

/* Fails with ERR_INVALID unless the network of a new sandbox lets it reach a host of each of its
 * secrets: they do not widen it. A host with a wildcard is not looked at. */
int sandbox_secrets_check(struct host *host, const struct sandbox_info *info, struct err *err);
