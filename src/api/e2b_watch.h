/* WatchDir of E2B's envd: what changes below a directory, as it happens. */
#pragma once

struct e2b_request;
struct err;
struct stream;

int e2b_watch(struct e2b_request *request, struct stream **ret, struct err *err);
