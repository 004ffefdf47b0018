// SPDX-License-Identifier: Apache-2.0
#include "api/message/agent_setup.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/catalog.h"
#include "api/message/messages.h"
#include "api/message/network_messages.h"
#include "api/message/process_spec.h"
#include "api/service.h"
#include "base/access/label.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/random.h"
#include "host/core/host.h"
#include "host/llm/llm.h"
#include "host/process/record.h"
#include "host/process/service.h"
#include "host/sandbox/sandbox.h"
#include "host/worker/file.h"
#include "net/policy.h"

enum {
    VALUE_BYTES_MAX = 2 * AGENT_FILE_BYTES,
    READY_TIMEOUT_MS = 120 * 1000, /* servers of this kind take seconds to load on a busy machine */
    FILE_MODE = 0600,
    OUTPUT_TAIL_SIZE = 140, /* of a server that has ended: it fits the text of an error */
};

static const struct msg_agent_settings no_settings = {
    .token = "", .assistant_name = "", .workspace_id = "", .bridge_url = "", .bridge_secret = ""
};

void agent_template(const struct agent_type *type, char ret[AGENT_TEMPLATE_SIZE])
{
    (void)snprintf(ret, AGENT_TEMPLATE_SIZE, "%s%s", *type->npm ? "agent-" : "",
                   *type->npm ? type->name : type->template);
}

const char *const *agent_words(const char *text, struct arena *arena, size_t *ret_count)
{
    const char **words = arena_take(arena, strlen(text) / 2 + 1, sizeof(*words));
    char *copy = arena_copy_text(arena, text), *rest = NULL;

    *ret_count = 0;
    for (char *word = strtok_r(copy, " \t\n", &rest); word; word = strtok_r(NULL, " \t\n", &rest))
        words[(*ret_count)++] = word;
    return words;
}

/* Values become parts of JSON, TOML and lines of other formats. */
static int text_check(const char *field, const char *text, struct err *err)
{
    if (text[strcspn(text, "\"'\\`$")])
        return err_set(err, ERR_INVALID,
                       "field 'agent.%s' has a quote, a backslash or a dollar sign", field);
    return 0;
}

static int values_take(const struct call *call, const struct msg_create_sandbox_request *request,
                       struct agent_setup *setup, struct err *err)
{
    const struct msg_agent_settings *settings = setup->settings;
    bool has_token = agent_type_uses(&setup->type, "token");
    int r = text_check("token", settings->token, err);

    (void)call;
    if (r == 0)
        r = text_check("assistantName", settings->assistant_name, err);
    if (r == 0)
        r = text_check("workspaceId", settings->workspace_id, err);
    if (r == 0)
        r = text_check("bridgeUrl", settings->bridge_url, err);
    if (r == 0)
        r = text_check("bridgeSecret", settings->bridge_secret, err);
    if (r < 0)
        return r;
    if (has_token && *request->idempotency_key && !*settings->token)
        return err_set(err, ERR_INVALID,
                       "field 'agent.token' is needed with an idempotencyKey: a second reply could "
                       "not repeat a random token");
    if (has_token && !*settings->token) {
        r = random_hex(setup->random_token, (AGENT_TOKEN_SIZE - 1) / 2);
        if (r < 0)
            return err_sys(err, r, "make a token");
    }
    setup->values = (struct agent_values){
        .token = *settings->token ? settings->token : setup->random_token,
        .assistant = *settings->assistant_name ? settings->assistant_name : "Andy",
        .workspace = settings->workspace_id,
        .bridge_secret = settings->bridge_secret,
        .bridge_url = settings->bridge_url,
        .model = "",
        .format = "",
    };
    return 0;
}

/* Adds agent=TYPE, and workspace=ID if there is one, unless the request sets them. */
static int labels_add(const struct call *call, const struct agent_setup *setup,
                      struct sandbox_spec *spec, struct err *err)
{
    const char *const keys[] = { "agent", "workspace" };
    const char *const values[] = { setup->type.name, setup->values.workspace };
    struct label *labels = arena_take(call->arena, spec->label_count + 2, sizeof(*labels));
    size_t count = spec->label_count;

