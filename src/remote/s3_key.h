/* The file with the credentials of an S3 API: its first line is ACCESS_KEY:SECRET_KEY, or
 * ACCESS_KEY:SECRET_KEY:SESSION_TOKEN. */
#pragma once

#include <stddef.h>

struct err;

enum { S3_KEY_FILE_MAX = 8 * 1024 };

struct s3_key {
    char text[S3_KEY_FILE_MAX];
    const char *access, *secret, *token; /* in text; token "": none */
};

/* Reads the file, which nobody but its owner may be able to read. */
int s3_key_read(const char *path, struct s3_key *ret, struct err *err);

/* Overwrites the secrets. */
void s3_key_done(struct s3_key *key);
