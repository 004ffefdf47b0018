/* What the files that read keys share. */
#pragma once

#include <openssl/types.h>
#include <stdbool.h>
#include <stddef.h>

/* Makes a key of what the builder has, if it has everything; NULL: it is no key. The selection is
 * EVP_PKEY_PUBLIC_KEY or EVP_PKEY_KEYPAIR. Frees the builder. */
EVP_PKEY *ssh_pkey_build(const char *kind, int selection, OSSL_PARAM_BLD *builder, bool is_whole);

/* Reads a private key as ssh-keygen writes it. Returns 0, -ENOENT for text of another format,
 * -EACCES if it has a passphrase, -ENOTSUP for another kind of key, or -EBADMSG. */
int openssh_key_read(const char *text, size_t len, EVP_PKEY **ret);
