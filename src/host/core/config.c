// SPDX-License-Identifier: Apache-2.0
#include "host/core/config.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/text/parse.h"
#include "base/xalloc.h"
#include "host/core/config_file.h"
#include "host/net/host_layer.h"
#include "host/net/upstream.h"

#define DEFAULT_PATH "/etc/holt/holt.conf"
#define OWNER_PREFIX "owner."

enum { HOST_NAME_BYTES_MAX = 253, FILES_MIN = 64, PREFIX_BYTES_MAX = 32 };

enum kind {
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

/* One row per key: field of struct config, key in the file, long option, kind, name of the value in
 * --help, default, meaning. The environment variable is named after the option: --pool-size,
 * HOLT_POOL_SIZE. */
#define CONFIG_ROWS(ROW)                                                                           \
    ROW(state, "state", "state", KIND_PATH, "DIR", "/var/lib/holt",                                \
        "directory of templates and volumes")                                                      \
    ROW(run, "run", "run", KIND_PATH, "DIR", "/run/holt", "directory of sockets")                  \
    ROW(listen, "listen", "listen", KIND_ADDRESS, "ADDR:PORT", "127.0.0.1:7070",                   \
        "TCP address of the API, or none")                                                         \
    ROW(listen_hosts, "listen.hosts", "listen-hosts", KIND_WORDS, "NAMES", "",                     \
        "comma-separated host names that clients on TCP may use for the daemon")                   \
    ROW(listen_origins, "listen.origins", "listen-origins", KIND_WORDS, "ORIGINS", "",             \
        "comma-separated origins of web pages that may call the API")                              \
    ROW(preview_domain, "preview.domain", "preview-domain", KIND_WORDS, "NAME", "",                \
        "domain for previews of ports, PORT-ID.NAME; https://NAME behind a proxy with TLS")        \
    ROW(socket_owners, "socket.owners", "socket-owners", KIND_WORDS, "RULES", "",                  \
        "owners of users on the unix socket: USER=OWNER, @GROUP=OWNER:ROLE; others are root")      \
    ROW(tls_cert, "tls.cert", "tls-cert", KIND_FILE, "FILE", "",                                   \
        "certificate (PEM) of the API on TCP; empty: no TLS")                                      \
    ROW(tls_key, "tls.key", "tls-key", KIND_FILE, "FILE", "", "private key (PEM) of tls.cert")     \
    ROW(console, "console", "console", KIND_BOOL, "BOOL", "yes", "serve the web console at /")     \
    ROW(console_dir, "console.dir", "console-dir", KIND_FILE, "DIR", "",                           \
        "files of the web console; empty: where they are built or installed")                      \
    ROW(console_ttl, "console.ttl", "console-ttl", KIND_DURATION, "TIME", "168h",                  \
        "how long a login to the web console lasts")                                               \
    ROW(runtime, "runtime", "runtime", KIND_NAME, "NAME", "native", "default runtime")             \
    ROW(template, "template", "template", KIND_NAME, "NAME", "host", "default template")           \
    ROW(storage, "storage", "storage", KIND_STORAGE, "KIND", "auto",                               \
        "storage of volumes: auto, btrfs, zfs:POOL/DATASET or dir")                                \
    ROW(log, "log", "log", KIND_LEVEL, "LEVEL", "info", "log level: error, warn, info or debug")   \
    ROW(pool_size, "pool.size", "pool-size", KIND_U32, "N", "4", "warm sandboxes kept ready")      \
    ROW(sandboxes_max, "sandboxes.max", "sandboxes-max", KIND_AUTO_U32, "N", "auto",               \
        "maximum number of sandboxes; auto: by memory and descriptors")                            \
    ROW(snapshots_max, "snapshots.max", "snapshots-max", KIND_U32, "N", "0",                       \
        "turns kept of a sandbox that sets no limit; 0: all")                                      \
    ROW(snapshots_prefix, "snapshots.prefix", "snapshots-prefix", KIND_PREFIX, "WORD", "turn",     \
        "turns are named after it: WORD-0001")                                                     \
    ROW(quota, "quota", "quota", KIND_AUTO_SIZE, "SIZE", "auto",                                   \
        "storage of a sandbox that sets no quota; auto: a quarter, at most 20G; 0: no limit")      \
    ROW(storage_warn, "storage.warn", "storage-warn", KIND_PERCENT, "PERCENT", "85",               \
        "storage usage from which health is degraded")                                             \
    ROW(storage_full, "storage.full", "storage-full", KIND_PERCENT, "PERCENT", "95",               \
        "storage usage from which creates fail")                                                   \
    ROW(health_interval, "health.interval", "health-interval", KIND_DURATION, "TIME", "30s",       \
        "interval between checks of the storage")                                                  \
    ROW(output_memory, "output.memory", "output-memory", KIND_SIZE, "SIZE", "64K",                 \
        "bytes of a process's stream that are buffered in memory")                                 \
    ROW(output_disk, "output.disk", "output-disk", KIND_SIZE, "SIZE", "64M",                       \
        "maximum bytes of a process's stream on disk")                                             \
    ROW(processes_keep, "processes.keep", "processes-keep", KIND_DURATION, "TIME", "10m",          \
        "how long ended processes are kept")                                                       \
    ROW(processes_max, "processes.max", "processes-max", KIND_U32, "N", "1000",                    \
        "maximum number of ended processes kept per sandbox")                                      \
    ROW(ports_listen, "ports.listen", "ports-listen", KIND_IP, "ADDR", "127.0.0.1",                \
        "address that port forwards listen on")                                                    \
    ROW(ports_advertise, "ports.advertise", "ports-advertise", KIND_HOST, "HOST", "",              \
        "host given to clients instead of ports.listen; empty: ports.listen")                      \
    ROW(limit_memory, "limits.memory", "limits-memory", KIND_AUTO_SIZE, "SIZE", "auto",            \
        "memory of a sandbox that sets no limit; auto: half of the machine's; 0: no limit")        \
    ROW(limit_cpus, "limits.cpus", "limits-cpus", KIND_CPUS, "CPUS", "0",                          \
        "CPUs of a sandbox that sets no limit; 0: no limit")                                       \
    ROW(limit_pids, "limits.pids", "limits-pids", KIND_U32, "N", "1024",                           \
        "processes of a sandbox that sets no limit")                                               \
    ROW(limit_files, "limits.files", "limits-files", KIND_FILES, "N", "16384",                     \
        "descriptors that a process in a sandbox may allow itself")                                \
    ROW(limit_files_soft, "limits.files-soft", "limits-files-soft", KIND_FILES, "N", "1024",       \
        "descriptors of a process that does not change its limit")                                 \
    ROW(memory_reserve, "memory.reserve", "memory-reserve", KIND_AUTO_SIZE, "SIZE", "auto",        \
        "free memory of the machine below which a sandbox that holds kernel memory is ended")      \
    ROW(tool_timeout, "tool.timeout", "tool-timeout", KIND_TIMEOUT, "TIME", "5m",                  \
        "timeout of a tool call that sets none; none: no limit")                                   \
    ROW(tool_tokens, "tool.output-tokens", "tool-output-tokens", KIND_U32, "N", "10000",           \
        "longest result of a tool call that sets no limit, in tokens of 4 bytes")                  \
    ROW(tool_snapshots, "tool.snapshots", "tool-snapshots", KIND_BOOL, "BOOL", "no",               \
        "take a snapshot after each tool call that may change files")                              \
    ROW(tool_memory, "tool.memory", "tool-memory", KIND_SIZE, "SIZE", "0",                         \
        "memory of a tool call's processes if it sets no limit; 0: the sandbox's")                 \
    ROW(tool_cpus, "tool.cpus", "tool-cpus", KIND_CPUS, "CPUS", "0",                               \
        "CPUs of a tool call's processes if it sets no limit; 0: the sandbox's")                   \
    ROW(pause_drain, "pause.drain", "pause-drain", KIND_DURATION, "TIME", "30s",                   \
        "how long a pause waits for running tool calls; 0: it freezes them")                       \
    ROW(shutdown_timeout, "shutdown.timeout", "shutdown-timeout", KIND_DURATION, "TIME", "30s",    \
        "how long --stop-all waits for running tool calls")                                        \
    ROW(net_mode, "net.mode", "net-mode", KIND_NET_MODE, "MODE", "any",                            \
        "network that a sandbox may have at most: any, open, allow or none")                       \
    ROW(net_default, "net.default", "net-default", KIND_NET_DEFAULT, "MODE", "none",               \
        "network of a sandbox that sets none: none or open")                                       \
    ROW(net_allow, "net.allow", "net-allow", KIND_RULES, "RULES", "",                              \
        "what all sandboxes may reach if their own policies allow it; rules with blanks between")  \
    ROW(net_deny, "net.deny", "net-deny", KIND_RULES, "RULES", "", "what no sandbox may reach")    \
    ROW(net_proxy, "net.proxy", "net-proxy", KIND_PROXY, "URL", "",                                \
        "proxy of all connections of sandboxes, without a login: socks5://HOST:PORT or "           \
        "http://...")                                                                              \
    ROW(net_proxy_file, "net.proxy-file", "net-proxy-file", KIND_FILE, "FILE", "",                 \
        "file of mode 0600 with the URL of a proxy that has a login; instead of net.proxy")        \
    ROW(net_no_proxy, "net.no-proxy", "net-no-proxy", KIND_NO_PROXY, "HOSTS", "",                  \
        "names and ranges that are reached without the proxy, with blanks between")                \
    ROW(net_zones, "net.zones", "net-zones", KIND_ZONES, "ZONES", "",                              \
        "private DNS zones: ZONE=ADDRESS[,ADDRESS...], with blanks between")                       \
    ROW(net_connections, "net.connections", "net-connections", KIND_U32, "N", "2500",              \
        "connections of a sandbox at once")                                                        \
    ROW(net_connects, "net.connects", "net-connects", KIND_U32, "N", "500",                        \
        "connections that a sandbox may open in a second")                                         \
    ROW(net_queries, "net.queries", "net-queries", KIND_U32, "N", "1000",                          \
        "names that a sandbox may ask for in a second")                                            \
    ROW(net_idle, "net.idle", "net-idle", KIND_DURATION, "TIME", "1h",                             \
        "after which a connection without bytes is ended")                                         \
    ROW(net_time, "net.time", "net-time", KIND_DURATION, "TIME", "24h",                            \
        "after which every connection is ended")                                                   \
    ROW(net_bytes_out, "net.bytes-out", "net-bytes-out", KIND_SIZE, "SIZE", "0",                   \
        "bytes that a sandbox may send while it runs; 0: no limit")                                \
    ROW(template_bytes_max, "template.max-bytes", "template-max-bytes", KIND_SIZE, "SIZE", "16G",  \
        "maximum size of an imported template")                                                    \
    ROW(template_files_max, "template.max-files", "template-max-files", KIND_SIZE, "N", "2000000", \
        "maximum number of files in an imported template")

#define DEFINE_INDEX(field, ...) ROW_##field,
enum { CONFIG_ROWS(DEFINE_INDEX) ROW_COUNT };

static const struct config_row {
    const char *key;
    const char *flag;
    enum kind kind;
    size_t offset;
    const char *initial;
    const char *help;
} rows[ROW_COUNT] = {
#define DEFINE_ROW(field, key, flag, kind, argument, initial, help)                                \
    [ROW_##field] = { key, flag, kind, offsetof(struct config, field), initial, help },
    CONFIG_ROWS(DEFINE_ROW)
};

/* The keys that a running daemon applies on reload; all others need a restart. */
static const bool is_live[ROW_COUNT] = {
    [ROW_log] = true,
    [ROW_pool_size] = true,
    [ROW_sandboxes_max] = true,
    [ROW_snapshots_max] = true,
    [ROW_quota] = true,
    [ROW_storage_warn] = true,
    [ROW_storage_full] = true,
    [ROW_health_interval] = true,
    [ROW_output_memory] = true,
    [ROW_processes_keep] = true,
    [ROW_processes_max] = true,
    [ROW_limit_memory] = true,
    [ROW_limit_cpus] = true,
    [ROW_limit_pids] = true,
    [ROW_limit_files] = true,
    [ROW_limit_files_soft] = true,
    [ROW_memory_reserve] = true,
    [ROW_tool_timeout] = true,
    [ROW_tool_tokens] = true,
    [ROW_tool_snapshots] = true,
    [ROW_tool_memory] = true,
    [ROW_tool_cpus] = true,
    [ROW_pause_drain] = true,
    [ROW_net_mode] = true,
    [ROW_net_default] = true,
    [ROW_net_allow] = true,
    [ROW_net_deny] = true,
    [ROW_net_proxy] = true,
    [ROW_net_proxy_file] = true,
    [ROW_net_no_proxy] = true,
    [ROW_net_zones] = true,
    [ROW_shutdown_timeout] = true,
};

static bool is_text_kind(enum kind kind)
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
    if (row->kind == KIND_RULES && network_config_rules(value, NULL, false, err) < 0)
        return err_wrap(err, "%s", row->key);
    if ((row->kind == KIND_PROXY && net_proxy_check(value, err) < 0) ||
        (row->kind == KIND_NO_PROXY && net_no_proxy_check(value, err) < 0) ||
        (row->kind == KIND_ZONES && net_zones_check(value, err) < 0))
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

static int config_row_set(const struct config_row *row, struct config *config, const char *value,
                          struct err *err)
{
    void *field = field_of(row, config);

    if (is_text_kind(row->kind))
        return text_set(row, field, value, err);
    return number_set(row, field, value, err);
}

int config_set(struct config *config, const char *key, const char *value, struct err *err)
{
    for (size_t i = 0; i < ROW_COUNT; i++)
        if (strcmp(rows[i].key, key) == 0)
            return config_row_set(&rows[i], config, value, err);
    if (strncmp(key, OWNER_PREFIX, strlen(OWNER_PREFIX)) == 0)
        return owner_settings_set(&config->owners, key + strlen(OWNER_PREFIX), value, err);
    return err_set(err, ERR_INVALID, "unknown key '%.100s'", key);
}

/* Treats an empty variable as unset, as most programs do. */
static int environment_load(struct config *config, struct err *err)
{
    for (size_t i = 0; i < ROW_COUNT; i++) {
        char name[KEY_BYTES_MAX] = "HOLT_";
        size_t used = strlen(name);
        const char *value;

        for (const char *c = rows[i].flag; *c && used < sizeof(name) - 1; c++)
            name[used++] = (char)(*c == '-' ? '_' : toupper((unsigned char)*c));
        value = getenv(name);
        if (value && *value && config_row_set(&rows[i], config, value, err) < 0)
            return err_wrap(err, "%s", name);
    }
    return 0;
}

static int defaults_load(struct config *config, struct err *err)
{
    for (size_t i = 0; i < ROW_COUNT; i++) {
        int r = config_row_set(&rows[i], config, rows[i].initial, err);

        if (r < 0)
            return r;
    }
    return 0;
}

int config_load(const char *path, struct config *ret, struct err *err)
{
    cleanup_with(config_done) struct config config = { 0 };
    int r = defaults_load(&config, err);

    if (r == 0)
        r = config_file_load(&config, path ? path : DEFAULT_PATH, !path, err);
    if (r == 0)
        r = environment_load(&config, err);
    if (r < 0)
        return r;
    *ret = config;
    config = (struct config){ 0 };
    return 0;
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

static void value_print(const struct config_row *row, const struct config *config, FILE *out)
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

void config_print(const struct config *config, FILE *out)
{
    for (size_t i = 0; i < ROW_COUNT; i++) {
        (void)fprintf(out, "%s# %s (%s)\n%s = ", i > 0 ? "\n" : "", rows[i].help,
                      is_live[i] ? "reload" : "restart", rows[i].key);
        value_print(&rows[i], config, out);
    }
    owner_settings_print(&config->owners, out);
}

static bool is_wide(enum kind kind)
{
    return kind == KIND_SIZE || kind == KIND_AUTO_SIZE || kind == KIND_DURATION ||
           kind == KIND_TIMEOUT;
}

static bool is_same(const struct config_row *row, const struct config *one,
                    const struct config *other)
{
    const void *a = field_of(row, one), *b = field_of(row, other);

    if (is_text_kind(row->kind))
        return strcmp(*(char *const *)a, *(char *const *)b) == 0;
    return memcmp(a, b, is_wide(row->kind) ? sizeof(uint64_t) : sizeof(uint32_t)) == 0;
}

void config_compare(const struct config *old, const struct config *new, config_change_fn each,
                    void *context)
{
    for (size_t i = 0; i < ROW_COUNT; i++)
        if (!is_same(&rows[i], old, new))
            each(context, rows[i].key, is_live[i]);
    if (!owner_settings_equal(&old->owners, &new->owners))
        each(context, "owner", true);
}

void config_take_live(struct config *config, struct config *from)
{
    for (size_t i = 0; i < ROW_COUNT; i++) {
        void *to = field_of(&rows[i], config), *value = field_of(&rows[i], from);

        if (!is_live[i])
            continue;
        if (is_text_kind(rows[i].kind)) {
            free(*(char **)to);
            *(char **)to = TAKE_PTR(*(char **)value);
        } else {
            memcpy(to, value, is_wide(rows[i].kind) ? sizeof(uint64_t) : sizeof(uint32_t));
        }
    }
    owner_settings_done(&config->owners);
    config->owners = from->owners;
    from->owners = (struct owner_settings){ .items = NULL };
}

#define DEFINE_SETTER(field, ...)                                                                  \
    static int option_##field(void *into, const char *value, struct err *err)                      \
    {                                                                                              \
        return config_row_set(&rows[ROW_##field], into, value, err);                               \
    }
CONFIG_ROWS(DEFINE_SETTER)

struct option_table config_options(void)
{
    static const struct option_row options[ROW_COUNT] = {
#define DEFINE_OPTION(field, key, flag, kind, argument, initial, help)                             \
    [ROW_##field] = { flag, 0, argument, help, OPTION_CALL(option_##field) },
        CONFIG_ROWS(DEFINE_OPTION)
    };

    return (struct option_table){ .rows = options, .count = ROW_COUNT };
}

void config_done(struct config *config)
{
    for (size_t i = 0; i < ROW_COUNT; i++)
        if (is_text_kind(rows[i].kind))
            free(*(char **)field_of(&rows[i], config));
    owner_settings_done(&config->owners);
    *config = (struct config){ 0 };
}
