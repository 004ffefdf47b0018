/* The daemon's configuration: file, overridden by environment, overridden by flags; one table. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/options.h"

struct err;

#define CONFIG_NO_TIMEOUT UINT64_MAX
enum { CONFIG_TOOL_TIMEOUT_MS = 5 * 60 * 1000 };

struct config {
    char *state;          /* state directory */
    char *run;            /* directory of sockets */
    char *listen;         /* ADDR:PORT or "none" */
    char *listen_hosts;   /* names that clients on TCP may call us by, with commas */
    char *listen_origins; /* whose pages may call */
    char *tls_cert;       /* file of the certificate; "": no TLS */
    char *tls_key;
    char *runtime;         /* default runtime */
    char *template;        /* default template */
    char *storage;         /* of volumes: auto, btrfs, zfs:POOL/DATASET or dir */
    char *log;             /* error, warn, info, debug */
    char *ports_listen;    /* address that forwards of ports listen on */
    char *ports_advertise; /* what clients are told in its place; "": the same */
    uint32_t pool_size;
    uint32_t sandboxes_max;
    uint32_t snapshots_max; /* turns kept of a sandbox that names no number; 0: all */
    uint64_t quota;         /* bytes of a sandbox that names none; 0: none */
    uint32_t storage_warn;  /* per cent of the storage in use */
    uint32_t storage_full;
    uint64_t health_interval; /* milliseconds */
    uint64_t output_memory;   /* bytes of a process's stream, likewise the next */
    uint64_t output_disk;
    uint64_t processes_keep; /* milliseconds */
    uint32_t processes_max;
    bool stop_all;         /* when the daemon ends, so do its sandboxes */
    uint64_t limit_memory; /* bytes; 0: none */
    uint32_t limit_cpus;   /* thousandths of a CPU; 0: none */
    uint32_t limit_pids;
    uint64_t tool_timeout; /* milliseconds; CONFIG_NO_TIMEOUT: none */
    uint32_t tool_tokens;
    uint32_t tool_snapshots; /* 0 or 1 */
    uint64_t tool_memory;    /* bytes; 0: no limit of its own */
    uint32_t tool_cpus;      /* thousandths; 0: likewise */
    uint64_t template_bytes_max;
    uint64_t template_files_max;
};

/* Defaults, then path (or, when path is NULL, /etc/holt/holt.conf where it exists), then HOLT_*
 * environment. Unknown keys and bad values are ERR_INVALID with file and line. */
int config_load(const char *path, struct config *ret, struct err *err);

/* Sets one key as written in the file ("pool.size") from text. */
int config_set(struct config *config, const char *key, const char *value, struct err *err);

/* Writes the whole configuration in the file's own syntax, each key with its meaning as comment. */
void config_print(const struct config *config, FILE *out);

/* Calls each for every key that has not the same value in both, with whether a daemon that runs can
 * take the new one. */
typedef void (*config_change_fn)(void *context, const char *key, bool is_live);
void config_compare(const struct config *old, const struct config *new, config_change_fn each,
                    void *context);

/* Takes the values of those that can be taken so. */
void config_take_live(struct config *config, struct config *from);

/* The keys as long options: "pool.size" is --pool-size. Targets a struct config. */
struct option_table config_options(void);

void config_done(struct config *config);
