// SPDX-License-Identifier: Apache-2.0
/* Prepares one sandbox, forks it, and runs a different command in every fork at the same time. All
 * threads share one handle.
 *
 *   cc parallel.c -o parallel $(pkg-config --cflags --libs libholt) -pthread && ./parallel 8
 */
#include <err.h>
#include <holt.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { FORKS_MAX = 64 };

struct attempt {
    pthread_t thread;
    struct holt *holt;
    const char *sandbox;
    int number;
    int status; /* exit status of the command; -1: it was not run */
    struct holt_error error;
};

static struct holt_error error;

static void check(int r)
{
    if (r < 0)
        errx(1, "%s (%s) %s", error.message, error.code, error.remedy);
}

static void *try_it(void *argument)
{
    struct attempt *attempt = argument;
    struct holt_command command = HOLT_INIT(holt_command);
    const char *const args[] = { "sh", "-c", "test $((start + add)) -eq 3 && cat common", NULL };
    const char *env[] = { NULL, "start=1", NULL };
    struct holt_result *result;
    char add[32];

    (void)snprintf(add, sizeof(add), "add=%d", attempt->number);
    env[0] = add;
    command.args = args;
    command.env = env;
    attempt->status = -1;
    if (holt_exec(attempt->holt, attempt->sandbox, &command, holt_after(60000), &result,
                  &attempt->error) < 0)
        return NULL;
    attempt->status = result->end->exit_code;
    holt_free(result);
    return NULL;
}

static void prepare(struct holt *holt, const char *sandbox)
{
    struct holt_write_options file = HOLT_INIT(holt_write_options);
    static const char text[] = "what all forks have in common\n";

    file.path = "common";
    file.data = text;
    file.len = sizeof(text) - 1;
    check(holt_file_write(holt, sandbox, &file, holt_after(30000), NULL, &error));
}

static void report(const struct attempt *attempt)
{
    if (attempt->status < 0)
        printf("fork %d: %s\n", attempt->number, attempt->error.message);
    else
        printf("fork %d: %s\n", attempt->number, attempt->status == 0 ? "found it" : "no");
}

int main(int argc, char **argv)
{
    struct holt_fork_options options = HOLT_INIT(holt_fork_options);
    static struct attempt attempts[FORKS_MAX];
    struct holt_sandbox *original;
    struct holt_sandbox_list *forks;
    struct holt *holt;
    int count = argc > 1 ? (int)strtol(argv[1], NULL, 10) : 4;

    if (count < 1 || count > FORKS_MAX)
        errx(2, "usage: parallel [1..%d]", FORKS_MAX);
    check(holt_open(NULL, holt_after(5000), &holt, &error));
    check(holt_sandbox_create(holt, NULL, holt_after(30000), &original, &error));
    prepare(holt, original->id);

    options.count = (uint32_t)count;
    check(holt_sandbox_fork(holt, original->id, &options, holt_after(60000), &forks, &error));
    for (int i = 0; i < count; i++) {
        attempts[i].holt = holt;
        attempts[i].sandbox = forks->items[i]->id;
        attempts[i].number = i;
        if (pthread_create(&attempts[i].thread, NULL, try_it, &attempts[i]) != 0)
            errx(1, "cannot start a thread");
    }
    for (int i = 0; i < count; i++) {
        (void)pthread_join(attempts[i].thread, NULL);
        report(&attempts[i]);
        check(holt_sandbox_destroy(holt, attempts[i].sandbox, holt_after(30000), &error));
    }

    check(holt_sandbox_destroy(holt, original->id, holt_after(30000), &error));
    holt_free(forks);
    holt_free(original);
    holt_close(holt);
    return 0;
}
