// SPDX-License-Identifier: Apache-2.0
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/text/parse.h"
#include "base/xalloc.h"
#include "cli/core/complete.h"
#include "cli/core/connect.h"
#include "cli/core/result.h"
#include "holt.h"

enum { PATIENCE_S = 1 };

/* A pressed key must not wait for a daemon that does not respond. */
static void give_up(int number)
{
    (void)number;
    _exit(0);
}

/* Calls a function that lists, and offers a word for each item. */
#define OFFER_LIST(type, call, item, offer)                                                        \
    do {                                                                                           \
        cleanup_result type *list = NULL;                                                          \
        struct holt_error error;                                                                   \
                                                                                                   \
        if ((call) < 0)                                                                            \
            return;                                                                                \
        for (size_t i = 0; i < list->count; i++) {                                                 \
            const typeof(**list->items) *item = list->items[i];                                    \
                                                                                                   \
            offer;                                                                                 \
        }                                                                                          \
    } while (0)

/* Offers the name, and the id if there is no name or the user has begun to type. */
static void sandbox_offer(const struct holt_sandbox *sandbox, const char *suffix, const char *start)
{
    cleanup_free char *name = xasprintf("%s%s", sandbox->name, suffix);
    cleanup_free char *id = xasprintf("%s%s", sandbox->id, suffix);

    if (*sandbox->name)
        complete_offer(start, name, holt_state_name(sandbox->state));
    if (!*sandbox->name || *start)
        complete_offer(start, id, holt_state_name(sandbox->state));
}

static void sandboxes_offer(struct holt *holt, const char *sandbox, const char *start)
{
    (void)sandbox;
    OFFER_LIST(struct holt_sandbox_list,
               holt_sandbox_list(holt, NULL, HOLT_NO_DEADLINE, &list, &error), item,
               sandbox_offer(item, "", start));
}

static void places_offer(struct holt *holt, const char *sandbox, const char *start)
{
    (void)sandbox;
    OFFER_LIST(struct holt_sandbox_list,
               holt_sandbox_list(holt, NULL, HOLT_NO_DEADLINE, &list, &error), item,
               sandbox_offer(item, ":", start));
}

static void templates_offer(struct holt *holt, const char *sandbox, const char *start)
{
    (void)sandbox;
    OFFER_LIST(struct holt_template_list, holt_template_list(holt, HOLT_NO_DEADLINE, &list, &error),
               item, complete_offer(start, item->name, item->kind));
}

static void agent_types_offer(struct holt *holt, const char *sandbox, const char *start)
{
    (void)sandbox;
    OFFER_LIST(struct holt_agent_type_list,
               holt_agent_type_list(holt, HOLT_NO_DEADLINE, &list, &error), item,
               complete_offer(start, item->name, item->summary));
}

static void snapshot_offer(const struct holt_snapshot *snapshot, const char *start)
{
    char time[TIME_TEXT_SIZE];

    format_time_ms((uint64_t)snapshot->created_ms, time);
    complete_offer(start, snapshot->name, time);
}

static void snapshots_offer(struct holt *holt, const char *sandbox, const char *start)
{
    OFFER_LIST(struct holt_snapshot_list,
               holt_snapshot_list(holt, sandbox, HOLT_NO_DEADLINE, &list, &error), item,
               snapshot_offer(item, start));
}

static void processes_offer(struct holt *holt, const char *sandbox, const char *start)
{
    OFFER_LIST(struct holt_process_list,
               holt_process_list(holt, sandbox, NULL, HOLT_NO_DEADLINE, &list, &error), item,
               complete_offer(start, item->id, item->tag));
}

static void volumes_offer(struct holt *holt, const char *sandbox, const char *start)
{
    (void)sandbox;
    OFFER_LIST(struct holt_volume_list, holt_volume_list(holt, HOLT_NO_DEADLINE, &list, &error),
               item, complete_offer(start, item->name, item->id));
}

