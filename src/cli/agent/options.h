/* What `holt agent run` and `holt agent serve` share: the sandbox of an agent. */
#pragma once

#include "cli/options/words.h"
#include "cli/run/options.h"

struct agent_options {
    struct run_options run;
    const char *name;
    struct words secrets;
    uint64_t idle_ms; /* after which the sandbox is removed; 0: never */
    struct holt_agent_settings settings;
};

/* Options of the sandbox, of the agent and of a process, and --help. For structs that start with
 * agent_options. */
extern const struct option_table agent_options_table;

void agent_options_done(struct agent_options *options);

/* Creates a sandbox of this type. Installs the packages of the type first if their template does
 * not exist. Returns 0, or the exit status after a report. */
int agent_sandbox_make(struct holt *holt, const char *type, struct agent_options *options,
                       struct holt_sandbox **ret);

/* Adds the variables of the agent that the user has not set. */
void agent_env_add(const struct holt_agent *agent, struct words *env);
