// SPDX-License-Identifier: Apache-2.0
#include "auth/token.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/io.h"
#include "base/random.h"
#include "base/text/hex.h"

enum { TOKEN_FILE_MAX = 4096 };

static bool is_token(const char *text, size_t len)
{
    return len == TOKEN_LEN && hex_is_text(text, TOKEN_LEN);
}

static int token_read(int dir_fd, char ret[TOKEN_LEN + 1])
{
    cleanup_with(buf_done) struct buf content = BUF_INIT(TOKEN_FILE_MAX);
    int r = file_read_at(dir_fd, "token", &content);

    if (r < 0)
        return r;
    if (content.len > 0 && content.data[content.len - 1] == '\n')
        content.data[--content.len] = '\0';
    if (!content.data || !is_token(content.data, content.len))
        return -EBADMSG;
    memcpy(ret, content.data, TOKEN_LEN + 1);
    return 0;
}

/* Renames a complete file into place, so that a crash never leaves half a token, and none is lost
 * that a client has read. */
static int token_write(int dir_fd, const char *token)
{
    char line[TOKEN_LEN + 2];

    (void)snprintf(line, sizeof(line), "%s\n", token);
    (void)unlinkat(dir_fd, "token.new", 0);
    return file_replace_at(dir_fd, "token", line, strlen(line));
}

int token_load(const char *state_dir, char ret[TOKEN_LEN + 1], struct err *err)
{
    cleanup_close int dir_fd = open(state_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int r;

    if (dir_fd < 0)
        return err_sys(err, -errno, "open %s", state_dir);
    r = token_read(dir_fd, ret);
    if (r == -EBADMSG)
        return err_set(err, ERR_INVALID,
                       "%s/token does not hold %d hexadecimal digits; remove it to get a new one",
                       state_dir, TOKEN_LEN);
    if (r < 0 && r != -ENOENT)
        return err_sys(err, r, "read %s/token", state_dir);
    if (r == 0)
        return 0;
    r = random_hex(ret, TOKEN_BYTES);
    if (r == 0)
        r = token_write(dir_fd, ret);
    if (r < 0)
        return err_sys(err, r, "make %s/token", state_dir);
    return 0;
}
