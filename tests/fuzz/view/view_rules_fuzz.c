// SPDX-License-Identifier: Apache-2.0
/* Rules and paths from anywhere: refused with a reason, or compiled; what is written reads back as
 * the same rules, and all answers about one path agree. The first byte says where the path ends. */
#include <assert.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "view/rules.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void decide(const struct view_rules *rules, const struct view_rules *again, const char *path)
{
    struct view_decision decision = view_decide(rules, path), same = view_decide(again, path);
    char below[512];

    assert(decision.level == same.level && decision.rule == same.rule);
    assert(decision.rule < (int)view_rules_count(rules));
    assert(decision.rule >= 0 || decision.level == VIEW_NONE);
    (void)snprintf(below, sizeof(below), "%s/x", strcmp(path, "/") == 0 ? "" : path);
    decision = view_decide(rules, below);
    assert(decision.level == VIEW_NONE || view_may_show_below(rules, path));
    assert(decision.level == VIEW_WRITE || view_may_forbid_below(rules, path));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    cleanup_view_rules struct view_rules *rules = NULL, *again = NULL;
    char text[2048], raw[256], path[300];
    struct buf written = BUF_INIT(VIEW_TEXT_MAX);
    struct err err = { 0 };
    size_t path_len;

    if (size < 1 || size > sizeof(text))
        return 0;
    path_len = data[0] < size - 1 ? data[0] : size - 1;
    memcpy(raw, data + 1, path_len);
    raw[path_len] = '\0';
    memcpy(text, data + 1 + path_len, size - 1 - path_len);
    text[size - 1 - path_len] = '\0';
    if (view_rules_parse(text, 1, &rules, &err) < 0) {
        assert((err.kind == ERR_INVALID || err.kind == ERR_EXHAUSTED) && err.msg[0]);
        return 0;
    }
    assert(view_rules_format(rules, &written) == 0);
    assert(view_rules_parse(written.data ? written.data : "", 1, &again, &err) == 0);
    assert(view_rules_count(rules) == view_rules_count(again));
    if (view_path_normalize(raw, path, sizeof(path)) == 0)
        decide(rules, again, path);
    buf_done(&written);
    return 0;
}
