// SPDX-License-Identifier: Apache-2.0
#include "net/rule.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "net/path.h"
#include "net/policy.h"

static const struct {
    const char *name;
    enum net_scheme scheme;
    uint16_t port; /* 0: none, the rule must have one */
} schemes[] = {
    { "http", NET_SCHEME_HTTP, 80 },
    { "https", NET_SCHEME_HTTPS, 443 },
    { "ssh", NET_SCHEME_TCP, 22 },
    { "tcp", NET_SCHEME_TCP, 0 },
};

/* The text that is still to be read, and the whole for messages. */
struct rule_reader {
    const char *whole;
    const char *at;
    uint16_t default_port;
    struct err *err;
};

static int rule_refuse(const struct rule_reader *reader, const char *reason)
{
    return err_set(reader->err, ERR_INVALID, "rule '%.100s': %s", reader->whole, reason);
}

static int method_read(struct rule_reader *reader, struct net_rule *rule)
{
    size_t len = strspn(reader->at, "ABCDEFGHIJKLMNOPQRSTUVWXYZ");

    if (len == 0 || reader->at[len] != ' ')
        return 0;
    if (len > NET_METHOD_MAX)
        return rule_refuse(reader, "the method is longer than 16 letters");
    memcpy(rule->method, reader->at, len);
    rule->method[len] = '\0';
    reader->at += len + 1;
    return 0;
}

static int scheme_read(struct rule_reader *reader, struct net_rule *rule)
{
    const char *end = strstr(reader->at, "://");

    if (!end)
        return 0;
    for (size_t i = 0; i < ARRAY_SIZE(schemes); i++) {
        size_t len = strlen(schemes[i].name);

        if ((size_t)(end - reader->at) == len &&
            strncasecmp(reader->at, schemes[i].name, len) == 0) {
            rule->scheme = schemes[i].scheme;
            reader->default_port = schemes[i].port;
            reader->at = end + 3;
            return 0;
        }
    }
    return rule_refuse(reader, "the scheme must be http, https, ssh or tcp");
}

/* An address in brackets, or IPv6 that is not followed by ports. */
static int range_set(struct rule_reader *reader, const char *text, size_t len,
                     struct net_rule *rule)
{
    char range[NET_PREFIX_TEXT_SIZE], wanted[NET_PREFIX_TEXT_SIZE];
    int r = -EINVAL;

    if (len < sizeof(range)) {
        memcpy(range, text, len);
        range[len] = '\0';
        r = net_prefix_parse(range, &rule->range);
    }
    if (r == -EDOM) {
        net_prefix_format(&rule->range, wanted);
        return err_set(reader->err, ERR_INVALID,
                       "rule '%.100s': bits behind the prefix are set; write %s", reader->whole,
                       wanted);
    }
    if (r < 0)
        return rule_refuse(reader, "this is not an address or a range of addresses");
    rule->is_range = true;
    return 0;
}

/* "10.0.0.0/8" or "10.0.0.1": a slash with digits behind an address is a prefix, not a path. */
static size_t v4_length(const char *text)
{
    size_t len = strspn(text, "0123456789.");
    struct net_address address;
    char copy[INET_ADDRSTRLEN];
    size_t digits;

    if (len >= sizeof(copy))
        return 0;
    memcpy(copy, text, len);
    copy[len] = '\0';
    if (net_address_parse(copy, &address) < 0)
        return 0;
    digits = text[len] == '/' ? strspn(text + len + 1, "0123456789") : 0;
    return digits > 0 ? len + 1 + digits : len;
}

static int host_read(struct rule_reader *reader, struct net_rule *rule)
{
    const char *text = reader->at, *reason;
    size_t len = strcspn(text, ":/ ");

    if (text[0] == '[') {
        len = strcspn(text, "]");
        if (text[len] != ']')
            return rule_refuse(reader, "']' is missing");
        reader->at = text + len + 1;
        return range_set(reader, text + 1, len - 1, rule);
    }
    if (text[len] == ':' && strchr(text + len + 1, ':')) {
        /* More than one colon: IPv6, which needs brackets in front of ports. */
        reader->at = text + strlen(text);
        return range_set(reader, text, strlen(text), rule);
    }
    if (v4_length(text) > 0) {
        len = v4_length(text);
        reader->at = text + len;
        return range_set(reader, text, len, rule);
    }
    reason = net_pattern_normalize(text, len, rule->name);
    if (reason)
        return rule_refuse(reader, reason);
    reader->at = text + len;
    return 0;
}

/* One port number without sign and leading zeros. */
static bool port_read(const char **at, uint16_t *ret)
{
    unsigned value = 0;
    const char *start = *at;

    for (; **at >= '0' && **at <= '9' && *at - start < 6; (*at)++)
        value = value * 10 + (unsigned)(**at - '0');
    if (*at == start || *start == '0' || value > 65535)
        return false;
    *ret = (uint16_t)value;
    return true;
}

