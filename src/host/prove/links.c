// SPDX-License-Identifier: Apache-2.0
/* CVE-2026-39861: a sandbox makes a link, and a program of the host follows it. Here the program is
 * what `holt cp` and the file tools use. In the race, holt-prove exchanges a directory and a link
 * to one of the host all the time. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/xalloc.h"
#include "host/process/process.h"
#include "host/prove/prove_internal.h"
#include "host/sandbox/sandbox.h"
#include "host/worker/file.h"

#define RACE "swapped-directory"
#define RACE_ABOUT "lead 'holt cp' to a file of the host by swapping a link (CVE-2026-39861)"
#define RACE_FILE "swap/canary" /* see src/prove/swap.c */

enum { RACE_ROUNDS = 300, CONTROL_ROUNDS = 1000000, TEXT_MAX = 4096 };

/* Copies the value of a fact. */
static void fact_get(const char *facts, const char *name, char *ret, size_t size)
{
    const char *at = strstr(facts, name);

    (void)snprintf(ret, size, "%.*s", at ? (int)strcspn(at + strlen(name), " \n") : 0,
                   at ? at + strlen(name) : "");
}

/* Reads a file as `holt cp` does. Returns whether the token is in it. */
static bool read_has_token(struct sandbox *sandbox, const char *path, const char *token)
{
    cleanup_with(buf_done) struct buf text = BUF_INIT(TEXT_MAX);
    const struct file_request request = { .type = FILE_READ, .path = path };
    struct file_call *call = NULL;
    struct file_answer answer;
    struct err ignored;

    if (file_call_open(sandbox, -1, false, &call, &ignored) < 0)
        return false;
    if (file_call_send_request(call, &request, &ignored) == 0)
        while (file_call_next(call, &answer, &ignored) > 0)
            if (answer.type == FILE_DATA)
                (void)buf_add(&text, answer.data, answer.len);
    file_call_close(call);
    return text.data && memmem(text.data, text.len, token, strlen(token));
}

int prove_links(struct proofs *proofs, int runtime, struct sandbox *sandbox,
                const struct prove_program *program, const char *facts, struct err *err)
{
    struct proof_result result = { .verdict = PROOF_HELD };
    char token[64], dir[256], argument[512];
    struct prove_guest swapper;
    int r;

    fact_get(facts, "token=", token, sizeof(token));
    fact_get(facts, "dir=", dir, sizeof(dir));
    (void)snprintf(argument, sizeof(argument), "/workspace:%s", dir);
    r = prove_inside_start(sandbox, program, "swap", argument, &swapper, err);
    if (r < 0)
        return r;
    for (int i = 0; i < RACE_ROUNDS && result.verdict == PROOF_HELD; i++)
        if (read_has_token(sandbox, "/workspace/" RACE_FILE, token))
            result.verdict = PROOF_REACHED;
    prove_inside_stop(swapper.process);
    (void)snprintf(result.detail, sizeof(result.detail), "%d reads", RACE_ROUNDS);
    proof_set(proofs, RACE, RACE_ABOUT, (struct proof_place){ false, runtime }, &result);
    return 0;
}

/* A reader of the host that resolves the path in its own root. */
static bool naive_read_has_token(const char *path, const char *token)
{
    cleanup_close int fd = open(path, O_RDONLY | O_CLOEXEC);
    char text[128];
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text));

    return n > 0 && memmem(text, (size_t)n, token, strlen(token));
}

int prove_links_outside(struct proofs *proofs, const struct prove_program *program,
                        const char *facts, struct err *err)
{
    struct proof_result result = { .verdict = PROOF_HELD };
    cleanup_free char *argument = NULL, *path = NULL;
    struct prove_helper helper = { .pid = 0 };
    char token[64], dir[256];
    int r;

    fact_get(facts, "token=", token, sizeof(token));
    fact_get(facts, "dir=", dir, sizeof(dir));
    argument = xasprintf("%s:%s", dir, dir);
    path = xasprintf("%s/" RACE_FILE, dir);
    r = prove_helper_start(program->path, "swap", argument, &helper, err);
    if (r < 0)
        return r;
    for (int i = 0; i < CONTROL_ROUNDS && result.verdict == PROOF_HELD; i++)
        if (naive_read_has_token(path, token))
            result.verdict = PROOF_REACHED;
    prove_helper_stop(&helper);
    proof_set(proofs, RACE, RACE_ABOUT, (struct proof_place){ true, PROOF_EVERY }, &result);
    return 0;
}
