// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "base/cleanup.h"
#include "base/text/image_ref.h"
#include "check.h"

#define HEX "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static void short_names_are_those_of_docker_hub(void)
{
    static const struct {
        const char *text, *registry, *repository, *tag, *familiar;
    } cases[] = {
        { "debian", "docker.io", "library/debian", "latest", "debian:latest" },
        { "debian:12", "docker.io", "library/debian", "12", "debian:12" },
        { "docker.io/debian:12", "docker.io", "library/debian", "12", "debian:12" },
        { "index.docker.io/debian:12", "docker.io", "library/debian", "12", "debian:12" },
        { "team/app:1.0_a-b", "docker.io", "team/app", "1.0_a-b", "team/app:1.0_a-b" },
        { "localhost/app", "localhost", "app", "latest", "localhost/app:latest" },
        { "localhost:5000/a/b/c:x", "localhost:5000", "a/b/c", "x", "localhost:5000/a/b/c:x" },
        { "127.0.0.1:5000/app", "127.0.0.1:5000", "app", "latest", "127.0.0.1:5000/app:latest" },
        { "[::1]:5000/app:1", "[::1]:5000", "app", "1", "[::1]:5000/app:1" },
        { "r.example/a__b/c-.d:1", NULL, NULL, NULL, NULL },
        { "r.example/a__b/c--d.e:1", "r.example", "a__b/c--d.e", "1", "r.example/a__b/c--d.e:1" },
    };
    struct image_ref ref;

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        int r = image_ref_parse(cases[i].text, &ref);

        CHECK((r == 0) == (cases[i].registry != NULL));
        if (r < 0)
            continue;
        CHECK(strcmp(ref.registry, cases[i].registry) == 0);
        CHECK(strcmp(ref.repository, cases[i].repository) == 0);
        CHECK(strcmp(ref.tag, cases[i].tag) == 0);
        CHECK(strcmp(ref.familiar, cases[i].familiar) == 0);
        CHECK(ref.digest[0] == '\0');
    }
}

static void a_digest_replaces_the_tag(void)
{
    struct image_ref ref;

    CHECK(image_ref_parse("debian:12@sha256:" HEX, &ref) == 0);
    CHECK(strcmp(ref.digest, "sha256:" HEX) == 0 && ref.tag[0] == '\0');
    CHECK(strcmp(ref.familiar, "debian@sha256:" HEX) == 0);
}

static void other_texts_are_refused(void)
{
    static const char *const texts[] = {
        "",           ":",      "@",
        "a:",         "a@",     "a@sha256:12",
        "a@md5:" HEX, "A",      "a/B",
        "a//b",       "/a",     "a/",
        "../a",       "a/../b", "a b",
        "a\nb",       "a:b:c",  "x.y:99999999/a",
        "-.x/a",      "a_",     "_a",
        "a:-b",       "[::1/a", "x.y:p/a",
        "a:b/c d",    "a%2fb",  "a@sha256:" HEX "0",
    };
    struct image_ref ref;
    char text[600];

    for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
        CHECK(image_ref_parse(texts[i], &ref) < 0);
    memset(text, 'a', sizeof(text));
    text[IMAGE_REF_MAX + 1] = '\0';
    CHECK(image_ref_parse(text, &ref) < 0);
    text[250] = '\0'; /* fits, but not with library/ and :latest */
    CHECK(image_ref_parse(text, &ref) < 0);
}

static void only_tags_and_digests_tell_images_from_templates(void)
{
    CHECK(image_ref_is("debian:12") && image_ref_is("r.example/debian:12"));
    CHECK(image_ref_is("debian@sha256:" HEX));
    CHECK(!image_ref_is("debian") && !image_ref_is("owner/debian"));
    CHECK(!image_ref_is("localhost:5000/debian") && !image_ref_is("Debian:12"));
}

int main(void)
{
    RUN(short_names_are_those_of_docker_hub);
    RUN(a_digest_replaces_the_tag);
    RUN(other_texts_are_refused);
    RUN(only_tags_and_digests_tell_images_from_templates);
    return 0;
}
