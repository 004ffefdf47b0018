// SPDX-License-Identifier: Apache-2.0
#include "cli/agent/options.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/xalloc.h"
#include "cli/agent/install.h"
#include "cli/core/report.h"
#include "cli/core/result.h"
#include "holt.h"

static const struct option_table process_table = { run_sandbox_rows, RUN_SANDBOX_ROWS,
                                                   &run_process_table };

static int set_secret(void *into, const char *value, struct err *err)
{
    (void)err;
    words_add(&((struct agent_options *)into)->secrets, value);
    return 0;
}

static const struct option_row rows[] = {
    { "name", 0, "NAME", "a unique name of the sandbox", OPTION_TEXT(struct agent_options, name) },
    { "assistant", 0, "NAME", "how the agent calls itself, if its type asks for it",
      OPTION_TEXT(struct agent_options, settings.assistant_name) },
    { "workspace", 0, "ID", "the workspace that it belongs to, also a label",
      OPTION_TEXT(struct agent_options, settings.workspace_id) },
    { "bridge", 0, "URL", "where an agent with a chat bridge sends messages",
      OPTION_TEXT(struct agent_options, settings.bridge_url) },
    { "secret", 0, "SECRET", "a secret whose placeholder its processes have; may be repeated",
      OPTION_CALL(set_secret) },
};

const struct option_table agent_options_table = { rows, ARRAY_SIZE(rows), &process_table };

void agent_options_done(struct agent_options *options)
{
    run_options_done(&options->run);
    words_done(&options->secrets);
}

static bool env_has(const struct words *env, const char *name)
{
    size_t len = strlen(name);

    for (size_t i = 0; i < env->count; i++)
        if (strncmp(env->items[i], name, len) == 0 && env->items[i][len] == '=')
            return true;
    return false;
}

void agent_env_add(const struct holt_agent *agent, struct words *env)
{
    for (size_t i = 0; i < agent->env_count; i++) {
        cleanup_free char *text = NULL;

        if (env_has(env, agent->env[i].key))
            continue;
        text = xasprintf("%s=%s", agent->env[i].key, agent->env[i].value);
        words_add(env, text);
    }
}

int agent_sandbox_make(struct holt *holt, const char *type, struct agent_options *options,
                       struct holt_sandbox **ret)
{
    struct holt_sandbox_options sandbox = HOLT_INIT(holt_sandbox_options);
    struct holt_error error;
    int status = options->run.template ? STATUS_OK : agent_install(holt, type, NULL, false);

    if (status != STATUS_OK)
        return status;
    run_sandbox_set(&options->run, &sandbox);
    sandbox.name = options->name;
    sandbox.type = type;
    sandbox.secrets = (const char *const *)options->secrets.items;
    options->settings.size = sizeof(options->settings);
    options->settings.bridge_secret = getenv("HOLT_BRIDGE_SECRET");
    options->settings.token = getenv("HOLT_AGENT_TOKEN");
    options->settings.env =
        options->settings.serves ? (const char *const *)options->run.env.items : NULL;
    sandbox.agent = &options->settings;
    if (options->idle_ms > 0) {
        sandbox.idle_timeout_ms = options->idle_ms;
        sandbox.idle_action = "kill";
    }
    if (holt_sandbox_create(holt, &sandbox, HOLT_NO_DEADLINE, ret, &error) < 0)
        return report_holt_error(&error);
    if (!(*ret)->agent)
        return report("the daemon is too old for agents");
    return STATUS_OK;
}
