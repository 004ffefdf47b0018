// SPDX-License-Identifier: Apache-2.0
/* Parses the headers Host, Origin, Content-Type and Authorization. The first byte chooses the
 * header; no unknown token may be accepted. */
#include <assert.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "auth/token_store.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/files/tree.h"
#include "base/text/parse.h"
#include "base/xalloc.h"
#include "http/connect.h"
#include "http/origin.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char main_token[] = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

/* With one token, which is not written anywhere. */
static struct token_store *store_get(void)
{
    static struct token_store *store;
    char dir[] = "/tmp/holt-fuzz.XXXXXX", tokens[sizeof(dir) + 8];
    struct err err = { 0 };

    if (store)
        return store;
    assert(mkdtemp(dir) && token_store_open(dir, &store, &err) == 0);
    token_store_add_main(store, main_token);
    (void)snprintf(tokens, sizeof(tokens), "%s/tokens", dir);
    (void)rmdir(tokens);
    (void)rmdir(dir);
    return store;
}

static void authorization_check(const char *text)
{
    struct caller caller;

    token_store_match(store_get(), text, &caller);
    assert(caller.role == ROLE_NONE || caller.role == ROLE_ADMIN);
    assert(caller.role == ROLE_NONE || strstr(text, main_token));
    assert(caller.role == ROLE_NONE || strncasecmp(text, "bearer", 6) == 0);
}

static void host_check(const char *text)
{
    static const struct origin_rules origin_rules = { .listen = "127.0.0.1:7070",
                                                      .hosts = "a.example,b.example",
                                                      .origins = "" };

    if (!origin_rules_allow_host(&origin_rules, text))
        return;
    /* A name that is known, or something of digits, dots and colons. */
    assert(strcasestr(text, "localhost") || strcasestr(text, ".example") ||
           strspn(text, "0123456789abcdefABCDEF.:[]%") > 0);
}

static void origin_check(const char *text)
{
    static const struct origin_rules closed = { .listen = "127.0.0.1:7070",
                                                .hosts = "",
                                                .origins = "" };
    static const struct origin_rules open = { .listen = "127.0.0.1:7070",
                                              .hosts = "",
                                              .origins =
                                                  "https://a.example,http://b.example:8080" };

    assert(!origin_rules_allow_origin(&closed, text));
    assert(!origin_rules_allow_origin(&open, text) || strcasestr(text, ".example"));
}

static void type_check(const char *text)
{
    bool is_unary = connect_type_is(text, CONNECT_UNARY_TYPE);
    bool is_stream = connect_type_is(text, CONNECT_STREAM_TYPE);

    assert(!is_unary || strncasecmp(text, CONNECT_UNARY_TYPE, strlen(CONNECT_UNARY_TYPE)) == 0);
    assert(!(is_unary && is_stream));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static void (*const checks[])(const char *) = { authorization_check, host_check, origin_check,
                                                    type_check };
    cleanup_free char *text = NULL;

    if (size == 0)
        return 0;
    /* A header has no NUL in it. */
    text = xcalloc(size, 1);
    memcpy(text, data + 1, size - 1);
    checks[data[0] % ARRAY_SIZE(checks)](text);
    return 0;
}
