// SPDX-License-Identifier: Apache-2.0
/* Runs two turns of an agent, prints the changes of the second, and rolls back to the first.
 *
 *   cc turns.c -o turns $(pkg-config --cflags --libs libholt) && ./turns
 */
#include <err.h>
#include <holt.h>
#include <stdio.h>
#include <stdlib.h>

static struct holt_error error;

/* Exits on an error. The sandbox is then removed at the end of its time to live. */
static void check(int r)
{
    if (r < 0)
        errx(1, "%s (%s) %s", error.message, error.code, error.remedy);
}

static void shell(struct holt *holt, const char *sandbox, const char *text)
{
    struct holt_shell_command command = HOLT_INIT(holt_shell_command);
    struct holt_result *result;

    command.shell = "work";
    command.text = text;
    check(holt_shell_run(holt, sandbox, &command, holt_after(60000), &result, &error));
    printf("$ %s\n%s", text, result->stdout_data);
    if (result->end->exit_code != 0)
        errx(1, "exit %d: %s", result->end->exit_code, result->stderr_data);
    holt_free(result);
}

/* Calls a tool, as a model would. */
static void tool(struct holt_env *env, const char *name, const char *params)
{
    struct holt_tool_call call = HOLT_INIT(holt_tool_call);
    struct holt_tool_result *result;

    call.tool = name;
    call.params = params;
    check(holt_env_execute_tool(env, &call, holt_after(60000), &result, &error));
    printf("%s %s\n%s\n", name, params, result->content);
    if (result->is_error)
        errx(1, "the tool failed");
    holt_free(result);
}

static int print_change(void *context, const struct holt_change *change)
{
    (void)context;
    if (*change->kind)
        printf("%s %s\n", change->kind, change->path);
    return 0;
}

int main(void)
{
    struct holt_sandbox_options options = HOLT_INIT(holt_sandbox_options);
    struct holt_diff_options diff = HOLT_INIT(holt_diff_options);
    struct holt_snapshot *first, *second;
    const char *sandbox;
    struct holt_env *env;
    struct holt *holt;

    options.needs = HOLT_NEEDS_SNAPSHOTS | HOLT_NEEDS_ROLLBACK;
    options.ttl_ms = 10ULL * 60 * 1000;
    check(holt_open(NULL, holt_after(5000), &holt, &error));
    check(holt_env_create(holt, &options, holt_after(30000), &env, &error));
    sandbox = holt_env_id(env);

    shell(holt, sandbox, "cd /workspace && echo one >notes && cat notes");
    check(holt_env_turn(env, holt_after(30000), &first, &error));
    tool(env, "edit_file", "{\"path\":\"notes\",\"old_string\":\"one\",\"new_string\":\"two\"}");
    shell(holt, sandbox, "touch more && cat notes");
    check(holt_env_turn(env, holt_after(30000), &second, &error));

    printf("%s to %s:\n", first->name, second->name);
    diff.from = first->name;
    diff.to = second->name;
    diff.on_change = print_change;
    check(holt_diff(holt, sandbox, &diff, holt_after(30000), &error));

    check(holt_env_rollback(env, first->name, holt_after(30000), &error));
    printf("back at %s:\n", first->name);
    shell(holt, sandbox, "ls; cat notes");

    holt_free(first);
    holt_free(second);
    check(holt_env_destroy(env, holt_after(30000), &error));
    holt_env_free(env);
    holt_close(holt);
    return 0;
}
