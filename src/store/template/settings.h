/* Template settings: what applies to sandboxes of a template besides its files, such as user,
 * working directory, environment, start command, limits, network, and whether setuid programs
 * work. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

struct err;
struct store;

enum { TEMPLATE_SETTINGS_BYTES_MAX = 256 * 1024 };

/* Strings point into the object; "" means unset. */
struct template_settings {
    json_t *object;
    const json_t *env;         /* object of strings, or NULL */
    const char *workdir;       /* absolute */
    const char *user;          /* name or number */
    const char *start_command; /* bash command that every sandbox starts when it is created */
    const char *ready_command; /* succeeds once the start command is ready */
    bool allows_setuid;        /* no_new_privs is off and the root is not nosuid */
    unsigned cpus;             /* 0: unset, like memory_bytes */
    uint64_t memory_bytes;
    const char *runtime;     /* default runtime of its sandboxes; "": that of the host */
    const char *runtime_min; /* the weakest runtime that they may have */
    const json_t *network;   /* a layer, see net/policy.h; NULL: unset */
    const json_t *command;   /* array of strings: what runs if a client names no command, or NULL */
    const json_t *image;     /* facts of the image that the template was made from; NULL: none. Env,
                                workdir and user then apply to the processes of all clients */
};

/* Parses settings: {"env": {}, "workdir", "user", "startCommand",
 * "readyCommand", "allowSetuid", "cpus", "memoryBytes", "runtime", "runtimeMin", "network": {},
 * "command": [], "image": {}}. The caller checks the network and the names of runtimes. */
int template_settings_parse(const json_t *object, struct template_settings *ret, struct err *err);

/* Reads the settings of a template by name; all are unset if it has none. */
int template_settings_read(struct store *store, const char *name, struct template_settings *ret,
                           struct err *err);

/* Replaces all settings of a template. Running sandboxes keep theirs. */
int template_settings_write(struct store *store, const char *name,
                            const struct template_settings *settings, struct err *err);

/* Frees settings; they may be zero. */
void template_settings_done(struct template_settings *settings);
