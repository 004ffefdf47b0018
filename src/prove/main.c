// SPDX-License-Identifier: Apache-2.0
/* holt-prove guard DIR               makes canaries and prints the facts about them
 * holt-prove swap DIR:TARGET         swaps a directory and a link to TARGET, see swap.c
 * holt-prove outside|inside FACTS    runs every attempt; a line each: NAME VERDICT ABOUT DETAIL
 * holt-prove between-outside|between-inside FACTS    only those against another sandbox
 *
 * Fields are separated by tabs; the verdict is reached, held, absent or failed. Each attempt has a
 * process of its own, so none can spoil the next. */
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "prove/prove.h"

enum { PATIENCE_S = 20, READ_BYTES = 1 << 20, PATH_BYTES = 512 };

void reached(struct result *ret, const char *format, ...)
{
    va_list arguments;

    ret->is_reached = true;
    va_start(arguments, format);
    (void)vsnprintf(ret->detail, sizeof(ret->detail), format, arguments);
    va_end(arguments);
}

void held(struct result *ret, const char *what)
{
    const char *name = errno ? strerrorname_np(errno) : NULL;

    (void)snprintf(ret->detail, sizeof(ret->detail), "%s%s%s", what, name ? ": " : "",
                   name ? name : "");
}

void absent(struct result *ret, const char *what)
{
    ret->is_absent = true;
    held(ret, what);
}

void token_search(const struct facts *facts, const char *data, size_t len, struct result *ret,
                  const char *what)
{
    errno = 0;
    if (memmem(data, len, facts->token, strlen(facts->token)))
        reached(ret, "%s: it has the token", what);
    else
        held(ret, what);
}

void token_read(const struct facts *facts, int fd, struct result *ret, const char *what)
{
    static char data[READ_BYTES];
    size_t len = 0;
    ssize_t n = fd < 0 ? -1 : 1;

    while (n > 0 && len < sizeof(data)) {
        n = read(fd, data + len, sizeof(data) - len);
        len += n > 0 ? (size_t)n : 0;
    }
    if (n < 0 && len == 0)
        held(ret, what);
    else
        token_search(facts, data, len, ret, what);
    if (fd >= 0)
        (void)close(fd);
}

bool is_guard(const struct facts *facts)
{
    char path[64], name[32] = "";
    FILE *file;

    (void)snprintf(path, sizeof(path), "/proc/%llu/comm", (unsigned long long)facts->pid);
    file = fopen(path, "re");
    if (!file)
        return true;
    if (!fgets(name, sizeof(name), file))
        name[0] = '\0';
    (void)fclose(file);
    return strcmp(name, "holt-canary\n") == 0;
}

const char *scratch_dir(const struct facts *facts)
{
    static char dir[PATH_BYTES];

    (void)snprintf(dir, sizeof(dir), "%s/holt-prove-XXXXXX",
                   facts->is_inside ? "/tmp" : facts->dir);
    return mkdtemp(dir) ? dir : "/nowhere";
}

/* --- facts ------------------------------------------------------------------------------------ */

#define TEXT(field)                                                                                \
    {                                                                                              \
#field, offsetof(struct facts, field), true                                                \
    }
#define NUMBER(field)                                                                              \
    {                                                                                              \
#field, offsetof(struct facts, field), false                                               \
    }

static bool fact_set(struct facts *facts, const char *name, const char *value)
{
    static const struct {
        const char *name;
        size_t offset;
        bool is_text;
    } fields[] = {
        TEXT(token),          TEXT(file),      TEXT(dir),   TEXT(handle),   TEXT(socket),
        TEXT(queue),          TEXT(address),   NUMBER(pid), NUMBER(memory), NUMBER(port),
        NUMBER(address_port), NUMBER(segment), NUMBER(key), NUMBER(device),
    };

    for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
        char *at = (char *)facts + fields[i].offset;

        if (strcmp(fields[i].name, name) != 0)
            continue;
        if (fields[i].is_text)
            memcpy(at, (const void *)&value, sizeof(value));
        else
            *(uint64_t *)(void *)at = strtoull(value, NULL, 10);
        return true;
    }
    return false;
}

