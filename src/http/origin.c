// SPDX-License-Identifier: Apache-2.0
#include "http/origin.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/err.h"

enum { NAME_MAX_BYTES = 256 };

/* Copies the host without port and brackets; false if it is malformed. */
static bool name_of(const char *text, char ret[NAME_MAX_BYTES])
{
    const char *end;
    size_t len;

    if (*text == '[') {
        text++;
        end = strchr(text, ']');
    } else {
        end = text + strcspn(text, ":");
    }
    if (!end)
        return false;
    len = (size_t)(end - text);
    if (len == 0 || len >= NAME_MAX_BYTES)
        return false;
    (void)snprintf(ret, NAME_MAX_BYTES, "%.*s", (int)len, text);
    return true;
}

static bool is_address(const char *name)
{
    unsigned char bytes[sizeof(struct in6_addr)];

    return inet_pton(AF_INET, name, bytes) == 1 || inet_pton(AF_INET6, name, bytes) == 1;
}

/* Whether a word is in a list separated by commas and blanks. */
static bool is_listed(const char *list, const char *word)
{
    size_t len = strlen(word);

    while (*(list += strspn(list, ", "))) {
        size_t each = strcspn(list, ", ");

        if (each == len && strncasecmp(list, word, len) == 0)
            return true;
        list += each;
    }
    return false;
}

bool origin_rules_allow_host(const struct origin_rules *origin_rules, const char *host)
{
    char name[NAME_MAX_BYTES], own[NAME_MAX_BYTES];

    if (origin_rules->is_local || !host)
        return true;
    if (!name_of(host, name))
        return false;
    return is_address(name) || strcasecmp(name, "localhost") == 0 ||
           (name_of(origin_rules->listen, own) && strcasecmp(name, own) == 0) ||
           is_listed(origin_rules->hosts, name);
}

void origin_rules_name(const struct origin_rules *origin_rules, char *ret, size_t size)
{
    const char *first = origin_rules->hosts + strspn(origin_rules->hosts, ", ");
    char own[NAME_MAX_BYTES];

    if (*first)
        (void)snprintf(ret, size, "%.*s", (int)strcspn(first, ", "), first);
    else if (name_of(origin_rules->listen, own) && !is_address(own))
        (void)snprintf(ret, size, "%s", own);
    else
        (void)snprintf(ret, size, "localhost");
}

bool origin_rules_allow_origin(const struct origin_rules *origin_rules, const char *origin)
{
    return !origin || is_listed(origin_rules->origins, origin);
}

bool origin_is_same(const char *origin, const char *host, bool is_tls)
{
    const char *scheme = is_tls ? "https://" : "http://";

    return origin && host && strncmp(origin, scheme, strlen(scheme)) == 0 &&
           strcasecmp(origin + strlen(scheme), host) == 0;
}

/* --- names of previews ------------------------------------------------------------------------ */

#define TLS_SCHEME "https://"

bool origin_rules_has_tls_front(const struct origin_rules *origin_rules)
{
    return strncmp(origin_rules->preview, TLS_SCHEME, strlen(TLS_SCHEME)) == 0;
}

/* Copies preview.domain without scheme and port; false if there is none. */
static bool preview_name(const struct origin_rules *origin_rules, char ret[NAME_MAX_BYTES])
{
    const char *text = origin_rules->preview;

    if (origin_rules_has_tls_front(origin_rules))
        text += strlen(TLS_SCHEME);
    return *text && name_of(text, ret);
}

bool origin_rules_is_preview(const struct origin_rules *origin_rules, const char *host)
{
    char own[NAME_MAX_BYTES], name[NAME_MAX_BYTES];

    return host && preview_name(origin_rules, own) && name_of(host, name) &&
           strcasecmp(own, name) == 0;
}

bool origin_rules_allow_ports(const struct origin_rules *origin_rules, const char *host)
{
    char name[NAME_MAX_BYTES];

    if (*origin_rules->preview == '\0' || origin_rules->is_local || !host)
        return origin_rules_allow_host(origin_rules, host);
    return origin_rules_is_preview(origin_rules, host) ||
           (name_of(host, name) && strcasecmp(name, "localhost") == 0);
}

static bool is_name(const char *text)
{
    static const char allowed[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-.";
    size_t len = strlen(text);

    return len > 0 && strspn(text, allowed) == len && text[0] != '.' && text[len - 1] != '.' &&
           !strstr(text, "..");
}

/* Whether a name is the same as another, or below it. */
static bool is_within(const char *name, const char *domain)
{
    size_t len = strlen(name), domain_len = strlen(domain);

    return len >= domain_len && strcasecmp(name + len - domain_len, domain) == 0 &&
           (len == domain_len || name[len - domain_len - 1] == '.');
}

/* Checks preview.domain against one name of the daemon, or an origin with one. */
static int name_check(const char *preview, const char *text, struct err *err)
{
    const char *scheme = strstr(text, "://");
    char name[NAME_MAX_BYTES];

    if (!name_of(scheme ? scheme + 3 : text, name) || is_address(name) ||
        (!is_within(preview, name) && !is_within(name, preview)))
        return 0;
    return err_set(err, ERR_INVALID,
                   "preview.domain '%s' and the daemon's name '%s' (listen, listen.hosts or "
                   "listen.origins) are below each other: previews need a domain of their own",
                   preview, name);
}

static int names_check(const char *preview, const char *list, struct err *err)
{
    char word[NAME_MAX_BYTES];

    while (*(list += strspn(list, ", "))) {
        size_t len = strcspn(list, ", ");
        int r = 0;

        if (len < sizeof(word)) {
            (void)snprintf(word, sizeof(word), "%.*s", (int)len, list);
            r = name_check(preview, word, err);
        }
        if (r < 0)
            return r;
        list += len;
    }
    return 0;
}

int origin_rules_check_preview(const struct origin_rules *origin_rules, struct err *err)
{
    char name[NAME_MAX_BYTES];
    int r;

    if (*origin_rules->preview == '\0')
        return 0;
    if (!preview_name(origin_rules, name) || !is_name(name) || is_address(name) ||
        is_within(name, "localhost"))
        return err_set(err, ERR_INVALID,
                       "preview.domain must be a host name that is not below localhost, or "
                       "https:// and such a name, not '%s'",
                       origin_rules->preview);
    r = names_check(name, origin_rules->listen, err);
    if (r == 0)
        r = names_check(name, origin_rules->hosts, err);
    return r < 0 ? r : names_check(name, origin_rules->origins, err);
}
