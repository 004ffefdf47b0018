// SPDX-License-Identifier: Apache-2.0
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "base/xalloc.h"
#include "cli/core/complete.h"
#include "cli/core/connect.h"
#include "cli/core/result.h"
#include "holt.h"

enum { PATIENCE_S = 1 };

/* A kind of name: the call that lists them, and the fields of an element. */
struct source {
    const char *kind;
    const char *method;
    bool is_of_sandbox;
    const char *list;
    const char *name, *other; /* other: a second name of the same, or NULL */
    const char *what;         /* said beside the name */
};

static const struct source sources[] = {
    { "ID", "holt.v1.SandboxService/List", false, "sandboxes", "id", "name", "state" },
    { "ID:", "holt.v1.SandboxService/List", false, "sandboxes", "id", "name", "state" },
    { "TEMPLATE", "holt.v1.TemplateService/List", false, "templates", "name", NULL, "kind" },
    { "SNAPSHOT", "holt.v1.SnapshotService/List", true, "snapshots", "name", NULL, "createdAt" },
    { "PROCESS", "holt.v1.ProcessService/List", true, "processes", "id", NULL, "tag" },
    { "VOLUME", "holt.v1.VolumeService/List", false, "volumes", "name", NULL, "id" },
    { "TOKEN", "holt.v1.TokenService/List", false, "tokens", "id", NULL, "label" },
    { "TOOL", "holt.v1.ToolService/List", false, "tools", "name", NULL, "title" },
    { "SHELL", "holt.v1.ShellService/List", true, "shells", "name", NULL, "kind" },
};

/* Nobody waits for a daemon that does not answer just because a key was pressed. */
static void leave(int number)
{
    (void)number;
    _exit(0);
}

/* "ID:" is an ID in front of a path. */
static void offer_one(const char *start, const char *name, const char *what, bool is_place)
{
    cleanup_free char *word = xasprintf("%s%s", name, is_place ? ":" : "");

    complete_offer(start, word, what);
}

static void offer_all(const struct source *source, const json_t *list, const char *start)
{
    bool is_place = strcmp(source->kind, "ID:") == 0;

    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *each = json_array_get(list, i);
        const char *other = source->other ? call_text(each, source->other) : "";

        if (*other)
            offer_one(start, other, call_text(each, source->what), is_place);
        /* An id is offered where there is no name, and to who has begun to write one. */
        if (!*other || *start)
            offer_one(start, call_text(each, source->name), call_text(each, source->what),
                      is_place);
    }
}

static void ask(const struct source *source, const char *sandbox, const char *start)
{
    cleanup_with(connection_close) struct connection connection = { .holt = NULL };
    cleanup_json json_t *request = json_object(), *reply = NULL;
    struct holt_error error;

    (void)signal(SIGALRM, leave);
    (void)alarm(PATIENCE_S);
    if (connection_open_quietly(&connection) < 0)
        return;
    if (source->is_of_sandbox)
        (void)json_object_set_new(request, "sandboxId", json_string(sandbox));
    if (call_try(connection.holt, source->method, TAKE_PTR(request), &reply, &error) == 0)
        offer_all(source, json_object_get(reply, source->list), start);
}

void complete_names(const char *kind, const char *sandbox, const char *start)
{
    for (size_t i = 0; i < ARRAY_SIZE(sources); i++)
        if (strcmp(sources[i].kind, kind) == 0 && (sandbox || !sources[i].is_of_sandbox))
            ask(&sources[i], sandbox, start);
}
