// SPDX-License-Identifier: Apache-2.0
/* What registries send: challenges and manifests. */
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/xalloc.h"
#include "check.h"
#include "image/challenge.h"
#include "image/manifest.h"

#define A "sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define B "sha256:bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"

static void a_bearer_challenge_has_realm_service_and_scope(void)
{
    struct challenge challenge;

    CHECK(challenge_parse("Bearer realm=\"https://a.example/token\",service=\"r \\\"x\\\"\", "
                          "scope=\"repository:a/b:pull,push\", error=invalid",
                          &challenge));
    CHECK(challenge.is_bearer);
    CHECK(strcmp(challenge.realm, "https://a.example/token") == 0);
    CHECK(strcmp(challenge.service, "r \"x\"") == 0);
    CHECK(strcmp(challenge.scope, "repository:a/b:pull,push") == 0);
}

static void the_first_known_scheme_counts(void)
{
    struct challenge challenge;

    CHECK(challenge_parse("Negotiate, Basic realm=x", &challenge) && !challenge.is_bearer);
    CHECK(challenge_parse("basic", &challenge) && !challenge.is_bearer);
    CHECK(challenge_parse("Digest a=b, c=d, Bearer realm=\"u\"", &challenge) &&
          challenge.is_bearer);
}

static void malformed_challenges_are_none(void)
{
    static const char *const texts[] = {
        "",
        " , ",
        "Negotiate",
        "Bearer",
        "Bearer realm",
        "Bearer realm=\"x",
        "Bearer realm=\"x\\",
        "Bearer realm=\"a\nb\"",
        "=x",
        "Bearer realm=",
        "\"Basic\"",
    };
    struct challenge challenge;
    char text[4096] = "Bearer realm=\"";

    for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
        CHECK(!challenge_parse(texts[i], &challenge));
    memset(text + strlen(text), 'x', 3000);
    text[3000] = '"';
    CHECK(!challenge_parse(text, &challenge));
}

static int parse(const char *text, struct manifest *ret, struct err *err)
{
    return manifest_parse(text, strlen(text), "amd64", ret, err);
}

static void a_manifest_lists_each_blob_once(void)
{
    cleanup_free struct manifest *manifest = xcalloc(1, sizeof(*manifest));
    struct err err;

    CHECK(parse("{\"config\":{\"digest\":\"" A "\",\"size\":3},\"layers\":["
                "{\"digest\":\"" B "\",\"size\":4},{\"digest\":\"" B "\",\"size\":4}]}",
                manifest, &err) == 0);
    CHECK(manifest->blob_count == 2 && manifest->bytes == 7 && !manifest->chosen[0]);
    CHECK(strcmp(manifest->blobs[0].digest, A) == 0);
}

static void an_index_gives_the_image_of_this_machine(void)
{
    cleanup_free struct manifest *manifest = xcalloc(1, sizeof(*manifest));
    struct err err;

    CHECK(parse("{\"manifests\":[{\"digest\":\"" A "\",\"size\":1,\"platform\":{\"os\":\"linux\","
                "\"architecture\":\"arm64\"}},{\"digest\":\"" B "\",\"size\":1,\"platform\":{"
                "\"os\":\"linux\",\"architecture\":\"amd64\"}}]}",
                manifest, &err) == 0);
    CHECK(strcmp(manifest->chosen, B) == 0);
    CHECK(parse("{\"manifests\":[{\"digest\":\"" A "\",\"size\":1,\"platform\":{\"os\":\"linux\","
                "\"architecture\":\"arm64\"}}]}",
                manifest, &err) < 0);
    CHECK(err.kind == ERR_UNSUPPORTED);
}

static void absurd_manifests_are_refused(void)
{
    static const char *const texts[] = {
        "",
        "[]",
        "{}",
        "{\"layers\":{}}",
        "{\"layers\":[]}",
        "{\"manifests\":{}}",
        "{\"config\":{\"digest\":\"sha256:../../x\",\"size\":3},\"layers\":[]}",
        "{\"config\":{\"digest\":\"" A "\",\"size\":-3},\"layers\":[]}",
        "{\"config\":{\"digest\":\"" A "\",\"size\":\"3\"},\"layers\":[]}",
        "{\"config\":{\"digest\":\"" A "\",\"size\":9223372036854775807},\"layers\":["
        "{\"digest\":\"" B "\",\"size\":9223372036854775807}]}",
        "{\"config\":{\"digest\":\"" A "\",\"size\":1},\"layers\":[1]}",
    };
    cleanup_free struct manifest *manifest = xcalloc(1, sizeof(*manifest));
    struct err err;

    for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
        CHECK(parse(texts[i], manifest, &err) < 0);
}

int main(void)
{
    RUN(a_bearer_challenge_has_realm_service_and_scope);
    RUN(the_first_known_scheme_counts);
    RUN(malformed_challenges_are_none);
    RUN(a_manifest_lists_each_blob_once);
    RUN(an_index_gives_the_image_of_this_machine);
    RUN(absurd_manifests_are_refused);
    return 0;
}
