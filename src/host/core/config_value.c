// SPDX-License-Identifier: Apache-2.0
#include "host/core/config_value.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/text/parse.h"
#include "base/xalloc.h"
#include "host/core/config.h"
#include "host/image/endpoint.h"
#include "host/net/host_layer.h"
#include "host/net/upstream.h"

enum { HOST_NAME_BYTES_MAX = 253, FILES_MIN = 64, PREFIX_BYTES_MAX = 32 };

static bool is_text_kind(enum config_kind kind)
{
    return kind <= KIND_LEVEL;
}

static void *field_of(const struct config_row *row, const struct config *config)
{
    return (char *)(uintptr_t)config + row->offset;
}

static bool is_level(const char *text)
{
    return strcmp(text, "error") == 0 || strcmp(text, "warn") == 0 || strcmp(text, "info") == 0 ||
           strcmp(text, "debug") == 0;
}

static bool is_net_mode(const char *text)
{
    return strcmp(text, "any") == 0 || strcmp(text, "open") == 0 || strcmp(text, "allow") == 0 ||
           strcmp(text, "none") == 0;
}

static bool is_address(const char *text)
{
    const char *colon = strrchr(text, ':');
    uint64_t port;

    if (strcmp(text, "none") == 0)
        return true;
    return colon && colon != text && parse_u64(colon + 1, &port) == 0 && port <= UINT16_MAX;
}

/* Accepts any dataset name that cannot be taken for an option; zfs checks the rest. */
static bool is_storage(const char *text)
{
    if (strncmp(text, "zfs:", 4) == 0)
        return isalpha((unsigned char)text[4]);
    return strcmp(text, "auto") == 0 || strcmp(text, "btrfs") == 0 || strcmp(text, "dir") == 0;
}

static bool is_ip(const char *text)
{
    unsigned char address[sizeof(struct in6_addr)];

    return inet_pton(AF_INET, text, address) == 1 || inet_pton(AF_INET6, text, address) == 1;
}

static bool is_host(const char *text)
{
    size_t len = strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-");

    return is_ip(text) || (text[len] == '\0' && len <= HOST_NAME_BYTES_MAX);
}

/* "holt-" is the prefix of temporary snapshots. */
static bool is_prefix(const char *text)
{
    return is_handle(text, PREFIX_BYTES_MAX) && strcmp(text, "holt") != 0 &&
           strncmp(text, "holt-", strlen("holt-")) != 0;
}

/* Rejects quotes, # and control characters, so that the output of config_print can be read back. */
static bool is_printable(const char *text)
{
    for (; *text; text++)
        if (*text == '"' || *text == '#' || iscntrl((unsigned char)*text))
            return false;
    return true;
}

