/* Attributes of sandboxes and snapshots: plain data, as clients and the registry see it. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/access/caller.h"
#include "base/access/label.h"
#include "host/core/limits.h"
#include "host/volume/shared_volume.h"
#include "runtime/runtime.h"
#include "store/codebase/codebase.h"
#include "store/template/template.h"
#include "store/volume/volume.h"

enum {
    SANDBOX_ID_MAX = RUNTIME_ID_MAX,
    SANDBOX_NAME_MAX = 128,
    SANDBOX_LABELS_MAX = 64,
    SANDBOX_REASON_MAX = 240,
    SANDBOX_KEY_MAX = 128,
    SANDBOX_DIGEST_LEN = 64,
    SANDBOX_METADATA_MAX = 32 * 1024,
    SANDBOX_NETWORK_MAX = 63 * 1024,
    SANDBOX_SECRETS_TEXT_MAX = 8 * 1024,
    SANDBOX_MOUNTS_MAX = 8,
    SNAPSHOT_NOTE_MAX = 255,
    ARCHIVE_MARK_LEN = 16,
    MOUNT_PATH_MAX = 255,
};

enum sandbox_state {
    SANDBOX_CREATING,
    SANDBOX_ACTIVE,
    SANDBOX_PAUSING,
    SANDBOX_PAUSED,
    SANDBOX_STOPPED,
    SANDBOX_ROLLING_BACK,
    SANDBOX_DESTROYING,
    SANDBOX_FAILED,
    SANDBOX_DEEP_PAUSED,
    SANDBOX_STATES
};

/* The state as text ("creating", "rolling-back", ...) for clients and the registry. */
const char *sandbox_state_name(enum sandbox_state state);
bool sandbox_state_parse(const char *name, enum sandbox_state *ret);

/* What happens when a sandbox expires or has been idle for too long. */
enum sandbox_action { ACTION_KILL, ACTION_PAUSE, ACTION_STOP, ACTION_DEEP_PAUSE };

const char *sandbox_action_name(enum sandbox_action action); /* "kill", "pause", ... */
bool sandbox_action_parse(const char *name, enum sandbox_action *ret);

/* A shared volume (host/volume/shared_volume.h) mounted in a sandbox. Snapshots do not contain
 * it. */
struct sandbox_mount {
    char shared_volume[SHARED_VOLUME_ID_MAX + 1];
    char path[MOUNT_PATH_MAX + 1];
    bool is_read_only;
};

struct sandbox_info {
    char id[SANDBOX_ID_MAX];
    char owner[OWNER_NAME_MAX + 1];  /* constant */
    char name[SANDBOX_NAME_MAX + 1]; /* "": none */
    char template[TEMPLATE_NAME_MAX + 1];
    char runtime[16];
    enum sandbox_state state;
    char reason[SANDBOX_REASON_MAX]; /* why it failed or stopped unexpectedly; else "" */
    uint64_t created_ms;             /* since 1970, as all times in this file */
    struct sandbox_limits limits;
    uint64_t quota_bytes;
    struct label *labels; /* owned */
    size_t label_count;
    struct sandbox_mount *mounts; /* owned; constant */
    size_t mount_count;
    char codebase[CODEBASE_ID_MAX + 1]; /* its id; "": none. Constant, as the next two are */
    char codebase_path[CODEBASE_PATH_MAX + 1];
    uint32_t codebase_version; /* that the sandbox was created with */
    uint32_t codebase_base;    /* that its changes are compared with: the last one it committed */
    char *metadata;            /* owned; text of a front end; NULL: none */
    char *network;             /* owned; JSON of its own layers, see network.h; NULL: no network */
    char *secrets;             /* owned; JSON of its secrets, see host/secret/grant.h; NULL: none */
    char *permissions; /* owned; JSON of its rules, see host/view/permission.h; NULL: none */
    char request_key[SANDBOX_KEY_MAX + 1];       /* "": none */
    char request_digest[SANDBOX_DIGEST_LEN + 1]; /* of the request with that key */

    uint32_t turns;                   /* number of the last turn; never decreases */
    uint32_t snapshots_max;           /* more turn and tool snapshots are pruned; 0: no limit */
    uint32_t snapshot_count;          /* filled in for clients; not stored */
    char base[SNAPSHOT_NAME_MAX + 1]; /* snapshot that the files derive from; "": the template */
    uint64_t space_used;              /* filled in for clients; not stored */
    uint64_t transfer_done, transfer_total; /* bytes; 0: none; filled in for clients; not stored */
    uint64_t denials; /* by permissions, since the start; filled in for clients; not stored */

    uint64_t expires_ms; /* 0: never */
    enum sandbox_action expire_action;
    uint64_t idle_timeout_ms; /* 0: none */
    enum sandbox_action idle_action;
    uint64_t last_active_ms;

    /* For a restarted daemon: where the machine and the live tree are. */
    char machine[RUNTIME_ID_MAX];      /* "": not running */
    char limits_group[RUNTIME_ID_MAX]; /* of the machine */
    uint32_t uid_slot;
    uint32_t generation; /* of the live tree */

    /* Of a deep-paused sandbox: names its archive (host/backup/deep_pause.h). */
    char archive[ARCHIVE_MARK_LEN + 1];
};

/* Frees the members that the info owns. */
void sandbox_info_done(struct sandbox_info *info);

/* Makes a deep copy. */
void sandbox_info_copy(const struct sandbox_info *info, struct sandbox_info *ret);

enum snapshot_kind { SNAPSHOT_TURN, SNAPSHOT_TOOL, SNAPSHOT_NAMED };

const char *snapshot_kind_name(enum snapshot_kind kind); /* "turn", "tool", "named" */
bool snapshot_kind_parse(const char *name, enum snapshot_kind *ret);

/* Reserved prefixes: of turn snapshots unless one is configured, and of temporary snapshots. */
#define SNAPSHOT_TURN_PREFIX "turn-"
#define SNAPSHOT_OWN_PREFIX "holt-"

/* A volume that has it is being filled by an import, which removes it after the sandbox was made.
 */
#define SNAPSHOT_UNFILLED SNAPSHOT_OWN_PREFIX "unfilled"

/* Parses the number in the name of a turn snapshot with this prefix. Returns false for any other
 * name. */
bool snapshot_turn_parse(const char *name, const char *prefix, uint32_t *ret);

struct snapshot_info {
    char name[SNAPSHOT_NAME_MAX + 1];
    enum snapshot_kind kind;
    uint32_t turn;                      /* number of a turn snapshot; else 0 */
    char parent[SNAPSHOT_NAME_MAX + 1]; /* the previous snapshot; "": the template */
    uint64_t created_ms;
    uint64_t space_used;              /* by the whole volume, when the snapshot was taken */
    char note[SNAPSHOT_NOTE_MAX + 1]; /* what people call it; "": nothing */
};
