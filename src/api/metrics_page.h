/* The metrics of the host and of every method. */
#pragma once

struct buf;
struct host;
struct caller;
struct listener;

/* Appends the page for this caller in Prometheus' text format: 0, -ENOBUFS or -ENOMEM. */
int metrics_page_fill(struct host *host, const struct listener *listener,
                      const struct caller *caller, struct buf *out);

#define METRICS_PAGE_TYPE "text/plain; version=0.0.4; charset=utf-8"