static int ports_read(struct rule_reader *reader, struct net_rule *rule)
{
    if (*reader->at != ':')
        return 0;
    reader->at++;
    if (*reader->at == '*') {
        reader->at++;
        rule->ports[rule->port_count++] = (struct net_ports){ 1, 65535 };
        return 0;
    }
    for (;;) {
        struct net_ports ports;

        if (rule->port_count == NET_PORTS_MAX)
            return rule_refuse(reader, "there are more than 16 ports or ranges of ports");
        if (!port_read(&reader->at, &ports.first))
            return rule_refuse(reader, "a port is a number from 1 to 65535");
        ports.last = ports.first;
        if (*reader->at == '-') {
            reader->at++;
            if (!port_read(&reader->at, &ports.last) || ports.last < ports.first)
                return rule_refuse(reader, "a range of ports is FIRST-LAST, as 8000-8100");
        }
        rule->ports[rule->port_count++] = ports;
        if (*reader->at != ',')
            return 0;
        reader->at++;
    }
}

static int path_read(struct rule_reader *reader, struct net_rule *rule)
{
    const char *reason;

    if (*reader->at == '\0')
        return 0;
    if (*reader->at != '/')
        return rule_refuse(reader, "only ports (:443) and a path (/...) may follow the host");
    reason = net_glob_check(reader->at);
    if (reason)
        return rule_refuse(reader, reason);
    (void)snprintf(rule->path, sizeof(rule->path), "%s", reader->at);
    reader->at += strlen(reader->at);
    return 0;
}

static int combination_check(struct rule_reader *reader, struct net_rule *rule)
{
    if ((rule->method[0] || rule->path[0]) && rule->scheme != NET_SCHEME_HTTP &&
        rule->scheme != NET_SCHEME_HTTPS)
        return rule_refuse(reader,
                           "a method or a path needs http:// or https:// in front of the host");
    if ((rule->method[0] || rule->path[0]) && rule->scheme == NET_SCHEME_HTTPS &&
        (rule->is_range || strcmp(rule->name, "*") == 0))
        return rule_refuse(reader, "a method or a path inside TLS needs the name of a host, for "
                                   "which Holt makes a certificate");
    if (rule->port_count > 0)
        return 0;
    if (rule->scheme == NET_SCHEME_TCP && reader->default_port == 0)
        return rule_refuse(reader, "tcp:// needs a port");
    if (reader->default_port)
        rule->ports[rule->port_count++] =
            (struct net_ports){ reader->default_port, reader->default_port };
    rule->has_default_ports = rule->port_count == 0 && !rule->is_range;
    return 0;
}

static int ports_print(const struct net_rule *rule, uint16_t default_port, struct buf *text)
{
    int r = 0;

    if (rule->port_count == 0 ||
        (rule->port_count == 1 && default_port && rule->ports[0].first == default_port &&
         rule->ports[0].last == default_port))
        return 0;
    for (size_t i = 0; r == 0 && i < rule->port_count; i++) {
        const struct net_ports *ports = &rule->ports[i];

        r = buf_add_str(text, i == 0 ? ":" : ",");
        if (r == 0 && ports->first == 1 && ports->last == 65535)
            r = buf_add_str(text, rule->port_count == 1 ? "*" : "1-65535");
        else if (r == 0 && ports->first == ports->last)
            r = buf_printf(text, "%u", ports->first);
        else if (r == 0)
            r = buf_printf(text, "%u-%u", ports->first, ports->last);
    }
    return r;
}

/* The one spelling of a rule. "ssh://" becomes tcp with a port: they mean the same. */
static int rule_print(struct net_rule *rule)
{
    static const char *const names[] = { "", "http://", "https://", "tcp://" };
    static const uint16_t ports[] = { 0, 80, 443, 0 };
    cleanup_with(buf_done) struct buf text = BUF_INIT(NET_RULE_MAX);
    char range[NET_PREFIX_TEXT_SIZE];
    bool has_brackets;
    int r = 0;

    if (rule->is_range)
        net_prefix_format(&rule->range, range);
    has_brackets = rule->is_range && rule->range.address.family == AF_INET6;
    if (rule->method[0])
        r = buf_printf(&text, "%s ", rule->method);
    if (r == 0)
        r = buf_printf(&text, "%s%s%s%s", names[rule->scheme], has_brackets ? "[" : "",
                       rule->is_range ? range : rule->name, has_brackets ? "]" : "");
    if (r == 0)
        r = ports_print(rule, ports[rule->scheme], &text);
    if (r == 0)
        r = buf_add_str(&text, rule->path);
    if (r == 0)
        memcpy(rule->text, text.data, text.len + 1);
    return r;
}

