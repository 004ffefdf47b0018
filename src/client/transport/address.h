/* Where a daemon listens: "unix:///path", "http://host:port" or "https://host:port". */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct holt_error;

enum {
    ADDRESS_HOST_MAX = 256, /* a DNS name, or a socket's path, which the kernel keeps shorter */
};

struct address {
    bool is_unix;
    bool is_tls;
    char host[ADDRESS_HOST_MAX]; /* the path of the socket when is_unix */
    char port[8];
    char authority[ADDRESS_HOST_MAX + 16]; /* for the Host header */
};

/* 0, or -1 with code "invalid_argument". */
int address_parse(const char *text, struct address *ret, struct holt_error *error);

/* A connected socket, or -1 with "unavailable", "permission_denied" or "deadline_exceeded". (How
 * long the system takes to find a name's addresses is its own affair, though.) */
int address_connect(const struct address *address, int64_t deadline, struct holt_error *error);
