/* The address of a daemon: "unix:///path", "http://host:port" or "https://host:port". */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct holt_error;

enum {
    ADDRESS_HOST_MAX = 256, /* a DNS name or the path of a socket, which is shorter */
};

struct address {
    bool is_unix;
    bool is_tls;
    char host[ADDRESS_HOST_MAX]; /* the path of the socket when is_unix */
    char port[8];
    char authority[ADDRESS_HOST_MAX + 16]; /* for the Host header */
};

/* Parses an address. Returns 0, or -1 with code "invalid_argument". */
int address_parse(const char *text, struct address *ret, struct holt_error *error);

/* Returns a connected socket, or -1 with "unavailable", "permission_denied" or "deadline_exceeded".
 * The deadline does not cover the name lookup. */
int address_connect(const struct address *address, int64_t deadline, struct holt_error *error);
