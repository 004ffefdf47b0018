/* Which files of the host's /etc the host template may show. */
#pragma once

struct err;

/* name is below dir_fd on the host, path is where it goes in the template. */
typedef int (*host_etc_fn)(int dir_fd, const char *name, const char *path, void *context,
                           struct err *err);

/* Calls fn for each allowed file, link or directory there is, in a fixed order. */
int host_etc_each(host_etc_fn fn, void *context, struct err *err);

/* A host_etc_fn: adds what tells one version from the next to the struct digest in context. */
int host_etc_digest(int dir_fd, const char *name, const char *path, void *context, struct err *err);
