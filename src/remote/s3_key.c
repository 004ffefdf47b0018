// SPDX-License-Identifier: Apache-2.0
#include "remote/s3_key.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/crypto.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/io.h"

void s3_key_done(struct s3_key *key)
{
    OPENSSL_cleanse(key, sizeof(*key));
}

/* Reads the first line. */
static int line_read(const char *path, char ret[S3_KEY_FILE_MAX], struct err *err)
{
    cleanup_close int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    struct stat st;
    ssize_t n;

    if (fd < 0)
        return err_sys(err, -errno, "open remote.key-file '%.120s'", path);
    if (fstat(fd, &st) < 0)
        return err_sys(err, -errno, "inspect remote.key-file '%.120s'", path);
    if (!S_ISREG(st.st_mode))
        return err_set(err, ERR_INVALID, "remote.key-file '%.120s' is no regular file", path);
    if (st.st_mode & (S_IRWXG | S_IRWXO)) {
        (void)err_set(err, ERR_INVALID,
                      "remote.key-file '%.120s' has mode %04o: others than its owner may use it",
                      path, st.st_mode & 07777);
        return err_remedy(err, "chmod 600 '%.120s'", path);
    }
    n = read_full(fd, ret, S3_KEY_FILE_MAX);
    if (n < 0)
        return err_sys(err, (int)n, "read remote.key-file '%.120s'", path);
    if (n == S3_KEY_FILE_MAX)
        return err_set(err, ERR_INVALID, "remote.key-file '%.120s' is too long", path);
    ret[n] = '\0';
    ret[strcspn(ret, "\r\n")] = '\0';
    return 0;
}

/* Returns whether a text can be a part of a header. */
static bool word_is(const char *text)
{
    if (*text == '\0')
        return false;
    for (; *text; text++) {
        if (*text <= ' ' || *text >= 0x7f)
            return false;
    }
    return true;
}

int s3_key_read(const char *path, struct s3_key *ret, struct err *err)
{
    char *secret, *token;
    int r = line_read(path, ret->text, err);

    if (r < 0)
        return r;
    secret = strchr(ret->text, ':');
    if (secret)
        *secret++ = '\0';
    token = secret ? strchr(secret, ':') : NULL;
    if (token)
        *token++ = '\0';
    if (!secret || !word_is(ret->text) || !word_is(secret) || (token && !word_is(token)))
        return err_set(err, ERR_INVALID,
                       "remote.key-file '%.120s' does not begin with ACCESS_KEY:SECRET_KEY", path);
    ret->access = ret->text;
    ret->secret = secret;
    ret->token = token ? token : "";
    return 0;
}
