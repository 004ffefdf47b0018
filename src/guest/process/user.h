/* As whom a process runs, when its spawn names a user. */
#pragma once

struct guest;
struct message_spawn;

/* Puts in what the sandbox knows of the user: ids, groups, environment, working directory. The
 * texts are valid until the next call. 0, -ENOENT for nobody, -EINVAL or -E2BIG. */
int user_resolve(struct guest *guest, struct message_spawn *message);
