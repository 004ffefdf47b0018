// SPDX-License-Identifier: Apache-2.0
/* The text format of Prometheus: see metrics.h. */
#include <inttypes.h>
#include <stdio.h>

#include "base/buf.h"
#include "base/clock.h"
#include "host/observe/metrics.h"

enum { SECONDS_SIZE = 40 };

int metric_begin(struct buf *out, const char *name, enum metric_kind kind, const char *help)
{
    static const char *const kinds[] = {
        [METRIC_COUNTER] = "counter",
        [METRIC_GAUGE] = "gauge",
        [METRIC_HISTOGRAM] = "histogram",
    };

    return buf_printf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, kinds[kind]);
}

static const char *labels_or_empty(const char *labels)
{
    return labels ? labels : "";
}

static int add_text(struct buf *out, const char *name, const char *labels, const char *value)
{
    return buf_printf(out, labels ? "%s{%s} %s\n" : "%s%s %s\n", name, labels_or_empty(labels),
                      value);
}

int metric_add(struct buf *out, const char *name, const char *labels, uint64_t value)
{
    char text[SECONDS_SIZE];

    (void)snprintf(text, sizeof(text), "%" PRIu64, value);
    return add_text(out, name, labels, text);
}

/* Prints all digits: 64 bits of nanoseconds do not fit a double. */
static void seconds_text(char text[static SECONDS_SIZE], uint64_t ns)
{
    int len = snprintf(text, SECONDS_SIZE, "%" PRIu64 ".%09" PRIu64, ns / NS_PER_S, ns % NS_PER_S);

    while (text[len - 1] == '0' && text[len - 2] != '.')
        text[--len] = '\0';
}

int metric_add_seconds(struct buf *out, const char *name, const char *labels, uint64_t ns)
{
    char text[SECONDS_SIZE];

    seconds_text(text, ns);
    return add_text(out, name, labels, text);
}

int metric_add_histogram(struct buf *out, const char *name, const char *labels,
                         const struct metric_histogram *histogram)
{
    const char *comma = labels && *labels ? "," : "";
    uint64_t total = 0;
    char text[SECONDS_SIZE];
    int r = 0;

    for (size_t i = 0; r == 0 && i < histogram->count; i++) {
        total += histogram->buckets[i];
        seconds_text(text, histogram->bounds_ns[i]);
        r = buf_printf(out, "%s_bucket{%s%sle=\"%s\"} %" PRIu64 "\n", name, labels_or_empty(labels),
                       comma, text, total);
    }
    total += histogram->buckets[histogram->count];
    seconds_text(text, histogram->total_ns);
    if (r == 0)
        r = buf_printf(out,
                       "%s_bucket{%s%sle=\"+Inf\"} %" PRIu64
                       "\n%s_sum{%s} %s\n%s_count{%s} %" PRIu64 "\n",
                       name, labels_or_empty(labels), comma, total, name, labels_or_empty(labels),
                       text, name, labels_or_empty(labels), total);
    return r;
}