static void secrets_offer(struct holt *holt, const char *sandbox, const char *start)
{
    (void)sandbox;
    OFFER_LIST(struct holt_secret_list, holt_secret_list(holt, HOLT_NO_DEADLINE, &list, &error),
               item, complete_offer(start, item->name, item->hosts[0]));
}

static void logins_offer(struct holt *holt, const char *sandbox, const char *start)
{
    (void)sandbox;
    OFFER_LIST(struct holt_registry_login_list,
               holt_registry_list(holt, HOLT_NO_DEADLINE, &list, &error), item,
               complete_offer(start, item->registry, item->username));
}

static void unrecorded_offer(struct holt *holt, const char *sandbox, const char *start)
{
    cleanup_result struct holt_volume_list *list = NULL;
    struct holt_error error;

    (void)sandbox;
    if (holt_volume_list(holt, HOLT_NO_DEADLINE, &list, &error) < 0)
        return;
    for (size_t i = 0; i < list->unrecorded_count; i++)
        complete_offer(start, list->unrecorded[i]->id,
                       list->unrecorded[i]->is_shared ? "shared volume" : "files of a sandbox");
}

static void owners_offer(struct holt *holt, const char *sandbox, const char *start)
{
    (void)sandbox;
    OFFER_LIST(struct holt_owner_list, holt_owner_list(holt, HOLT_NO_DEADLINE, &list, &error), item,
               complete_offer(start, item->name, ""));
}

static void tokens_offer(struct holt *holt, const char *sandbox, const char *start)
{
    (void)sandbox;
    OFFER_LIST(struct holt_token_list, holt_token_list(holt, HOLT_NO_DEADLINE, &list, &error), item,
               complete_offer(start, item->id, item->label));
}

static void sessions_offer(struct holt *holt, const char *sandbox, const char *start)
{
    (void)sandbox;
    OFFER_LIST(struct holt_console_session_list,
               holt_console_session_list(holt, HOLT_NO_DEADLINE, &list, &error), item,
               complete_offer(start, item->id, item->address));
}

static void tools_offer(struct holt *holt, const char *sandbox, const char *start)
{
    (void)sandbox;
    OFFER_LIST(struct holt_tool_list, holt_tool_list(holt, HOLT_NO_DEADLINE, &list, &error), item,
               complete_offer(start, item->name, item->title));
}

static void shells_offer(struct holt *holt, const char *sandbox, const char *start)
{
    OFFER_LIST(struct holt_shell_list,
               holt_shell_list(holt, sandbox, HOLT_NO_DEADLINE, &list, &error), item,
               complete_offer(start, item->name, item->kind));
}

static const struct source {
    const char *kind;
    bool is_of_sandbox;
    void (*offer)(struct holt *holt, const char *sandbox, const char *start);
} sources[] = {
    { "ID", false, sandboxes_offer },      { "ID:", false, places_offer },
    { "TYPE", false, agent_types_offer },  { "TEMPLATE", false, templates_offer },
    { "SNAPSHOT", true, snapshots_offer }, { "PROCESS", true, processes_offer },
    { "VOLUME", false, volumes_offer },    { "SECRET", false, secrets_offer },
    { "OWNER", false, owners_offer },      { "TOKEN", false, tokens_offer },
    { "SESSION", false, sessions_offer },  { "TOOL", false, tools_offer },
    { "SHELL", true, shells_offer },       { "UNRECORDED", false, unrecorded_offer },
    { "REGISTRY", false, logins_offer },
};

void complete_names(const char *kind, const char *sandbox, const char *start)
{
    cleanup_with(connection_close) struct connection connection = { .holt = NULL };

    for (size_t i = 0; i < ARRAY_SIZE(sources); i++) {
        if (strcmp(sources[i].kind, kind) != 0 || (!sandbox && sources[i].is_of_sandbox))
            continue;
        (void)signal(SIGALRM, give_up);
        (void)alarm(PATIENCE_S);
        if (connection_open_quietly(&connection) == 0)
            sources[i].offer(connection.holt, sandbox, start);
        return;
    }
}
