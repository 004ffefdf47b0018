/* The certificates that Java trusts: a file of the format JKS, which distributions make of those of
 * the system. */
#pragma once

struct buf;

/* Writes a keystore with the certificate of a PEM added to it, under the password that all of them
 * have. Returns 0, -EINVAL for another format, or -errno. */
int keystore_add(const struct buf *store, const char *pem, struct buf *ret);
