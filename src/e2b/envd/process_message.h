/* What process.Process of E2B's envd is asked, and what it says. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "host/process/process.h"

struct e2b_user;
struct err;
struct record_info;

/* A start, as the host takes it. */
struct e2b_start {
    struct process_spec spec; /* points into the message, the rest of this, and the user */
    char **words;             /* argv, NULL, the environment, NULL */
    struct buf env;           /* "NAME=value", each with its NUL */
};

/* Defaults for every process of a sandbox. */
struct e2b_surroundings {
    const char *user;
    const char *cwd;           /* where the request has none */
    const json_t *env;         /* {name: value}, or NULL */
    const char *sandbox_id;    /* as E2B's clients spell it */
    const char *template_name; /* NULL: not known */
    uint64_t timeout_ms;       /* 0: none */
};

/* The message of Start. The caller calls e2b_start_done, also when it fails. */
int e2b_start_parse(const json_t *message, const struct e2b_surroundings *around,
                    struct e2b_start *ret, struct err *err);
void e2b_start_done(struct e2b_start *start);

/* {"pid": n} or {"tag": text}, of the field "process". */
struct e2b_selector {
    uint32_t pid;
    const char *tag; /* NULL: by pid */
};

int e2b_selector_parse(const json_t *message, struct e2b_selector *ret, struct err *err);

/* {"size": {"cols", "rows"}} of the field "pty"; *ret_is_there: whether the field is present. */
int e2b_pty_parse(const json_t *message, bool *ret_is_there, uint16_t *ret_rows,
                  uint16_t *ret_columns, struct err *err);

/* SIGNAL_SIGKILL or SIGNAL_SIGTERM, by name or number. */
int e2b_signal_parse(const json_t *message, int *ret, struct err *err);

/* {"stdin": bytes} or {"pty": bytes}, of the field "input". */
int e2b_input_parse(const json_t *message, struct buf *ret, bool *ret_is_pty, struct err *err);

/* One of List's. */
json_t *e2b_process_json(const struct record_info *info);

/* Events of a stream, each a whole message: 0 or -errno. */
int e2b_event_start(struct buf *out, uint32_t pid);
int e2b_event_data(struct buf *out, const char *stream, const void *data, size_t len);
int e2b_event_keepalive(struct buf *out);
int e2b_event_end(struct buf *out, const struct process_end *end);
