/* What a template says of the sandboxes made from it besides their files: whose processes they run,
 * where, with which environment, what is started in them, how much they may use, and whether setuid
 * programs work. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

struct err;
struct store;

enum { TEMPLATE_SETTINGS_BYTES_MAX = 256 * 1024 };

/* Texts point into the object; "" stands for what was not said. */
struct template_settings {
    json_t *object;
    const json_t *env;         /* of text, or NULL */
    const char *workdir;       /* absolute */
    const char *user;          /* name or number */
    const char *start_command; /* of bash: what runs in every sandbox from its beginning on */
    const char *ready_command; /* succeeds when that is ready */
    bool allows_setuid;        /* no_new_privs is off, and the root not nosuid */
    unsigned cpus;             /* 0: not said; so is the memory */
    uint64_t memory_bytes;
};

/* Takes what a client wrote as settings: {"env": {}, "workdir", "user", "startCommand",
 * "readyCommand", "allowSetuid", "cpus", "memoryBytes"}. */
int template_settings_parse(const json_t *object, struct template_settings *ret, struct err *err);

/* Of the template with this name; those of one that says nothing are empty. */
int template_settings_read(struct store *store, const char *name, struct template_settings *ret,
                           struct err *err);

/* Replaces all settings of a template. Sandboxes that run already keep what they have. */
int template_settings_write(struct store *store, const char *name,
                            const struct template_settings *settings, struct err *err);

/* Accepts empty ones. */
void template_settings_done(struct template_settings *settings);
