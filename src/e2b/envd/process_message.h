/* What process.Process of E2B's envd is asked, and what it says. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "e2b/envd_messages.h"
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

/* Checks the message of Start. The caller calls e2b_start_done, also when it fails. */
int e2b_start_parse(const struct envd_start_request *message, const struct e2b_surroundings *around,
                    struct e2b_start *ret, struct err *err);
void e2b_start_done(struct e2b_start *start);

/* Fails unless the selector, which may be NULL, has a pid or a tag. */
int e2b_selector_check(const struct envd_process_selector *selector, struct err *err);

/* Returns SIGKILL or SIGTERM in *ret; other signals are refused. */
int e2b_signal_parse(const struct envd_send_signal_request *message, int *ret, struct err *err);

/* Returns the bytes for the standard input or for the terminal. */
int e2b_input_parse(const struct envd_send_input_request *message, struct span *ret,
                    bool *ret_is_pty, struct err *err);

/* Appends a ProcessInfo to the list of List: 0 or -errno. */
int e2b_process_add(struct list_encoder *list, const struct record_info *info);

/* Events of a stream, each a whole message: 0 or -errno. */
int e2b_event_start(struct buf *out, uint32_t pid);
int e2b_event_data(struct buf *out, const struct envd_process_event_data_event *data);
int e2b_event_keepalive(struct buf *out);
int e2b_event_end(struct buf *out, const struct process_end *end);
