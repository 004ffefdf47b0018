/* The agent of a sandbox that is being created: CreateSandboxRequest.type and .agent. */
#pragma once

#include <stdbool.h>

#include "agent/type.h"
#include "wire/holt_v1.h"

struct arena;
struct call;
struct err;
struct net_layer;
struct sandbox;
struct sandbox_spec;

enum { AGENT_TOKEN_SIZE = 33, AGENT_TEMPLATE_SIZE = 80 };

struct agent_setup {
    bool is_wanted; /* the request has a type */
    struct agent_type type;
    const struct msg_agent_settings *settings;
    struct agent_values values;
    char random_token[AGENT_TOKEN_SIZE];
    char template[AGENT_TEMPLATE_SIZE];
};

/* Writes the name of the template of a type's sandboxes; "": the default of the daemon. */
void agent_template(const struct agent_type *type, char ret[AGENT_TEMPLATE_SIZE]);

/* Splits a text of a type at its blanks. */
const char *const *agent_words(const char *text, struct arena *arena, size_t *ret_count);

/* Finds the type, and adds to the spec what the request leaves to it: template, network (in
 * network) and labels. Adds its secrets to those of the request. */
int agent_setup_begin(const struct call *call, const struct msg_create_sandbox_request *request,
                      struct agent_setup *setup, struct sandbox_spec *spec,
                      struct net_layer *network, struct err *err);

/* Writes the files, and starts the server if it is asked for, both unless the sandbox is joined.
 * Fills in the message, whose texts live as long as the call. */
int agent_setup_finish(const struct call *call, struct agent_setup *setup, struct sandbox *sandbox,
                       bool is_joined, struct msg_agent *ret, struct err *err);

void agent_setup_done(struct agent_setup *setup);
