// SPDX-License-Identifier: Apache-2.0
#include "base/text/image_ref.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define LOWER "abcdefghijklmnopqrstuvwxyz"
#define UPPER "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
#define DIGITS "0123456789"
#define SHA256 "sha256:"
#define OFFICIAL "library/"

enum { TAG_MAX = 128, PORT_DIGITS_MAX = 5 };

bool image_digest_is(const char *text)
{
    const char *hex = text + strlen(SHA256);

    return strncmp(text, SHA256, strlen(SHA256)) == 0 && strlen(text) == IMAGE_DIGEST_LEN &&
           hex[strspn(hex, DIGITS "abcdef")] == '\0';
}

static bool tag_is(const char *text)
{
    return strspn(text, LOWER UPPER DIGITS "_") > 0 && strlen(text) <= TAG_MAX &&
           text[strspn(text, LOWER UPPER DIGITS "_.-")] == '\0';
}

/* A host name or address, perhaps with a port. */
static bool registry_is(const char *text)
{
    const char *end = text + strspn(text, LOWER UPPER DIGITS ".-");

    if (*text == '[') {
        end = text + 1 + strspn(text + 1, DIGITS "abcdefABCDEF:.");
        if (*end++ != ']')
            return false;
    }
    if (end == text || *text == '-' || *text == '.')
        return false;
    if (*end == '\0')
        return true;
    return *end == ':' && end[1] && strspn(end + 1, DIGITS) == strlen(end + 1) &&
           strlen(end + 1) <= PORT_DIGITS_MAX;
}

/* Components of lower-case letters and digits, which '.', '_', '__' and any number of '-' may
 * separate. */
static bool repository_is(const char *text)
{
    for (;;) {
        size_t len = strspn(text, LOWER DIGITS);

        if (len == 0)
            return false;
        text += len;
        if (*text == '\0')
            return true;
        if (*text == '-')
            text += strspn(text, "-");
        else if (strncmp(text, "__", 2) == 0)
            text += 2;
        else if (*text == '.' || *text == '_' || *text == '/')
            text++;
        else
            return false;
    }
}

/* Cuts the digest and the tag off the end of a name. */
static int suffixes_cut(char *name, struct image_ref *ref)
{
    char *at = strchr(name, '@'), *slash, *colon;

    if (at) {
        *at = '\0';
        if (!image_digest_is(at + 1))
            return -EINVAL;
        (void)snprintf(ref->digest, sizeof(ref->digest), "%s", at + 1);
    }
    slash = strrchr(name, '/');
    colon = strrchr(slash ? slash : name, ':');
    if (colon) {
        *colon = '\0';
        if (!tag_is(colon + 1))
            return -EINVAL;
    }
    if (!at)
        (void)snprintf(ref->tag, sizeof(ref->tag), "%s", colon ? colon + 1 : "latest");
    return 0;
}

/* Splits the rest in registry and repository. */
static int name_split(const char *name, struct image_ref *ref)
{
    const char *slash = strchr(name, '/');
    char first[IMAGE_REF_MAX + 1];

    (void)snprintf(first, sizeof(first), "%.*s", slash ? (int)(slash - name) : 0, name);
    if (slash && (strpbrk(first, ".:[") || strcmp(first, "localhost") == 0)) {
        if (!registry_is(first))
            return -EINVAL;
        name = slash + 1;
    } else {
        first[0] = '\0';
    }
    if (!first[0] || strcmp(first, "index.docker.io") == 0)
        (void)snprintf(first, sizeof(first), IMAGE_DOCKER_HUB);
    if (!repository_is(name))
        return -EINVAL;
    (void)snprintf(ref->registry, sizeof(ref->registry), "%s", first);
    if (snprintf(ref->repository, sizeof(ref->repository), "%s%s",
                 strcmp(first, IMAGE_DOCKER_HUB) == 0 && !strchr(name, '/') ? OFFICIAL : "",
                 name) > IMAGE_REF_MAX)
        return -EINVAL;
    return 0;
}

int image_ref_parse(const char *text, struct image_ref *ret)
{
    struct image_ref ref = { .tag = "" };
    char name[IMAGE_REF_MAX + 1];
    const char *repository = ref.repository;
    bool is_hub;
    int r;

    if (snprintf(name, sizeof(name), "%s", text) > IMAGE_REF_MAX)
        return -EINVAL;
    r = suffixes_cut(name, &ref);
    if (r == 0)
        r = name_split(name, &ref);
    if (r < 0)
        return r;
    is_hub = strcmp(ref.registry, IMAGE_DOCKER_HUB) == 0;
    if (is_hub && strncmp(repository, OFFICIAL, strlen(OFFICIAL)) == 0)
        repository += strlen(OFFICIAL);
    if (snprintf(ref.familiar, sizeof(ref.familiar), "%s%s%s%s%s", is_hub ? "" : ref.registry,
                 is_hub ? "" : "/", repository, ref.tag[0] ? ":" : "@",
                 ref.tag[0] ? ref.tag : ref.digest) > IMAGE_REF_MAX)
        return -EINVAL;
    *ret = ref;
    return 0;
}

bool image_ref_is(const char *word)
{
    const char *slash = strrchr(word, '/');
    struct image_ref ref;

    return strpbrk(slash ? slash : word, ":@") && image_ref_parse(word, &ref) == 0;
}
