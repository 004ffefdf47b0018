/* Settings of a host that host_reload can change, and the limits that follow from them. */
#pragma once

struct config;
struct err;
struct host;

/* Fails with ERR_INVALID, naming the key, if a value is out of range. */
int settings_check(const struct config *config, struct err *err);

/* Copies the settings that can change while the daemon runs. The default quota is computed from the
 * storage; before that is open, it is none. */
void settings_apply(struct host *host, const struct config *config);
