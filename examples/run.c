// SPDX-License-Identifier: Apache-2.0
/* Creates a sandbox, runs one command in it, prints its output, and destroys the sandbox.
 *
 *   cc run.c -o run $(pkg-config --cflags --libs libholt) && ./run uname -a
 */
#include <err.h>
#include <holt.h>
#include <stdio.h>
#include <stdlib.h>

static int print(void *context, enum holt_piece_kind kind, const char *data, size_t len)
{
    (void)context;
    return fwrite(data, 1, len, kind == HOLT_STDOUT ? stdout : stderr) == len ? 0 : -1;
}

_Noreturn static void fail(const struct holt_error *error)
{
    errx(125, "%s%s%s", error->message, *error->remedy ? ": " : "", error->remedy);
}

int main(int argc, char **argv)
{
    struct holt_command command = HOLT_INIT(holt_command);
    struct holt_result *result = NULL;
    struct holt_error error, ignored;
    struct holt_env *env = NULL;
    struct holt *holt = NULL;
    int r, status;

    if (argc < 2)
        errx(2, "usage: run COMMAND [ARGUMENT...]");
    if (holt_open(NULL, holt_after(5000), &holt, &error) < 0 ||
        holt_env_create(holt, NULL, holt_after(30000), &env, &error) < 0)
        fail(&error);

    command.args = (const char *const *)(argv + 1);
    command.on_output = print;
    r = holt_env_exec(env, &command, holt_after(60000), &result, &error);
    status = r == 0 ? result->end->exit_code : 125;
    holt_free(result);

    /* Destroy the sandbox even if the command failed: no other program knows its id. */
    if (holt_env_destroy(env, holt_after(30000), &ignored) < 0)
        warnx("%s", ignored.message);
    holt_env_free(env);
    holt_close(holt);
    if (r < 0)
        fail(&error);
    return status;
}
