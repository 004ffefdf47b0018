/* The agents of libholt; holt.h includes this file. An agent type is a file of the host that says
 * how an agent is installed, started and reached. The type of a sandbox is chosen when it is
 * created (type of struct holt_sandbox_options). */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "holt.h"

#ifdef __cplusplus
extern "C" {
#endif

struct holt_agent_type {
    const char *name;
    const char *summary;
    const char *template_name; /* of its sandboxes; "": the default of the daemon */
    const char *base_template; /* what its packages are installed on; "": the same */
    const char *const *packages;
    size_t package_count;
    const char *command; /* shell commands; "": none */
    const char *task;
    const char *serve;
    uint32_t port;
    const char *ready;   /* the path to GET; "": the port is only connected to */
    const char *user;    /* for HTTP Basic, with the token as the password */
    const char *network; /* "none", "open" or "allow"; "": the default of the daemon */
    const char *const *allow;
    size_t allow_count;
    const char *const *variables; /* names */
    size_t variable_count;
    const char *const *files; /* paths */
    size_t file_count;
    bool has_token;
    const char *models; /* the format that it uses: "anthropic", "openai", "any"; "": none */
    const char *const *secrets; /* names, of the owner of each sandbox */
    size_t secret_count;
};

struct holt_agent_type_list {
    size_t count;
    const struct holt_agent_type *const *items;
    size_t error_count; /* files with an error, which are not in items */
    const char *const *errors;
};

/* Lists the agent types of the host, by name. */
HOLT_API int holt_agent_type_list(struct holt *holt, int64_t deadline,
                                  struct holt_agent_type_list **ret, struct holt_error *error);

/* Gets the type of this name, or of the one name that begins so. */
HOLT_API int holt_agent_type_get(struct holt *holt, const char *name, int64_t deadline,
                                 struct holt_agent_type **ret, struct holt_error *error);

/* What one sandbox with an agent has of its own; NULL: the default of the type. */
struct holt_agent_settings {
    size_t size;
    bool serves;       /* start its server, and return when it is ready */
    const char *token; /* NULL: a random one */
    const char *assistant_name;
    const char *workspace_id;
    const char *bridge_url;
    const char *bridge_secret;
    const char *const *env; /* more variables of its server, "NAME=value", ends with NULL */
};

/* The agent of a sandbox from holt_sandbox_create. */
struct holt_agent {
    const char *type;
    const char *command; /* as in struct holt_agent_type */
    const char *task;
    const struct holt_label *env; /* the variables to start them with */
    size_t env_count;
    const char *user;
    const char *token;
    const char *process; /* the id of its server; "": none was started */
    const char *address; /* HOST:PORT of the server */
};

#ifdef __cplusplus
}
#endif
