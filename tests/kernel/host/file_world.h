/* Files of a sandbox, asked for as the API does it: what the tests about them share. */
#pragma once

#include <sys/stat.h>

#include "host/worker/file.h"
#include "kernel/host/host_world.h"

enum { CONTENT_MAX = 64 * 1024 * 1024 };

/* What an operation came to. */
struct outcome_of_file {
    int r;
    struct err err;
    struct file_entry entry; /* only these of its texts are kept */
    char target[256];
    char user_name[64];
    char group_name[64];
    char end_path[256];
    char path[256];
    char meta[256];
};

static inline struct file_call *call_open(struct sandbox *sandbox)
{
    struct file_call *call = NULL;
    struct err err = { 0 };

    CHECK_OK(file_call_open(sandbox, -1, false, &call, &err), &err);
    return call;
}

static inline void outcome_keep(struct outcome_of_file *outcome, const struct file_entry *entry)
{
    outcome->entry = *entry;
    (void)snprintf(outcome->target, sizeof(outcome->target), "%s", entry->target);
    (void)snprintf(outcome->user_name, sizeof(outcome->user_name), "%s", entry->user_name);
    (void)snprintf(outcome->group_name, sizeof(outcome->group_name), "%s", entry->group_name);
    (void)snprintf(outcome->end_path, sizeof(outcome->end_path), "%s", entry->end_path);
    (void)snprintf(outcome->path, sizeof(outcome->path), "%s", entry->path);
    CHECK(entry->meta_len <= sizeof(outcome->meta));
    if (entry->meta_len > 0)
        memcpy(outcome->meta, entry->meta, entry->meta_len);
}

/* A request with at most one answer that matters, the last; data is collected where wanted. */
static inline struct outcome_of_file ask(struct sandbox *sandbox,
                                         const struct file_request *request, struct buf *ret_data)
{
    struct outcome_of_file outcome = { .r = 0 };
    struct file_call *call = call_open(sandbox);
    struct file_answer answer;

    outcome.r = file_call_send_request(call, request, &outcome.err);
    while (outcome.r >= 0) {
        outcome.r = file_call_next(call, &answer, &outcome.err);
        if (outcome.r < 0)
            break;
        if (answer.type == FILE_ENTRY)
            outcome_keep(&outcome, &answer.entry);
        if (answer.type == FILE_DATA && ret_data)
            CHECK(buf_add(ret_data, answer.data, answer.len) == 0);
        if (outcome.r == 0)
            break;
    }
    file_call_close(call);
    return outcome;
}

static inline struct outcome_of_file ask_path(struct sandbox *sandbox, enum file_message_type type,
                                              const char *path, uint32_t flags)
{
    const struct file_request request = { .type = type, .path = path, .flags = flags };

    return ask(sandbox, &request, NULL);
}

static inline struct outcome_of_file
put(struct sandbox *sandbox, const struct file_request *request, const void *data, size_t len)
{
    struct outcome_of_file outcome = { .r = 0 };
    struct file_call *call = call_open(sandbox);
    struct file_answer answer;

    outcome.r = file_call_send_request(call, request, &outcome.err);
    if (outcome.r == 0)
        outcome.r = file_call_send_data(call, data, len, &outcome.err);
    if (outcome.r == 0)
        outcome.r = file_call_send_end(call, &outcome.err);
    if (outcome.r == 0)
        outcome.r = file_call_next(call, &answer, &outcome.err);
    if (outcome.r == 0)
        outcome_keep(&outcome, &answer.entry);
    file_call_close(call);
    return outcome;
}

static inline struct outcome_of_file file_put_text(struct sandbox *sandbox, const char *path,
                                                   const char *text, uint32_t flags)
{
    const struct file_request request = { .type = FILE_WRITE, .path = path, .flags = flags };

    return put(sandbox, &request, text, strlen(text));
}

#define CHECK_DONE(outcome)                                                                        \
    do {                                                                                           \
        struct outcome_of_file done_ = (outcome);                                                  \
        CHECK(done_.r >= 0, "(%s)", done_.err.msg);                                                \
    } while (0)

#define CHECK_REFUSED(outcome, wanted)                                                             \
    do {                                                                                           \
        struct outcome_of_file done_ = (outcome);                                                  \
        CHECK(done_.r < 0);                                                                        \
        CHECK(done_.err.kind == (wanted), "(kind %s: %s)", err_kind_name(done_.err.kind),          \
              done_.err.msg);                                                                      \
    } while (0)
