/* Requests: messages of wire/holt_v1.h as JSON, and parts of them that several methods share. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "wire/holt_v1.h"

struct buf;
struct holt_command;
struct holt_error;
struct holt_network_rules;
struct holt_sandbox_options;

/* The memory of the lists of one request. */
enum { REQUEST_BYTES_MAX = 64 * 1024 * 1024 };

/* Appends a request as JSON. Fails with "invalid_argument" if a required text is missing, or a text
 * is not UTF-8. Returns 0 or -1. */
int request_encode(const struct schema *schema, const void *request, struct buf *out,
                   struct holt_error *error);

/* Returns the number of texts before the NULL; NULL: 0. */
size_t request_count(const char *const *texts);

/* Makes pairs of "name=value" texts, which end with NULL (NULL: none); of two with the same name,
 * the last counts. Returns 0, or -1 if one has no "=". */
int request_pairs(struct arena *arena, const char *const *texts, const struct pair **ret,
                  size_t *ret_count, struct holt_error *error);

/* A path as text, or as bytes if it is not UTF-8. */
#define REQUEST_PATH(name) .path = path_text(name), .raw_path = path_raw(name)

/* A command and its terminal. */
struct request_process {
    struct msg_process_spec spec;
    struct msg_terminal_size terminal;
};
int request_process_set(struct request_process *ret, const struct holt_command *command,
                        bool has_stdin, struct arena *arena, struct holt_error *error);

/* Returns the network policy of a request in room, or NULL if the rules (NULL: none) and the proxy
 * (NULL: none) say nothing: daemons of earlier versions know no networks. */
const struct msg_network_policy *request_network(const struct holt_network_rules *rules,
                                                 const char *proxy, const char *const *models,
                                                 struct msg_network_policy *room);

/* Returns the limits of a sandbox. */
struct msg_limits request_limits(const struct holt_sandbox_options *options);
