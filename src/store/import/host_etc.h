/* The files of the host's /etc that the host template may contain. */
#pragma once

struct err;

/* name is below dir_fd on the host; path is its path in the template. */
typedef int (*host_etc_fn)(int dir_fd, const char *name, const char *path, void *context,
                           struct err *err);

/* Calls fn for each allowed file, link or directory that exists, in a fixed order. */
int host_etc_each(host_etc_fn fn, void *context, struct err *err);

/* A host_etc_fn: adds the identity and change times of a file to the struct digest in context. */
int host_etc_digest(int dir_fd, const char *name, const char *path, void *context, struct err *err);