    if (count > 0)
        memcpy(labels, spec->labels, count * sizeof(*labels));
    for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
        if (!*values[i] || labels_find(spec->labels, spec->label_count, keys[i]))
            continue;
        (void)snprintf(labels[count].key, sizeof(labels[count].key), "%s", keys[i]);
        (void)snprintf(labels[count++].value, sizeof(labels[count].value), "%s", values[i]);
    }
    if (count > SANDBOX_LABELS_MAX)
        return err_set(err, ERR_EXHAUSTED, "more than %d labels with those of the agent",
                       SANDBOX_LABELS_MAX);
    spec->labels = labels;
    spec->label_count = count;
    return 0;
}

/* Adds the secrets of the type that the request does not name. */
static void secrets_add(const struct call *call, const struct agent_setup *setup,
                        struct sandbox_spec *spec)
{
    size_t type_count, count = spec->secret_count;
    const char *const *own = agent_words(setup->type.secrets, call->arena, &type_count);
    const char **all = arena_take(call->arena, count + type_count + 1, sizeof(*all));

    for (size_t i = 0; i < count; i++)
        all[i] = spec->secrets[i];
    for (size_t i = 0; i < type_count; i++) {
        bool is_named = false;

        for (size_t j = 0; j < count; j++)
            is_named = is_named || strcmp(all[j], own[i]) == 0;
        if (!is_named)
            all[count++] = own[i];
    }
    spec->secrets = all;
    spec->secret_count = count;
}

/* What is looked for among the models of an owner. */
struct model_search {
    const struct call *call;
    const struct net_layer *network;
    const char *format;              /* "any": all */
    const char *name, *found_format; /* of the first that the sandbox may use; NULL: none */
};

static void model_consider(void *data, const struct llm_model_info *model, const char *prices_date)
{
    struct model_search *search = data;
    bool fits = strcmp(search->format, "any") == 0 || strcmp(search->format, model->kind) == 0;

    (void)prices_date;
    if (search->name || !fits || !net_models_have(search->network->models, model->name))
        return;
    search->name = arena_copy_text(search->call->arena, model->name);
    search->found_format = arena_copy_text(search->call->arena, model->kind);
}

/* Adds all models, unless the request says which there are, and finds the one to begin with. */
static int models_add(const struct call *call, const struct msg_create_sandbox_request *request,
                      struct agent_setup *setup, struct net_layer *network, struct err *err)
{
    struct model_search search = { call, network, setup->type.models, NULL, NULL };
    bool is_given = request->network && request->network->models_count > 0;
    int r = 0;

    if (!*setup->type.models || (is_given && !network->models[0]))
        return 0;
    if (!is_given)
        r = net_layer_add_model(network, "all", err);
    if (r < 0)
        return r;
    llm_each_model(host_llm(call->host), call->caller->owner, model_consider, &search);
    if (!search.name) {
        (void)err_set(err, ERR_INVALID, "agent type '%s' needs a model of format %s, and has none",
                      setup->type.name, setup->type.models);
        return err_remedy(err,
                          "add one to the file of `models` in holt.conf; or take a key of your "
                          "own, with --model none");
    }
    setup->values.model = search.name;
    setup->values.format = search.found_format;
    return 0;
}

/* Adds what the request leaves to the type: the network, and the models. */
static int network_add(const struct call *call, const struct msg_create_sandbox_request *request,
                       struct agent_setup *setup, struct sandbox_spec *spec,
                       struct net_layer *network, struct err *err)
{
    const struct msg_network_policy policy = { .mode = setup->type.network,
                                               .allow = setup->type.allow,
                                               .allow_count = setup->type.allow_count,
                                               .proxy = "" };
    int r = 0;

    if (!spec->network && !*setup->type.network)
        return 0;
    if (!spec->network)
        r = network_layer_read(&policy, network, err);
    spec->network = network;
    return r < 0 ? r : models_add(call, request, setup, network, err);
}

int agent_setup_begin(const struct call *call, const struct msg_create_sandbox_request *request,
                      struct agent_setup *setup, struct sandbox_spec *spec,
                      struct net_layer *network, struct err *err)
{
    int r;

