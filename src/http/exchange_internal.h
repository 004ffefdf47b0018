/* The life of an exchange, driven by libmicrohttpd's callbacks in server.c. */
#pragma once

#include <microhttpd.h>
#include <stdbool.h>
#include <stddef.h>

struct exchange;
struct listener;
struct request_line;

/* The first line has arrived; target is what it asks for, as the client wrote it. */
struct exchange *exchange_new(const struct listener *listener, const char *target);

/* Whether exchange_begin was not called yet. */
bool exchange_is_new(const struct exchange *exchange);

/* The header is complete; line->verb must stay until the end of the request. */
enum MHD_Result exchange_begin(struct exchange *exchange, struct MHD_Connection *connection,
                               const char *path, const struct request_line *line);

/* A piece of the body has arrived. */
enum MHD_Result exchange_receive(struct exchange *exchange, const char *data, size_t len);

/* The request is complete: answers it. */
enum MHD_Result exchange_answer(struct exchange *exchange);

/* The request is over, answered or not. Accepts NULL. */
void exchange_free(struct exchange *exchange);
