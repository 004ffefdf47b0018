/* Resolves the user that a spawn names. */
#pragma once

struct guest;
struct message_spawn;

/* Fills in ids, groups, environment and working directory of message->user and message->group. The
 * strings are valid until the next call. Returns 0, -ENOENT for an unknown user or group, -EINVAL,
 * -ENAMETOOLONG or -E2BIG.
 */
int user_resolve(struct guest *guest, struct message_spawn *message);
