/* Where a daemon listens: "unix:///path" or "http://host:port". */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct holt_error;

enum {
    ADDRESS_HOST_MAX = 256, /* a DNS name, or a socket's path, which the kernel keeps shorter */
};

struct address {
    bool is_unix;
    char host[ADDRESS_HOST_MAX]; /* the path of the socket when is_unix */
    char port[8];
    char authority[ADDRESS_HOST_MAX + 16]; /* for the Host header */
};

/* 0, or -1 with code "invalid_argument". */
int address_parse(const char *text, struct address *ret, struct holt_error *error);

/* A connected socket, or -1 with "unavailable" or "permission_denied". */
int address_connect(const struct address *address, struct holt_error *error);
