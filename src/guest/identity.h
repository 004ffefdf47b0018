/* What tells one machine from another: a boot id, which the kernel has only one of for all
 * sandboxes of a host, and a machine id, which a fork would share with its original. */
#pragma once

struct err;

struct identity {
    int files_fd; /* a small filesystem that only we can see, with both files in it */
};

/* Makes a fresh boot id and puts it where programs look for it. 0 or -errno. */
int identity_make(struct identity *ret);

/* Puts a machine id of its own, the same for the same host name, over the one that a root at
 * root_fd has; one that has none gets none. */
int identity_cover(const struct identity *identity, int root_fd, const char *hostname,
                   struct err *err);
