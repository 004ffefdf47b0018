// SPDX-License-Identifier: Apache-2.0
#include "e2b/template/image.h"

#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "e2b/core/e2b.h"

enum { REPOSITORY_BYTES = 256 };

/* The root of base is Debian with Python in it. */
static const struct {
    const char *repository, *template;
} kept[] = {
    { "e2bdev/base", "base" },
    { "debian", "base" },
    { "ubuntu", "base" },
    { "python", "base" },
    { "e2bdev/code-interpreter", "code-interpreter-v1" },
};

/* Without the registry that is meant anyway, the tag, and the digest. */
static void repository_of(const char *image, char into[REPOSITORY_BYTES])
{
    static const char *const prefixes[] = { "docker.io/", "index.docker.io/", "library/" };
    const char *tag;

    for (size_t i = 0; i < ARRAY_SIZE(prefixes); i++)
        if (strncmp(image, prefixes[i], strlen(prefixes[i])) == 0)
            image += strlen(prefixes[i]);
    (void)snprintf(into, REPOSITORY_BYTES, "%.*s", (int)strcspn(image, "@"), image);
    tag = strrchr(into, '/');
    into[(tag ? (size_t)(tag - into) : 0) + strcspn(tag ? tag : into, ":")] = '\0';
}

static const char *template_for(const char *repository)
{
    for (size_t i = 0; i < ARRAY_SIZE(kept); i++)
        if (strcmp(kept[i].repository, repository) == 0)
            return kept[i].template;
    return NULL;
}

/* A template has no registry and no owner: of a name with these, only its end could be one's. */
static bool is_local(const struct e2b_request *request, const char *image, const char *repository,
                     struct e2b_template_ref *ret)
{
    struct err ignored;

    return !strchr(repository, '/') && (e2b_template_find(request, image, ret, &ignored) == 0 ||
                                        e2b_template_find(request, repository, ret, &ignored) == 0);
}

int e2b_image_find(const struct e2b_request *request, const char *image,
                   struct e2b_template_ref *ret, char notice[E2B_IMAGE_NOTICE_BYTES],
                   struct err *err)
{
    char repository[REPOSITORY_BYTES];
    const char *template;
    struct err ignored;

    notice[0] = '\0';
    repository_of(image, repository);
    if (is_local(request, image, repository, ret))
        return 0;
    template = template_for(repository);
    if (!template)
        return err_set(err, ERR_INVALID,
                       "image '%.80s' is not here, and no registry is asked: import it with 'holt "
                       "template import NAME PATH', then begin with fromTemplate(NAME)",
                       image);
    if (e2b_template_find(request, template, ret, &ignored) < 0)
        return err_set(err, ERR_INVALID,
                       "image '%.60s' means the template '%s', which is not here: make it with "
                       "'holt template build %s'",
                       image, template, template);
    (void)snprintf(notice, E2B_IMAGE_NOTICE_BYTES,
                   "image '%.100s' is not fetched: the template '%s' is used instead", image,
                   template);
    return 0;
}