    if (!*request->type)
        return request->agent ? err_set(err, ERR_INVALID, "field 'agent' needs a 'type'") : 0;
    setup->settings = request->agent ? request->agent : &no_settings;
    r = agent_catalog_find(call->agents_dir, request->type, &setup->type, err);
    if (r < 0)
        return r;
    setup->is_wanted = true;
    if (setup->settings->serve && !*setup->type.serve)
        return err_set(err, ERR_INVALID, "agent type '%s' has no server", setup->type.name);
    r = values_take(call, request, setup, err);
    agent_template(&setup->type, setup->template);
    if (!spec->template)
        spec->template = text_or_null(setup->template);
    secrets_add(call, setup, spec);
    if (r == 0)
        r = labels_add(call, setup, spec, err);
    return r < 0 ? r : network_add(call, request, setup, spec, network, err);
}

/* Returns the text with the values of the sandbox; NULL: it would be too long. */
static const char *text_expand(const struct call *call, const struct agent_setup *setup,
                               const char *text, struct err *err)
{
    cleanup_with(buf_done) struct buf out = BUF_INIT(VALUE_BYTES_MAX);
    char *copy;

    if (agent_values_add(&setup->values, text, &out) < 0) {
        (void)err_set(err, ERR_EXHAUSTED, "a value of agent type '%s' is too long",
                      setup->type.name);
        return NULL;
    }
    copy = arena_take(call->arena, out.len + 1, 1);
    if (out.len > 0)
        memcpy(copy, out.data, out.len);
    return copy;
}

static void call_close_slot(struct file_call **call)
{
    file_call_close(*call);
}

static int file_write(const struct call *call, struct sandbox *sandbox, const char *path,
                      const char *content, struct err *err)
{
    cleanup_with(call_close_slot) struct file_call *files = NULL;
    const struct file_request request = { .type = FILE_WRITE,
                                          .flags = FILE_PARENTS | FILE_HAS_MODE | FILE_ATOMIC,
                                          .mode = FILE_MODE,
                                          .path = path,
                                          .to = "",
                                          .after = "",
                                          .user = "" };
    struct file_answer answer;
    int r = file_call_open(sandbox, call->connection_fd, false, &files, err);

    if (r == 0)
        r = file_call_send_request(files, &request, err);
    if (r == 0 && *content)
        r = file_call_send_data(files, content, strlen(content), err);
    if (r == 0)
        r = file_call_send_end(files, err);
    if (r == 0)
        r = file_call_next(files, &answer, err);
    return r < 0 ? err_wrap(err, "write '%s'", path) : 0;
}

static int files_write(const struct call *call, const struct agent_setup *setup,
                       struct sandbox *sandbox, struct err *err)
{
    int r = 0;

    for (size_t i = 0; r == 0 && i < setup->type.file_count; i++) {
        const struct agent_pair *file = &setup->type.files[i];
        const char *content = text_expand(call, setup, file->value, err);

        r = content ? file_write(call, sandbox, file->name, content, err) : -ENOBUFS;
    }
    return r;
}

/* Fills in the variables of the type, then those of the request, which precede. */
static int env_fill(const struct call *call, const struct agent_setup *setup, struct msg_agent *ret,
                    struct err *err)
{
    const struct msg_agent_settings *settings = setup->settings;
    size_t max = setup->type.env_count + settings->env_count, count = 0;
    struct pair *env = arena_take(call->arena, max + 1, sizeof(*env));

    for (size_t i = 0; i < setup->type.env_count; i++) {
        const char *value = text_expand(call, setup, setup->type.env[i].value, err);
        bool is_given = false;

        if (!value)
            return -ENOBUFS;
        if (!*value && *setup->type.env[i].value) /* there is no such value here */
            continue;
        for (size_t j = 0; j < settings->env_count; j++)
            is_given = is_given || strcmp(settings->env[j].key, setup->type.env[i].name) == 0;
        if (!is_given)
            env[count++] = (struct pair){ setup->type.env[i].name, value };
    }
    for (size_t i = 0; i < settings->env_count; i++)
        env[count++] = settings->env[i];
    ret->env = env;
    ret->env_count = count;
    return 0;
}