bool facts_parse(const char *text, bool is_inside, struct facts *ret)
{
    char *rest, *word;

    *ret = (struct facts){ .token = "",
                           .file = "",
                           .dir = "",
                           .handle = "",
                           .socket = "",
                           .queue = "",
                           .address = "",
                           .is_inside = is_inside };
    if (strlen(text) >= sizeof(ret->text))
        return false;
    (void)snprintf(ret->text, sizeof(ret->text), "%s", text);
    for (word = strtok_r(ret->text, " \n", &rest); word; word = strtok_r(NULL, " \n", &rest)) {
        char *equals = strchr(word, '=');

        if (!equals)
            return false;
        *equals = '\0';
        if (!fact_set(ret, word, equals + 1))
            return false;
    }
    return *ret->token != '\0';
}

/* --- attempts --------------------------------------------------------------------------------- */

static void attempt_child(const struct attempt *attempt, const struct facts *facts, int fd)
{
    struct result result = { .detail = "" };

    (void)alarm(PATIENCE_S);
    if (!facts->is_inside && attempt->prepare)
        attempt->prepare(facts);
    attempt->run(facts, &result);
    (void)!write(fd, &result, sizeof(result));
    _exit(0);
}

/* Returns whether the attempt ran to its end. */
static bool attempt_run(const struct attempt *attempt, const struct facts *facts,
                        struct result *ret)
{
    int ends[2], status = 0;
    ssize_t n;
    pid_t pid;

    if (pipe2(ends, 0) < 0) // NOLINT(android-cloexec-pipe2): nothing is executed
        return false;
    (void)fflush(stdout);
    pid = fork();
    if (pid == 0)
        attempt_child(attempt, facts, ends[1]);
    (void)close(ends[1]);
    n = pid < 0 ? -1 : read(ends[0], ret, sizeof(*ret));
    (void)close(ends[0]);
    if (pid > 0)
        (void)waitpid(pid, &status, 0);
    if (n == (ssize_t)sizeof(*ret))
        return true;
    (void)snprintf(ret->detail, sizeof(ret->detail), "the attempt ended with status %d", status);
    return false;
}

static void attempts_run(const struct facts *facts, bool is_between)
{
    for (const struct attempt *each = attempts; each->name; each++) {
        struct result result = { .detail = "" };
        const char *verdict = "failed";

        if (is_between && !each->is_between)
            continue;
        if (attempt_run(each, facts, &result))
            verdict = result.is_reached ? "reached" : result.is_absent ? "absent" : "held";
        for (char *c = result.detail; *c; c++)
            if (*c == '\t' || *c == '\n')
                *c = ' ';
        (void)printf("%s\t%s\t%s\t%s\n", each->name, verdict, each->about, result.detail);
    }
    (void)fflush(stdout);
}

int main(int argc, char **argv)
{
    static struct facts facts;
    bool is_between = argc == 3 && strncmp(argv[1], "between-", 8) == 0;
    const char *side = argc == 3 ? argv[1] + (is_between ? 8 : 0) : "";

    descriptors_note();
    (void)signal(SIGPIPE, SIG_IGN);
    if (strcmp(side, "guard") == 0)
        return guard_run(argv[2]);
    if (strcmp(side, "swap") == 0 && strchr(argv[2], ':')) {
        char *target = strchr(argv[2], ':');

        *target = '\0';
        return swap_run(argv[2], target + 1);
    }
    if ((strcmp(side, "inside") != 0 && strcmp(side, "outside") != 0) ||
        !facts_parse(argv[2], strcmp(side, "inside") == 0, &facts)) {
        (void)fprintf(stderr, "usage: holt-prove guard DIR | [between-]inside|outside FACTS\n");
        return 2;
    }
    attempts_run(&facts, is_between);
    return 0;
}
