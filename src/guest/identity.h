/* Machine identity: a boot id, of which the kernel has one for all sandboxes of a host, and a
 * machine id, which a fork would otherwise share with its source. */
#pragma once

struct err;

struct identity {
    int files_fd; /* private tmpfs that holds both files */
};

/* Creates a random boot id and mounts it over the kernel's boot_id file. Returns 0 or -errno. */
int identity_make(struct identity *ret);

/* Mounts a machine id derived from the host name over /etc/machine-id of the root at root_fd. A
 * root without that file stays without one. */
int identity_cover(const struct identity *identity, int root_fd, const char *hostname,
                   struct err *err);