int net_rule_parse(const char *text, struct net_rule *ret, struct err *err)
{
    struct rule_reader reader = { .whole = text, .at = text, .err = err };
    struct net_rule rule = { 0 };
    int r;

    if (*text == '\0')
        return err_set(err, ERR_INVALID, "a rule is empty");
    if (strlen(text) > NET_RULE_MAX)
        return err_set(err, ERR_INVALID, "rule '%.60s...' is longer than %d bytes", text,
                       NET_RULE_MAX);
    r = method_read(&reader, &rule);
    if (r == 0)
        r = scheme_read(&reader, &rule);
    if (r == 0)
        r = host_read(&reader, &rule);
    if (r == 0)
        r = ports_read(&reader, &rule);
    if (r == 0)
        r = path_read(&reader, &rule);
    if (r == 0)
        r = combination_check(&reader, &rule);
    if (r < 0)
        return r;
    if (rule_print(&rule) < 0)
        return rule_refuse(&reader, "it is too long");
    *ret = rule;
    return 0;
}

static bool ports_have(const struct net_rule *rule, uint16_t port)
{
    for (size_t i = 0; i < rule->port_count; i++) {
        if (port >= rule->ports[i].first && port <= rule->ports[i].last)
            return true;
    }
    return rule->port_count == 0;
}

static bool is_web_port(uint16_t port)
{
    return port == 80 || port == 443;
}

/* Whether the bytes are of the kind that a rule allows. On the ports of the web, a rule for a name
 * needs bytes that carry the name, because an address is often shared by many names. */
static bool scheme_allows(const struct net_rule *rule, const struct net_request *request)
{
    switch (request->protocol) {
    case NET_UNKNOWN:
        return true;
    case NET_TLS:
    case NET_HTTPS:
        return rule->scheme != NET_SCHEME_HTTP;
    case NET_HTTP:
        return rule->scheme != NET_SCHEME_HTTPS;
    case NET_TCP:
        return rule->scheme == NET_SCHEME_TCP ||
               (rule->scheme == NET_ANY_SCHEME && (rule->is_range || !is_web_port(request->port)));
    case NET_DNS:
    default:
        return false;
    }
}

static bool scheme_denies(const struct net_rule *rule, const struct net_request *request)
{
    if (rule->scheme == NET_SCHEME_HTTP)
        return request->protocol == NET_HTTP;
    if (rule->scheme == NET_SCHEME_HTTPS)
        return request->protocol == NET_TLS || request->protocol == NET_HTTPS;
    return true;
}

bool net_rule_allows(const struct net_rule *rule, const struct net_request *request)
{
    bool is_host = rule->is_range ? net_prefix_has(&rule->range, &request->address)
                                  : request->name && net_pattern_matches(rule->name, request->name);

    if (!is_host || !scheme_allows(rule, request))
        return false;
    if (rule->has_default_ports ? !is_web_port(request->port) : !ports_have(rule, request->port))
        return false;
    if (!rule->method[0] && !rule->path[0])
        return true;
    if (request->protocol == NET_UNKNOWN || !request->method || !request->path)
        return request->protocol == NET_UNKNOWN || request->protocol == NET_HTTPS;
    return (!rule->method[0] || strcmp(rule->method, request->method) == 0) &&
           (!rule->path[0] || net_glob_allows(rule->path, request->path));
}

bool net_rule_denies(const struct net_rule *rule, const struct net_request *request)
{
    struct net_address translated;
    bool is_host;

    if (rule->is_range)
        is_host = net_prefix_has(&rule->range, &request->address) ||
                  (net_address_translated(&request->address, &translated) &&
                   net_prefix_has(&rule->range, &translated));
    else
        is_host = request->name && net_pattern_matches(rule->name, request->name);
    if (!is_host || !scheme_denies(rule, request) || !ports_have(rule, request->port))
        return false;
    if (request->protocol == NET_HTTPS && !request->method && (rule->method[0] || rule->path[0]))
        return false; /* each request is asked for when it comes */
    /* What is not known of a request that a rule looks at must not let it through. Some servers do
     * not care about the case of a method. */
    return (!rule->method[0] || !request->method ||
            strcasecmp(rule->method, request->method) == 0) &&
           (!rule->path[0] || !request->path || net_glob_denies(rule->path, request->path));
}

bool net_rule_is_inside_tls(const struct net_rule *rule)
{
    return rule->scheme == NET_SCHEME_HTTPS && (rule->method[0] || rule->path[0]);
}

bool net_rule_reads_https(const struct net_rule *rule, const char *name, uint16_t port)
{
    return net_rule_is_inside_tls(rule) && ports_have(rule, port) &&
           net_pattern_matches(rule->name, name);
}

bool net_rule_allows_name(const struct net_rule *rule, const char *name)
{
    return !rule->is_range && net_pattern_matches(rule->name, name);
}

bool net_rule_denies_name(const struct net_rule *rule, const char *name)
{
    bool is_whole =
        rule->scheme == NET_ANY_SCHEME &&
        (rule->port_count == 0 || (rule->ports[0].first == 1 && rule->ports[0].last == 65535));

    return !rule->is_range && is_whole && net_pattern_matches(rule->name, name);
}