static int text_check(const struct config_row *row, const char *value, struct err *err)
{
    if (!is_printable(value))
        return err_set(err, ERR_INVALID, "%s must not contain quotes, # or control characters",
                       row->key);
    if (row->kind == KIND_PATH && *value != '/')
        return err_set(err, ERR_INVALID, "%s must be an absolute path, not '%s'", row->key, value);
    if (row->kind == KIND_FILE && *value != '/' && *value != '\0')
        return err_set(err, ERR_INVALID, "%s must be an absolute path, not '%s'", row->key, value);
    if (row->kind == KIND_ADDRESS && !is_address(value))
        return err_set(err, ERR_INVALID, "%s must be ADDR:PORT or none, not '%s'", row->key, value);
    if (row->kind == KIND_NAME && !is_name(value))
        return err_set(err, ERR_INVALID, "%s: '%s' is not a valid name", row->key, value);
    if (row->kind == KIND_STORAGE && !is_storage(value))
        return err_set(err, ERR_INVALID,
                       "%s must be auto, btrfs, zfs:POOL/DATASET or dir, not '%s'", row->key,
                       value);
    if (row->kind == KIND_IP && !is_ip(value))
        return err_set(err, ERR_INVALID, "%s must be an IP address, not '%s'", row->key, value);
    if (row->kind == KIND_HOST && !is_host(value))
        return err_set(err, ERR_INVALID, "%s must be a host name or an IP address, not '%s'",
                       row->key, value);
    if (row->kind == KIND_PREFIX && !is_prefix(value))
        return err_set(err, ERR_INVALID,
                       "%s: '%.40s' is not a valid prefix: letters, digits, '.', '_' and '-', a "
                       "letter or digit first, at most %d, and not holt",
                       row->key, value, PREFIX_BYTES_MAX);
    if (row->kind == KIND_NET_MODE && !is_net_mode(value))
        return err_set(err, ERR_INVALID, "%s must be any, open, allow or none, not '%s'", row->key,
                       value);
    if (row->kind == KIND_NET_DEFAULT && strcmp(value, "none") != 0 && strcmp(value, "open") != 0)
        return err_set(err, ERR_INVALID, "%s must be none or open, not '%s'", row->key, value);
    if (row->kind == KIND_REMOTE && *value && strncmp(value, "file:///", 8) != 0 &&
        strncmp(value, "s3://", 5) != 0)
        return err_set(err, ERR_INVALID, "%s must be file:///DIR or s3://BUCKET[/PREFIX], not '%s'",
                       row->key, value);
    if (row->kind == KIND_E2B_PAUSE && strcmp(value, "freeze") != 0 && strcmp(value, "deep") != 0)
        return err_set(err, ERR_INVALID, "%s must be freeze or deep, not '%s'", row->key, value);
    if (row->kind == KIND_RULES && network_config_rules(value, NULL, false, err) < 0)
        return err_wrap(err, "%s", row->key);
    if ((row->kind == KIND_PROXY && net_proxy_check(value, err) < 0) ||
        (row->kind == KIND_NO_PROXY && net_no_proxy_check(value, err) < 0) ||
        (row->kind == KIND_ZONES && net_zones_check(value, err) < 0) ||
        (row->kind == KIND_REGISTRIES && image_registries_check(value, err) < 0) ||
        (row->kind == KIND_MIRRORS && image_mirrors_check(value, err) < 0))
        return err_wrap(err, "%s", row->key);
    if (row->kind == KIND_LEVEL && !is_level(value))
        return err_set(err, ERR_INVALID, "%s must be error, warn, info or debug, not '%s'",
                       row->key, value);
    return 0;
}

static int text_set(const struct config_row *row, char **field, const char *value, struct err *err)
{
    int r = text_check(row, value, err);

    if (r < 0)
        return r;
    free(*field);
    *field = xstrdup(value);
    return 0;
}

/* 0 means the default, so that no call is left without any time; "none" means no limit. */
static int timeout_parse(const char *value, uint64_t *ret_ms)
{
    int r;

    if (strcmp(value, "none") == 0) {
        *ret_ms = CONFIG_NO_TIMEOUT;
        return 0;
    }
    r = parse_duration_ms(value, ret_ms);
    if (r == 0 && *ret_ms == 0)
        *ret_ms = CONFIG_TOOL_TIMEOUT_MS;
    return r;
}

static int auto_size_parse(const char *value, uint64_t *ret)
{
    if (strcmp(value, "auto") == 0) {
        *ret = CONFIG_AUTO;
        return 0;
    }
    return parse_size(value, ret);
}

static int bool_parse(const char *value, uint32_t *ret)
{
    bool is_on;
    int r = parse_bool(value, &is_on);

    if (r == 0)
        *ret = is_on;
    return r;
}

static int number_set(const struct config_row *row, void *field, const char *value, struct err *err)
{
    uint64_t wide;
    int r;

    if (row->kind == KIND_CPUS)
        r = parse_cpus(value, field);
    else if (row->kind == KIND_SIZE)
        r = parse_size(value, field);
    else if (row->kind == KIND_AUTO_SIZE)
        r = auto_size_parse(value, field);
    else if (row->kind == KIND_DURATION)
        r = parse_duration_ms(value, field);
    else if (row->kind == KIND_TIMEOUT)
        r = timeout_parse(value, field);
    else if (row->kind == KIND_BOOL)
        r = bool_parse(value, field);
    else if (row->kind == KIND_AUTO_U32 && strcmp(value, "auto") == 0) {
        *(uint32_t *)field = CONFIG_AUTO_COUNT;
        r = 0;
    } else {
        r = parse_u64(value, &wide);
        if (r == 0 && wide > (row->kind == KIND_PERCENT ? 100 : UINT32_MAX))
            r = -ERANGE;
        if (r == 0 && row->kind == KIND_FILES && wide < FILES_MIN)
            return err_set(err, ERR_INVALID, "%s must be at least %d", row->key, FILES_MIN);
        if (r == 0)
            *(uint32_t *)field = (uint32_t)wide;
    }
    if (r == -ERANGE)
        return err_set(err, ERR_INVALID, "%s: '%s' is too large", row->key, value);
    if (r < 0)
        return err_set(err, ERR_INVALID, "%s: '%s' is not a valid %s", row->key, value,
                       row->kind == KIND_SIZE || row->kind == KIND_AUTO_SIZE     ? "size"
                       : row->kind == KIND_DURATION || row->kind == KIND_TIMEOUT ? "time"
                       : row->kind == KIND_BOOL                                  ? "yes or no"
                                                                                 : "number");
    return 0;
}

