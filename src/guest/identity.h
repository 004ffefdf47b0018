/* Machine identity: a boot id, of which the kernel has one for all sandboxes of a host, a machine
 * id, which a fork would otherwise share with its source, and the names of the sandbox: its host
 * name and the files of /etc that agree with it. Processes of the sandbox may write to these, as in
 * a container of Docker; each new root gets new ones. None of them is in a layer. */
#pragma once

#include "guest/trust.h"

struct err;

struct identity {
    int files_fd; /* private tmpfs that holds both ids and guest/resources.h */
    int etc_fd;   /* tmpfs with the files of /etc, which processes of the sandbox may fill */
    struct trust trust;
};

/* Creates a random boot id and mounts it over the kernel's boot_id file. Returns 0 or -errno. */
int identity_make(struct identity *ret);

/* Mounts a machine id derived from the host name over /etc/machine-id of the root at root_fd, and
 * files of its own over /etc/hosts, /etc/hostname and /etc/resolv.conf. What is missing in the
 * root, or not a regular file, stays as it is. */
int identity_cover(struct identity *identity, int root_fd, const char *hostname, struct err *err);
