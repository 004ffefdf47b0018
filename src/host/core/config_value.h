/* The values of the configuration: how a key of each kind is read, checked, printed and compared.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

struct config;
struct err;

/* Kinds up to KIND_LEVEL are texts, the others numbers. */
enum config_kind {
    KIND_PATH,
    KIND_ADDRESS,
    KIND_NAME,
    KIND_STORAGE,
    KIND_IP,
    KIND_HOST,
    KIND_WORDS,
    KIND_PREFIX,
    KIND_FILE,
    KIND_NET_MODE,
    KIND_NET_DEFAULT,
    KIND_RULES,
    KIND_PROXY,
    KIND_NO_PROXY,
    KIND_ZONES,
    KIND_REGISTRIES,
    KIND_MIRRORS,
    KIND_REMOTE,
    KIND_E2B_PAUSE,
    KIND_LEVEL,
    KIND_U32,
    KIND_AUTO_U32,
    KIND_FILES,
    KIND_PERCENT,
    KIND_SIZE,
    KIND_AUTO_SIZE,
    KIND_DURATION,
    KIND_TIMEOUT,
    KIND_BOOL,
    KIND_CPUS
};

/* A key of the configuration. */
struct config_row {
    const char *key;
    const char *flag;
    enum config_kind kind;
    size_t offset;
    const char *initial;
    const char *help;
};

/* Reads a value into the field of the row. Fails with ERR_INVALID, naming the key. */
int config_value_set(const struct config_row *row, struct config *config, const char *value,
                     struct err *err);

/* Writes the value as config_value_set reads it, and a newline. */
void config_value_print(const struct config_row *row, const struct config *config, FILE *out);

bool config_value_equal(const struct config_row *row, const struct config *one,
                        const struct config *other);

/* Replaces the value in config by that of `from`. */
void config_value_move(const struct config_row *row, struct config *config, struct config *from);

void config_value_done(const struct config_row *row, struct config *config);
