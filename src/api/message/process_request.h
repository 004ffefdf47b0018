/* Requests about processes as the host's own specs. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "host/process/process.h"
#include "host/process/record.h"

struct process_request {
    struct process_spec spec;

    struct buf text; /* the bytes that args and env point into */
    char **words;    /* both lists, each with its NULL */
};

/* Checks every part of the request's field "process". The spec points into the object and into ret,
 * and lives as long as both. */
int process_request_parse(const json_t *object, struct process_request *ret, struct err *err);

void process_request_done(struct process_request *request);

/* An Exec or a Start: where, and what, with its key. */
struct start_request {
    const char *sandbox;
    struct process_request process;
};

int start_request_parse(const json_t *object, struct start_request *ret, struct err *err);

/* The same of a request that may have other fields. */
int start_fields_parse(const json_t *object, struct start_request *ret, struct err *err);

void start_request_done(struct start_request *request);

/* The sandboxId and the processId of a request that may have other fields. */
struct process_name {
    const char *sandbox;
    const char *process;
};

int process_name_parse(const json_t *object, struct process_name *ret, struct err *err);

struct attach_request {
    struct process_name name;
    struct reader_spec reader; /* from is all 0 where the following counts */
    bool has_replay;
    uint64_t replay_bytes; /* how far before the end to begin */
};

int attach_request_parse(const json_t *object, struct attach_request *ret, struct err *err);

struct wait_request {
    struct process_name name;
    uint64_t timeout_ms; /* 0: none */
};

int wait_request_parse(const json_t *object, struct wait_request *ret, struct err *err);

struct list_request {
    const char *sandbox;
    const char *tag; /* NULL: all */
};

int list_request_parse(const json_t *object, struct list_request *ret, struct err *err);
