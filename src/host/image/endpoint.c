// SPDX-License-Identifier: Apache-2.0
#include "host/image/endpoint.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/json.h"
#include "base/text/image_ref.h"
#include "base/xalloc.h"
#include "host/core/config.h"

#define BLANKS " \t"
#define DOCKER_HUB_HOST "registry-1.docker.io"

enum { WORD_MAX = 512 };

struct image_config {
    char *registries, *mirrors, *insecure;
    uint64_t cache_bytes, bytes_max;
};

/* Copies the next word of a list. Returns what follows, or NULL at the end; a word that is too long
 * is cut, and so is no name of a registry. */
static const char *word_next(const char *text, char ret[WORD_MAX])
{
    size_t len;

    text += strspn(text, BLANKS);
    len = strcspn(text, BLANKS);
    (void)snprintf(ret, WORD_MAX, "%.*s", (int)(len < WORD_MAX ? len : WORD_MAX), text);
    return len > 0 ? text + len : NULL;
}

static bool list_has(const char *text, const char *registry)
{
    char word[WORD_MAX];

    while ((text = word_next(text, word)))
        if (strcmp(word, registry) == 0)
            return true;
    return false;
}

/* Returns whether a text is a registry as references name it. */
static bool registry_is(const char *text)
{
    char reference[WORD_MAX + 8];
    struct image_ref ref;

    (void)snprintf(reference, sizeof(reference), "%s/x:y", text);
    return image_ref_parse(reference, &ref) == 0 && strcmp(ref.registry, text) == 0;
}

int image_registries_check(const char *text, struct err *err)
{
    char word[WORD_MAX];

    while ((text = word_next(text, word)))
        if (!registry_is(word))
            return err_set(err, ERR_INVALID, "'%.80s' is not a registry: HOST or HOST:PORT", word);
    return 0;
}

static bool url_is(const char *text)
{
    const char *host = strstr(text, "://");

    return (strncmp(text, "http://", 7) == 0 || strncmp(text, "https://", 8) == 0) && host[3] &&
           host[3] != '/' && !strpbrk(host + 3, "@?#\\");
}

int image_mirrors_check(const char *text, struct err *err)
{
    char word[WORD_MAX];

    while ((text = word_next(text, word))) {
        char *equals = strchr(word, '=');

        if (equals)
            *equals = '\0';
        if (!equals || !registry_is(word) || !url_is(equals + 1))
            return err_set(err, ERR_INVALID, "'%.80s' is not REGISTRY=URL", word);
    }
    return 0;
}

struct image_config *image_config_new(const struct config *config)
{
    struct image_config *copy = xcalloc(1, sizeof(*copy));

    copy->registries = xstrdup(config->image_registries);
    copy->mirrors = xstrdup(config->image_mirrors);
    copy->insecure = xstrdup(config->image_insecure);
    copy->cache_bytes = config->image_cache;
    copy->bytes_max = config->template_bytes_max;
    return copy;
}

void image_config_free(struct image_config *config)
{
    if (!config)
        return;
    free(config->registries);
    free(config->mirrors);
    free(config->insecure);
    free(config);
}

uint64_t image_config_cache(const struct image_config *config)
{
    return config->cache_bytes;
}

uint64_t image_config_bytes_max(const struct image_config *config)
{
    return config->bytes_max;
}

static void mirrors_add(const struct image_config *config, const char *registry, json_t *list)
{
    const char *text = config->mirrors;
    char word[WORD_MAX];

    while ((text = word_next(text, word))) {
        char *url = strchr(word, '=');
        size_t len;

        if (!url)
            continue;
        *url++ = '\0';
        if (strcmp(word, registry) != 0)
            continue;
        for (len = strlen(url); len > 0 && url[len - 1] == '/'; len--)
            url[len - 1] = '\0';
        (void)json_array_append_new(
            list, json_pack("{s:s, s:b, s:b, s:b}", "url", url, "mirror", 1, "insecure",
                            (int)(strncmp(url, "http:", 5) == 0), "private", 1));
    }
}

/* As with Docker, a registry on this machine needs no TLS. */
static bool is_local(const char *registry)
{
    return strncmp(registry, "localhost:", 10) == 0 || strcmp(registry, "localhost") == 0 ||
           strncmp(registry, "127.", 4) == 0 || strncmp(registry, "[::1]", 5) == 0;
}

int image_endpoints(const struct image_config *config, const struct image_ref *ref, bool is_admin,
                    json_t **ret, struct err *err)
{
    bool is_hub = strcmp(ref->registry, IMAGE_DOCKER_HUB) == 0;
    bool is_listed = list_has(config->insecure, ref->registry);
    bool is_insecure = is_listed || is_local(ref->registry);
    cleanup_json json_t *list = json_array();
    char url[IMAGE_REF_MAX + 16];

    if (config->registries[strspn(config->registries, BLANKS)] &&
        !list_has(config->registries, ref->registry)) {
        (void)err_set(err, ERR_DENIED, "images of registry '%.100s' are not allowed",
                      ref->registry);
        return err_remedy(err, "Add it to image.registries of holt.conf.");
    }
    mirrors_add(config, ref->registry, list);
    (void)snprintf(url, sizeof(url), "%s://%s", is_insecure ? "http" : "https",
                   is_hub ? DOCKER_HUB_HOST : ref->registry);
    (void)json_array_append_new(list, json_pack("{s:s, s:b, s:b, s:b}", "url", url, "mirror", 0,
                                                "insecure", (int)is_insecure, "private",
                                                (int)(is_admin || is_listed)));
    *ret = TAKE_PTR(list);
    return 0;
}
