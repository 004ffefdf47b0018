/* What client.c and stream.c share. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "client/address.h"
#include "client/http.h"

struct holt_error;

struct holt {
    struct address address;
    char *token; /* NULL: none */
    struct http http;
    bool is_streaming; /* a holt_stream owns the connection */
    bool has_rest;     /* HTTP's own end of the last stream was not read yet */
};

/* Sends one request, over a new connection where the old one is gone: 0 or -1. */
int client_send(struct holt *holt, const char *method, struct http_request *request,
                struct holt_error *error);

/* Reads the rest of the reply into holt->http.body: 0 or -1. */
int client_read_all(struct holt *holt, struct holt_error *error);
