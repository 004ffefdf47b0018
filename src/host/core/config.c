// SPDX-License-Identifier: Apache-2.0
#include "host/core/config.h"

#include <ctype.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "host/core/config_file.h"
#include "host/core/config_value.h"

#define DEFAULT_PATH "/etc/holt/holt.conf"
#define OWNER_PREFIX "owner."

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
    ROW(agents_dir, "agents.dir", "agents-dir", KIND_FILE, "DIR", "/etc/holt/agents",              \
        "files of agent types of this host, beside those of Holt")                                 \
    ROW(runtime, "runtime", "runtime", KIND_NAME, "NAME", "native", "default runtime")             \
    ROW(runtime_allow, "runtime.allow", "runtime-allow", KIND_WORDS, "NAMES", "all",               \
        "comma-separated runtimes that sandboxes may use; all: every one")                         \
    ROW(runtime_min, "runtime.min", "runtime-min", KIND_NAME, "NAME", "native",                    \
        "weakest runtime that sandboxes may use: native and bwrap are equal, gvisor is stronger")  \
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
    ROW(tools_tier_bash, "tools.tier.bash", "tools-tier-bash", KIND_NAME, "NAME", "native",        \
        "weakest runtime of commands of the tool bash, whatever that of the sandbox")              \
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
    ROW(models, "models", "models", KIND_FILE, "FILE", "",                                         \
        "providers, models and budgets for sandboxes (JSON); empty: none")                         \
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
        "maximum number of files in an imported template")                                         \
    ROW(image_registries, "image.registries", "image-registries", KIND_REGISTRIES, "HOSTS", "",    \
        "registries that images are pulled from, with blanks between; empty: all")                 \
    ROW(image_mirrors, "image.mirrors", "image-mirrors", KIND_MIRRORS, "MIRRORS", "",              \
        "what is tried before a registry: REGISTRY=URL, with blanks between")                      \
    ROW(image_insecure, "image.insecure", "image-insecure", KIND_REGISTRIES, "HOSTS", "",          \
        "registries without TLS, which may have private addresses; with blanks between")           \
    ROW(image_cache, "image.cache", "image-cache", KIND_SIZE, "SIZE", "8G",                        \
        "bytes of layers that are kept of each owner after pulls")                                 \
    ROW(remote_url, "remote.url", "remote-url", KIND_REMOTE, "URL", "",                            \
        "object storage for deep pauses and backups: file:///DIR or s3://BUCKET[/PREFIX]")         \
    ROW(remote_endpoint, "remote.endpoint", "remote-endpoint", KIND_WORDS, "URL", "",              \
        "https://HOST[:PORT] of the S3 API; empty: AWS")                                           \
    ROW(remote_region, "remote.region", "remote-region", KIND_WORDS, "NAME", "",                   \
        "region of the S3 API; empty: us-east-1")                                                  \
    ROW(remote_key_file, "remote.key-file", "remote-key-file", KIND_FILE, "FILE", "",              \
        "file of mode 0600 with ACCESS_KEY:SECRET_KEY for the S3 API")                             \
    ROW(remote_insecure, "remote.insecure", "remote-insecure", KIND_BOOL, "BOOL", "no",            \
        "allow http:// to a storage that is not on this machine")                                  \
    ROW(remote_timeout, "remote.timeout", "remote-timeout", KIND_DURATION, "TIME", "30s",          \
        "silence of the storage after which a request is tried again")                             \
    ROW(remote_encrypt, "remote.encrypt", "remote-encrypt", KIND_FILE, "FILE", "",                 \
        "file with the key that seals archives, made if it is missing; empty: no sealing")         \
    ROW(e2b_pause, "e2b.pause", "e2b-pause", KIND_E2B_PAUSE, "KIND", "freeze",                     \
        "what a pause of an E2B client does: freeze or deep")

#define DEFINE_INDEX(field, ...) ROW_##field,
enum { CONFIG_ROWS(DEFINE_INDEX) ROW_COUNT };

