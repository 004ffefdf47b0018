/* GET /metrics: what the host counts, and calls. */
#pragma once

struct buf;
struct host;

/* Appends the page in Prometheus' text format: 0, -ENOBUFS or -ENOMEM. */
int metrics_page_fill(struct host *host, struct buf *out);

#define METRICS_PAGE_TYPE "text/plain; version=0.0.4; charset=utf-8"
