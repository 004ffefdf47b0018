/* The certificate authority of this host, by which holt-net makes certificates for the hosts of
 * secrets. Sandboxes that have secrets trust it; nothing else does. ca.key and ca.pem in the state
 * directory, both of mode 0600. */
#pragma once

#include <stdbool.h>

struct err;

struct authority {
    char *certificate; /* PEM */
    char *key;         /* PEM */
    char hash[16];     /* of its subject, as names in a directory of certificates have it */
};

/* Reads the authority of a state directory, or makes it if make is set. Returns 1, 0 if there is
 * none, or fails with ERR_INTERNAL. */
int authority_open(int state_fd, bool make, struct authority *ret, struct err *err);

/* Wipes the key. */
void authority_done(struct authority *authority);