static const struct config_row rows[ROW_COUNT] = {
#define DEFINE_ROW(field, key, flag, kind, argument, initial, help)                                \
    [ROW_##field] = { key, flag, kind, offsetof(struct config, field), initial, help },
    CONFIG_ROWS(DEFINE_ROW)
};

/* The keys that a running daemon applies on reload; all others need a restart. */
static const bool is_live[ROW_COUNT] = {
    [ROW_runtime_allow] = true,   [ROW_runtime_min] = true,      [ROW_log] = true,
    [ROW_pool_size] = true,       [ROW_sandboxes_max] = true,    [ROW_snapshots_max] = true,
    [ROW_quota] = true,           [ROW_storage_warn] = true,     [ROW_storage_full] = true,
    [ROW_health_interval] = true, [ROW_output_memory] = true,    [ROW_processes_keep] = true,
    [ROW_processes_max] = true,   [ROW_limit_memory] = true,     [ROW_limit_cpus] = true,
    [ROW_limit_pids] = true,      [ROW_limit_files] = true,      [ROW_limit_files_soft] = true,
    [ROW_memory_reserve] = true,  [ROW_tool_timeout] = true,     [ROW_tool_tokens] = true,
    [ROW_tool_snapshots] = true,  [ROW_tool_memory] = true,      [ROW_tool_cpus] = true,
    [ROW_pause_drain] = true,     [ROW_net_mode] = true,         [ROW_net_default] = true,
    [ROW_net_allow] = true,       [ROW_net_deny] = true,         [ROW_net_proxy] = true,
    [ROW_net_proxy_file] = true,  [ROW_net_no_proxy] = true,     [ROW_net_zones] = true,
    [ROW_models] = true,          [ROW_shutdown_timeout] = true, [ROW_tools_tier_bash] = true,
};

int config_set(struct config *config, const char *key, const char *value, struct err *err)
{
    for (size_t i = 0; i < ROW_COUNT; i++)
        if (strcmp(rows[i].key, key) == 0)
            return config_value_set(&rows[i], config, value, err);
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
        if (value && *value && config_value_set(&rows[i], config, value, err) < 0)
            return err_wrap(err, "%s", name);
    }
    return 0;
}

static int defaults_load(struct config *config, struct err *err)
{
    for (size_t i = 0; i < ROW_COUNT; i++) {
        int r = config_value_set(&rows[i], config, rows[i].initial, err);

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

void config_print(const struct config *config, FILE *out)
{
    for (size_t i = 0; i < ROW_COUNT; i++) {
        (void)fprintf(out, "%s# %s (%s)\n%s = ", i > 0 ? "\n" : "", rows[i].help,
                      is_live[i] ? "reload" : "restart", rows[i].key);
        config_value_print(&rows[i], config, out);
    }
    owner_settings_print(&config->owners, out);
}

void config_compare(const struct config *old, const struct config *new, config_change_fn each,
                    void *context)
{
    for (size_t i = 0; i < ROW_COUNT; i++)
        if (!config_value_equal(&rows[i], old, new))
            each(context, rows[i].key, is_live[i]);
    if (!owner_settings_equal(&old->owners, &new->owners))
        each(context, "owner", true);
}

void config_take_live(struct config *config, struct config *from)
{
    for (size_t i = 0; i < ROW_COUNT; i++)
        if (is_live[i])
            config_value_move(&rows[i], config, from);
    owner_settings_done(&config->owners);
    config->owners = from->owners;
    from->owners = (struct owner_settings){ .items = NULL };
}

#define DEFINE_SETTER(field, ...)                                                                  \
    static int option_##field(void *into, const char *value, struct err *err)                      \
    {                                                                                              \
        return config_value_set(&rows[ROW_##field], into, value, err);                             \
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
        config_value_done(&rows[i], config);
    owner_settings_done(&config->owners);
    *config = (struct config){ 0 };
}
