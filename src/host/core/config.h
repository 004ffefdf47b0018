/* The daemon's configuration: one table of keys. Flags override the environment, which overrides
 * the file. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/options.h"
#include "host/owner/ceiling.h"

struct err;

#define CONFIG_NO_TIMEOUT UINT64_MAX
#define CONFIG_AUTO UINT64_MAX       /* a size that depends on this machine */
#define CONFIG_AUTO_COUNT UINT32_MAX /* the same for a number */
enum { CONFIG_TOOL_TIMEOUT_MS = 5 * 60 * 1000 };

struct config {
    char *state;          /* state directory */
    char *run;            /* directory of sockets */
    char *listen;         /* ADDR:PORT or "none" */
    char *listen_hosts;   /* comma-separated names that clients on TCP may put into Host */
    char *listen_origins; /* comma-separated origins of web pages that may call */
    char *preview_domain; /* [https://]NAME[:PORT] below which ports are served; "": none */
    char *socket_owners;  /* see auth/peer.h */
    char *tls_cert;       /* file of the certificate; "": no TLS */
    char *tls_key;
    char *agents_dir;       /* directory of agent types of this host */
    char *runtime;          /* default runtime */
    char *runtime_allow;    /* comma-separated runtimes; "all": every one */
    char *runtime_min;      /* the weakest runtime */
    char *template;         /* default template */
    char *storage;          /* of volumes: auto, btrfs, zfs:POOL/DATASET or dir */
    char *log;              /* error, warn, info, debug */
    char *snapshots_prefix; /* of the names of turns */
    char *ports_listen;     /* address that forwards of ports listen on */
    char *ports_advertise;  /* address given to clients instead; "": the same */
    char *console_dir;      /* directory of the console's files; "": beside the program */
    uint32_t console;       /* 0 or 1 */
    uint64_t console_ttl;   /* milliseconds that a login lasts */
    uint32_t pool_size;
    uint32_t sandboxes_max;
    uint32_t snapshots_max; /* turns kept of a sandbox that sets no limit; 0: all */
    uint64_t quota;         /* bytes of a sandbox that sets none; 0: no limit; or CONFIG_AUTO */
    uint32_t storage_warn;  /* per cent of the storage in use */
    uint32_t storage_full;
    uint64_t health_interval; /* milliseconds */
    uint64_t output_memory;   /* of one stream of a process, as is output_disk */
    uint64_t output_disk;
    uint64_t processes_keep; /* milliseconds */
    uint32_t processes_max;
    bool stop_all;         /* stop all sandboxes when the daemon ends */
    uint64_t limit_memory; /* bytes; 0: none; or CONFIG_AUTO */
    uint32_t limit_cpus;   /* thousandths of a CPU; 0: none */
    uint32_t limit_pids;
    uint32_t limit_files; /* descriptors of one process: hard and soft limit */
    uint32_t limit_files_soft;
    uint64_t memory_reserve; /* bytes; 0: none; or CONFIG_AUTO */
    uint64_t tool_timeout;   /* milliseconds; CONFIG_NO_TIMEOUT: none */
    uint32_t tool_tokens;
    uint32_t tool_snapshots;   /* 0 or 1 */
    uint64_t tool_memory;      /* bytes; 0: only the sandbox's limit */
    uint32_t tool_cpus;        /* thousandths; 0: only the sandbox's limit */
    char *tools_tier_bash;     /* the weakest runtime of the tool bash */
    uint64_t pause_drain;      /* milliseconds that a pause waits for tool calls; 0: none */
    uint64_t shutdown_timeout; /* milliseconds that --stop-all waits for tool calls */
    char *net_mode;            /* what all sandboxes may have at most: any, open, allow or none */
    char *net_default;         /* of a sandbox that sets none */
    char *net_allow;           /* rules, separated by blanks */
    char *net_deny;
    char *net_proxy;      /* URL without a login; "": none */
    char *net_proxy_file; /* of a file with the URL; "": none */
    char *net_no_proxy;   /* rules, separated by blanks */
    char *net_zones;
    char *models;             /* file, see host/llm/models.h; "": none */
    uint32_t net_connections; /* the bounds of each sandbox; 0: the default of holt-net */
    uint32_t net_connects;    /* per second */
    uint32_t net_queries;     /* per second */
    uint64_t net_idle;        /* milliseconds */
    uint64_t net_time;        /* milliseconds */
    uint64_t net_bytes_out;   /* 0: no limit */
    uint64_t template_bytes_max;
    uint64_t template_files_max;
    char *image_registries; /* that images may come from, with blanks between; "": all */
    char *image_mirrors;    /* REGISTRY=URL, with blanks between */
    char *image_insecure;   /* registries without TLS, with blanks between */
    uint64_t image_cache;   /* bytes of an owner's blobs */
    char *remote_url;       /* of object storage, see remote/remote.h; "": none */
    char *remote_endpoint;
    char *remote_region;
    char *remote_key_file;
    uint32_t remote_insecure;     /* 0 or 1 */
    uint64_t remote_timeout;      /* milliseconds */
    char *remote_encrypt;         /* file of the key that seals archives; "": none */
    char *e2b_pause;              /* freeze or deep */
    struct owner_settings owners; /* keys owner.NAME.CEILING; only in the file */
};

/* Loads the defaults, then the file at path (NULL: /etc/holt/holt.conf, if it exists), then the
 * HOLT_* environment. Unknown keys and bad values are ERR_INVALID with file and line. */
int config_load(const char *path, struct config *ret, struct err *err);

/* Sets one key as written in the file ("pool.size") from text. */
int config_set(struct config *config, const char *key, const char *value, struct err *err);

/* Writes the whole configuration in the syntax of the file, with the meaning of each key as a
 * comment. */
void config_print(const struct config *config, FILE *out);

/* Calls `each` for every key whose values differ; is_live says whether a running daemon can apply
 * the new value. */
typedef void (*config_change_fn)(void *context, const char *key, bool is_live);
void config_compare(const struct config *old, const struct config *new, config_change_fn each,
                    void *context);

/* Moves the live values from `from` to config. */
void config_take_live(struct config *config, struct config *from);

/* Returns the keys as long options of a struct config: "pool.size" is --pool-size. */
struct option_table config_options(void);

void config_done(struct config *config);