/* Copies the end of what a process has printed, to stderr if it has, as text of one line. */
static void output_tail(struct record *record, char *ret, size_t size)
{
    struct output_reader *reader = NULL;
    enum output_stream stream;
    struct reader_spec spec = { .follows = false };
    struct reader_event event;
    struct record_info info;
    size_t len = 0, wanted;
    struct err ignored;

    record_get(record, &info);
    stream = info.streams[PROCESS_ERR].total > 0 ? PROCESS_ERR : PROCESS_OUT;
    for (size_t i = 0; i < PROCESS_STREAMS; i++)
        spec.from[i] = info.streams[i].total;
    wanted = spec.from[stream] < size - 1 ? (size_t)spec.from[stream] : size - 1;
    spec.from[stream] -= wanted;
    if (reader_open(record, &spec, &reader, &ignored) == 0)
        while (len < wanted && reader_next(reader, -1, ret + len, wanted - len, &event) == 0 &&
               event.kind == READER_DATA)
            len += event.stream == stream ? event.len : 0;
    reader_close(reader);
    while (len > 0 && strchr(" \r\n", ret[len - 1]))
        len--;
    ret[len] = '\0';
    for (size_t i = 0; i < len; i++)
        if (ret[i] < ' ' || ret[i] > '~')
            ret[i] = ret[i] == '\n' ? '|' : ' ';
}

static int ended_error(const struct agent_setup *setup, struct record *record, struct err *err)
{
    char output[OUTPUT_TAIL_SIZE];

    output_tail(record, output, sizeof(output));
    (void)err_set(err, ERR_INTERNAL, "the server of agent type '%s' ended before it was ready%s%s",
                  setup->type.name, *output ? ": " : "", output);
    return err_remedy(err, "`holt agent show %s` has its command", setup->type.name);
}

static int server_start(const struct call *call, const struct agent_setup *setup,
                        struct sandbox *sandbox, struct msg_agent *ret, struct err *err)
{
    cleanup_with(record_unref_slot) struct record *record = NULL;
    const char *const args[] = { "/bin/sh", "-c", setup->type.serve, NULL };
    const struct process_spec process = {
        .args = (char *const *)(uintptr_t)args,
        .env = variables_make(ret->env, ret->env_count, call->arena),
        .tag = "agent",
        .port = (uint16_t)setup->type.port,
        .restart = RESTART_ON_FAILURE,
        .is_detached = true,
    };
    const struct readiness_spec ready = { .http_path = text_or_null(setup->type.ready),
                                          .timeout_ms = READY_TIMEOUT_MS,
                                          .watch_fd = call->connection_fd,
                                          .is_first_run = true };
    enum readiness readiness = SERVICE_STARTING;
    struct record_info info;
    int r = service_launch(sandbox, &process, &record, err);

    if (r == 0)
        r = service_wait_ready(sandbox, record, &ready, &readiness, err);
    if (r < 0)
        return r;
    if (readiness == SERVICE_ENDED)
        return ended_error(setup, record, err);
    if (readiness == SERVICE_STARTING)
        return err_wrap(err, "the server of agent type '%s' is not ready", setup->type.name);
    record_get(record, &info);
    ret->process_id = arena_copy_text(call->arena, info.id);
    ret->address = arena_copy_text(call->arena, info.address ? info.address : "");
    return 0;
}

int agent_setup_finish(const struct call *call, struct agent_setup *setup, struct sandbox *sandbox,
                       bool is_joined, struct msg_agent *ret, struct err *err)
{
    int r;

    setup->values.sandbox = sandbox_id(sandbox);
    *ret = (struct msg_agent){
        .type = setup->type.name,
        .command = setup->type.command,
        .task = *setup->type.task ? setup->type.task : setup->type.command,
        .user = setup->type.user,
        .token = agent_type_uses(&setup->type, "token") ? setup->values.token : "",
        .process_id = "",
        .address = "",
    };
    r = env_fill(call, setup, ret, err);
    if (r == 0 && !is_joined)
        r = files_write(call, setup, sandbox, err);
    if (r == 0 && !is_joined && setup->settings->serve)
        r = server_start(call, setup, sandbox, ret, err);
    return r;
}

void agent_setup_done(struct agent_setup *setup)
{
    if (setup->is_wanted)
        agent_type_done(&setup->type);
}
