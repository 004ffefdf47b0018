/* Shared by the files of host/prove. */
#pragma once

#include <stdbool.h>
#include <stdio.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "host/prove/prove.h"

struct err;
struct process;
struct sandbox;

enum {
    PROOFS_MAX = 96,
    PROOF_RUNTIMES_MAX = 8,
    PROOF_OUTPUT_MAX = 256 * 1024,
    PROOF_FACTS_MAX = 2048,
    PROOF_DETAIL_BYTES = 160,
};

/* NOT_RUN is 0: a runtime that does not work here, or a run that ended early. */
enum proof_verdict {
    PROOF_NOT_RUN,
    PROOF_HELD,     /* refused, though it succeeds outside */
    PROOF_UNPROVEN, /* refused, but also outside: this machine has no such thing */
    PROOF_REACHED,
    PROOF_FAILED, /* the attempt itself broke */
};

struct proof_result {
    enum proof_verdict verdict;
    char detail[PROOF_DETAIL_BYTES];
};

struct proof {
    char name[48];
    char about[96];
    struct proof_result controls[PROOF_RUNTIMES_MAX]; /* REACHED: the attempt works */
    struct proof_result inside[PROOF_RUNTIMES_MAX];
};

struct proof_runtime {
    const char *name;
    bool works;        /* its programs are installed */
    bool breaks;       /* a sandbox could not be made, or ended early */
    char problem[240]; /* why */
};

struct proofs {
    struct proof items[PROOFS_MAX];
    size_t count;
    struct proof_runtime runtimes[PROOF_RUNTIMES_MAX];
    size_t runtime_count;
};

/* Where an attempt was made: in a sandbox of the runtime of an index, or as the control of that or,
 * outside of any sandbox, of every runtime. */
struct proof_place {
    bool is_control;
    int runtime; /* PROOF_EVERY: the control of all */
};

enum { PROOF_EVERY = -1 };

/* Finds or adds a proof. NULL if there are too many. */
struct proof *proofs_get(struct proofs *proofs, const char *prefix, const char *name);

/* Takes the lines that holt-prove has printed; each name gets the prefix. */
void proofs_read(struct proofs *proofs, const char *prefix, struct proof_place place,
                 const char *text);

/* Records one result by hand. */
void proof_set(struct proofs *proofs, const char *name, const char *about, struct proof_place place,
               const struct proof_result *result);

/* Calls a refusal unproven where the control did not succeed. Returns whether all runtimes that
 * work have withstood every attempt. */
bool proofs_judge(struct proofs *proofs);
void proofs_print(const struct proofs *proofs, FILE *out);
void proofs_print_json(const struct proofs *proofs, bool all_held, FILE *out);

/* A program outside that prints a line and goes on until it is stopped. */
struct prove_helper {
    pid_t pid;
    int in_fd;
    char line[PROOF_FACTS_MAX];
};

int prove_helper_start(const char *program, const char *mode, const char *dir,
                       struct prove_helper *ret, struct err *err);
void prove_helper_stop(struct prove_helper *helper);

/* The program holt-prove, as sandboxes get it. */
struct prove_program {
    char *path;
    char *data;
    size_t len;
};

int prove_program_load(struct prove_program *ret, struct err *err);
void prove_program_done(struct prove_program *program);

/* Runs holt-prove in a sandbox until it has ended; appends what it prints. */
int prove_inside(struct sandbox *sandbox, const struct prove_program *program, const char *mode,
                 const char *argument, struct buf *output, struct err *err);

/* The program inside a sandbox that prints a line and goes on until it is stopped. */
struct prove_guest {
    struct process *process;
    char line[PROOF_FACTS_MAX];
};

/* Starts holt-prove in a sandbox, and returns when it has printed its line. */
int prove_inside_start(struct sandbox *sandbox, const struct prove_program *program,
                       const char *mode, const char *argument, struct prove_guest *ret,
                       struct err *err);
void prove_inside_stop(struct process *process);

/* Lets the sandbox lead the host's own readers of its files astray, with links to the canary. */
int prove_links(struct proofs *proofs, int runtime, struct sandbox *sandbox,
                const struct prove_program *program, const char *facts, struct err *err);
int prove_links_outside(struct proofs *proofs, const struct prove_program *program,
                        const char *facts, struct err *err);
