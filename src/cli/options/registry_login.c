// SPDX-License-Identifier: Apache-2.0
#include "cli/options/registry_login.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/io.h"
#include "base/json.h"
#include "base/text/image_ref.h"
#include "base/xalloc.h"

/* The key of Docker Hub in the file, since before there were other registries. */
#define DOCKER_HUB_KEY "https://index.docker.io/v1/"

enum { FILE_BYTES_MAX = 1 << 20, LOGIN_BYTES_MAX = 16 * 1024 };

static char *config_path(void)
{
    const char *dir = getenv("DOCKER_CONFIG"), *home = getenv("HOME");

    if (dir && *dir)
        return xasprintf("%s/config.json", dir);
    return xasprintf("%s/.docker/config.json", home ? home : "");
}

/* Splits base64 of USER:PASSWORD. */
static void login_split(const char *text, struct registry_login *ret)
{
    cleanup_with(buf_done) struct buf plain = BUF_INIT(LOGIN_BYTES_MAX);
    char *colon;

    if (json_decode_bytes(text, &plain) < 0 || !plain.data || memchr(plain.data, 0, plain.len))
        return;
    colon = strchr(plain.data, ':');
    if (colon && colon != plain.data) {
        *colon = '\0';
        ret->user = xstrdup(plain.data);
        ret->password = xstrdup(colon + 1);
    }
    explicit_bzero(plain.data, plain.len);
}

void registry_login_find(const char *registry, struct registry_login *ret)
{
    cleanup_with(buf_done) struct buf text = BUF_INIT(FILE_BYTES_MAX);
    cleanup_free char *path = config_path();
    cleanup_json json_t *object = NULL;
    const json_t *auths, *entry;
    const char *auth;
    struct err ignored;

    *ret = (struct registry_login){ .user = NULL };
    if (file_read_at(AT_FDCWD, path, &text) < 0 || !text.data ||
        json_parse_object(text.data, text.len, &object, &ignored) < 0)
        return;
    auths = json_object_get(object, "auths");
    entry =
        json_object_get(auths, strcmp(registry, IMAGE_DOCKER_HUB) == 0 ? DOCKER_HUB_KEY : registry);
    auth = json_string_value(json_object_get(entry, "auth"));
    if (auth)
        login_split(auth, ret);
}

void registry_login_done(struct registry_login *login)
{
    free(login->user);
    wiped_free(login->password);
    *login = (struct registry_login){ .user = NULL };
}
