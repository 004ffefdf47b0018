// SPDX-License-Identifier: Apache-2.0
/* Rules and names from anywhere: refused with a reason, or accepted with one spelling that reads
 * back the same; and no decision about them fails. The first byte says where the name ends. */
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "base/err.h"
#include "net/policy.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void decide(const struct net_rule *rule, const char *name, const char *path)
{
    struct net_request request = { .name = name,
                                   .address = rule->range.address,
                                   .port = 443,
                                   .protocol = NET_HTTP,
                                   .method = "GET",
                                   .path = path };
    struct net_layer layer = { .source = NET_FROM_SANDBOX, .mode = NET_ALLOW };
    struct net_policy policy = { 0 };
    struct net_verdict verdict;
    struct err err = { 0 };

    assert(net_layer_allow(&layer, rule->text, &err) == 0);
    assert(net_policy_add(&policy, &layer, &err) == 0);
    net_policy_decide(&policy, &request, &verdict);
    assert(!verdict.is_allowed || !strchr(verdict.text, '\n'));
    if (net_policy_allows_name(&policy, name, &verdict))
        assert(!rule->is_range);
    net_policy_done(&policy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char text[600], name[300], normalized[NET_NAME_SIZE];
    struct net_rule rule, again;
    struct err err = { 0 };
    size_t name_len;

    if (size < 1 || size > sizeof(text))
        return 0;
    name_len = data[0] < size - 1 ? data[0] : size - 1;
    memcpy(name, data + 1, name_len);
    name[name_len] = '\0';
    memcpy(text, data + 1 + name_len, size - 1 - name_len);
    text[size - 1 - name_len] = '\0';
    if (!net_name_normalize(name, name_len, normalized)) {
        assert(strlen(name) == name_len); /* no NUL is accepted */
        assert(strlen(normalized) <= NET_NAME_MAX && !strpbrk(normalized, "*:/ \n"));
    }
    if (net_rule_parse(text, &rule, &err) < 0) {
        assert(err.kind == ERR_INVALID && err.msg[0]);
        return 0;
    }
    assert(net_rule_parse(rule.text, &again, &err) == 0);
    assert(strcmp(rule.text, again.text) == 0);
    assert(rule.port_count == again.port_count && rule.is_range == again.is_range);
    decide(&rule, name, text);
    return 0;
}