int config_value_set(const struct config_row *row, struct config *config, const char *value,
                     struct err *err)
{
    void *field = field_of(row, config);

    if (is_text_kind(row->kind))
        return text_set(row, field, value, err);
    return number_set(row, field, value, err);
}

/* Prints the time in the largest unit that divides it. */
static void duration_print(uint64_t ms, FILE *out)
{
    if (ms == CONFIG_NO_TIMEOUT)
        (void)fprintf(out, "none\n");
    else if (ms % 3600000 == 0)
        (void)fprintf(out, "%" PRIu64 "h\n", ms / 3600000);
    else if (ms % 60000 == 0)
        (void)fprintf(out, "%" PRIu64 "m\n", ms / 60000);
    else if (ms % 1000 == 0)
        (void)fprintf(out, "%" PRIu64 "s\n", ms / 1000);
    else
        (void)fprintf(out, "%" PRIu64 "ms\n", ms);
}

/* Prints the size in the largest unit that divides it: 16G rather than 17179869184. */
static void size_print(uint64_t bytes, FILE *out)
{
    static const char units[] = { 'T', 'G', 'M', 'K' };

    for (size_t i = 0; i < sizeof(units); i++) {
        uint64_t factor = UINT64_C(1) << (10 * (sizeof(units) - i));

        if (bytes > 0 && bytes % factor == 0) {
            (void)fprintf(out, "%" PRIu64 "%c\n", bytes / factor, units[i]);
            return;
        }
    }
    (void)fprintf(out, "%" PRIu64 "\n", bytes);
}

void config_value_print(const struct config_row *row, const struct config *config, FILE *out)
{
    const void *field = field_of(row, config);
    uint32_t number;

    if (is_text_kind(row->kind)) {
        (void)fprintf(out, "%s\n", *(char *const *)field);
        return;
    }
    if (row->kind == KIND_AUTO_SIZE && *(const uint64_t *)field == CONFIG_AUTO) {
        (void)fprintf(out, "auto\n");
        return;
    }
    if (row->kind == KIND_SIZE || row->kind == KIND_AUTO_SIZE) {
        size_print(*(const uint64_t *)field, out);
        return;
    }
    if (row->kind == KIND_DURATION || row->kind == KIND_TIMEOUT) {
        duration_print(*(const uint64_t *)field, out);
        return;
    }
    number = *(const uint32_t *)field;
    if (row->kind == KIND_BOOL)
        (void)fprintf(out, "%s\n", number ? "yes" : "no");
    else if (row->kind == KIND_AUTO_U32 && number == CONFIG_AUTO_COUNT)
        (void)fprintf(out, "auto\n");
    else if (row->kind == KIND_CPUS && number % 1000 != 0)
        (void)fprintf(out, "%" PRIu32 ".%03" PRIu32 "\n", number / 1000, number % 1000);
    else
        (void)fprintf(out, "%" PRIu32 "\n", row->kind == KIND_CPUS ? number / 1000 : number);
}

static bool is_wide(enum config_kind kind)
{
    return kind == KIND_SIZE || kind == KIND_AUTO_SIZE || kind == KIND_DURATION ||
           kind == KIND_TIMEOUT;
}

bool config_value_equal(const struct config_row *row, const struct config *one,
                        const struct config *other)
{
    const void *a = field_of(row, one), *b = field_of(row, other);

    if (is_text_kind(row->kind))
        return strcmp(*(char *const *)a, *(char *const *)b) == 0;
    return memcmp(a, b, is_wide(row->kind) ? sizeof(uint64_t) : sizeof(uint32_t)) == 0;
}

void config_value_move(const struct config_row *row, struct config *config, struct config *from)
{
    void *to = field_of(row, config), *value = field_of(row, from);

    if (is_text_kind(row->kind)) {
        free(*(char **)to);
        *(char **)to = TAKE_PTR(*(char **)value);
    } else {
        memcpy(to, value, is_wide(row->kind) ? sizeof(uint64_t) : sizeof(uint32_t));
    }
}

void config_value_done(const struct config_row *row, struct config *config)
{
    if (is_text_kind(row->kind))
        free(*(char **)field_of(row, config));
}
