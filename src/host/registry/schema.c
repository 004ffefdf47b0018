// SPDX-License-Identifier: Apache-2.0
/* The tables of the registry, as the steps from each version to the next. Published steps never
 * change. Times are milliseconds since 1970; enums are stored as the words that clients see.
 * `number` is the order of insertion. */
#include "host/registry/registry_internal.h"

static const char schema_1[] = "CREATE TABLE sandboxes ("
                               " number INTEGER PRIMARY KEY,"
                               " id TEXT NOT NULL UNIQUE,"
                               " name TEXT UNIQUE,"
                               " template TEXT NOT NULL,"
                               " runtime TEXT NOT NULL,"
                               " state TEXT NOT NULL,"
                               " reason TEXT NOT NULL,"
                               " created_ms INTEGER NOT NULL,"
                               " memory_bytes INTEGER NOT NULL,"
                               " cpu_millis INTEGER NOT NULL,"
                               " pids INTEGER NOT NULL,"
                               " quota_bytes INTEGER NOT NULL,"
                               " turns INTEGER NOT NULL,"
                               " snapshots_max INTEGER NOT NULL,"
                               " base TEXT NOT NULL,"
                               " expires_ms INTEGER NOT NULL,"
                               " expire_action TEXT NOT NULL,"
                               " idle_timeout_ms INTEGER NOT NULL,"
                               " idle_action TEXT NOT NULL,"
                               " last_active_ms INTEGER NOT NULL,"
                               " machine TEXT NOT NULL,"
                               " limits_group TEXT NOT NULL,"
                               " uid_slot INTEGER NOT NULL,"
                               " generation INTEGER NOT NULL"
                               ") STRICT;"
                               "CREATE TABLE labels ("
                               " sandbox TEXT NOT NULL REFERENCES sandboxes (id) ON DELETE CASCADE,"
                               " position INTEGER NOT NULL,"
                               " key TEXT NOT NULL,"
                               " value TEXT NOT NULL,"
                               " PRIMARY KEY (sandbox, position)"
                               ") STRICT, WITHOUT ROWID;"
                               "CREATE TABLE snapshots ("
                               " number INTEGER PRIMARY KEY,"
                               " sandbox TEXT NOT NULL REFERENCES sandboxes (id) ON DELETE CASCADE,"
                               " name TEXT NOT NULL,"
                               " kind TEXT NOT NULL,"
                               " turn INTEGER NOT NULL,"
                               " parent TEXT NOT NULL,"
                               " created_ms INTEGER NOT NULL,"
                               " space_used INTEGER NOT NULL,"
                               " UNIQUE (sandbox, name)"
                               ") STRICT;";

/* The idempotency key of a create; sandboxes of version 1 have none. */
static const char schema_2[] =
    "ALTER TABLE sandboxes ADD COLUMN request_key TEXT NOT NULL DEFAULT '';"
    "ALTER TABLE sandboxes ADD COLUMN request_digest TEXT NOT NULL DEFAULT '';";

/* The metadata that a front end keeps of a sandbox ("notes"), and the shared volumes that are
 * mounted in it ("depot" is the name of one). */
static const char schema_3[] =
    "CREATE TABLE notes ("
    " sandbox TEXT PRIMARY KEY REFERENCES sandboxes (id) ON DELETE CASCADE,"
    " note TEXT NOT NULL"
    ") STRICT, WITHOUT ROWID;"
    "CREATE TABLE mounts ("
    " sandbox TEXT NOT NULL REFERENCES sandboxes (id) ON DELETE CASCADE,"
    " path TEXT NOT NULL,"
    " depot TEXT NOT NULL,"
    " PRIMARY KEY (sandbox, path)" /* before depot: else quick_check of SQLite 3.40 reports NULL */
    ") STRICT, WITHOUT ROWID;";

/* Named volumes, and the templates that belong to something. */
static const char schema_4[] = "CREATE TABLE volumes ("
                               " number INTEGER PRIMARY KEY,"
                               " id TEXT NOT NULL UNIQUE,"
                               " name TEXT NOT NULL UNIQUE,"
                               " token TEXT NOT NULL"
                               ") STRICT;"
                               "CREATE TABLE template_owners ("
                               " template TEXT PRIMARY KEY,"
                               " owner TEXT NOT NULL"
                               ") STRICT, WITHOUT ROWID;";

static const char schema_5[] = "ALTER TABLE sandboxes ADD COLUMN files INTEGER NOT NULL DEFAULT 0;";

/* Mounts of volumes that the sandbox cannot write to. */
static const char schema_6[] =
    "ALTER TABLE mounts ADD COLUMN read_only INTEGER NOT NULL DEFAULT 0;";

/* Owners. Names are unique for each owner: the tables are made anew, because SQLite cannot drop the
 * constraint of a column. Foreign keys are not in force meanwhile. */
static const char schema_7[] =
    "CREATE TABLE new_sandboxes ("
    " number INTEGER PRIMARY KEY,"
    " id TEXT NOT NULL UNIQUE,"
    " owner TEXT NOT NULL,"
    " name TEXT,"
    " template TEXT NOT NULL,"
    " runtime TEXT NOT NULL,"
    " state TEXT NOT NULL,"
    " reason TEXT NOT NULL,"
    " created_ms INTEGER NOT NULL,"
    " memory_bytes INTEGER NOT NULL,"
    " cpu_millis INTEGER NOT NULL,"
    " pids INTEGER NOT NULL,"
    " quota_bytes INTEGER NOT NULL,"
    " turns INTEGER NOT NULL,"
    " snapshots_max INTEGER NOT NULL,"
    " base TEXT NOT NULL,"
    " expires_ms INTEGER NOT NULL,"
    " expire_action TEXT NOT NULL,"
    " idle_timeout_ms INTEGER NOT NULL,"
    " idle_action TEXT NOT NULL,"
    " last_active_ms INTEGER NOT NULL,"
    " machine TEXT NOT NULL,"
    " limits_group TEXT NOT NULL,"
    " uid_slot INTEGER NOT NULL,"
    " generation INTEGER NOT NULL,"
    " request_key TEXT NOT NULL,"
    " request_digest TEXT NOT NULL,"
    " files INTEGER NOT NULL,"
    " UNIQUE (owner, name)"
    ") STRICT;"
    "INSERT INTO new_sandboxes SELECT number, id, 'root', name, template, runtime, state, reason,"
    " created_ms, memory_bytes, cpu_millis, pids, quota_bytes, turns, snapshots_max, base,"
    " expires_ms, expire_action, idle_timeout_ms, idle_action, last_active_ms, machine,"
    " limits_group, uid_slot, generation, request_key, request_digest, files FROM sandboxes;"
    "DROP TABLE sandboxes;"
    "ALTER TABLE new_sandboxes RENAME TO sandboxes;"
    "CREATE TABLE new_volumes ("
    " number INTEGER PRIMARY KEY,"
    " id TEXT NOT NULL UNIQUE,"
    " owner TEXT NOT NULL,"
    " name TEXT NOT NULL,"
    " token TEXT NOT NULL,"
    " UNIQUE (owner, name)"
    ") STRICT;"
    "INSERT INTO new_volumes SELECT number, id, 'root', name, token FROM volumes;"
    "DROP TABLE volumes;"
    "ALTER TABLE new_volumes RENAME TO volumes;";

/* The owners of templates, whose directories in the store cannot tell (a template without a row is
 * root's), and the owners that templates and volumes are shared with; '*': with all. */
static const char schema_8[] = "CREATE TABLE templates ("
                               " number INTEGER PRIMARY KEY,"
                               " store_name TEXT NOT NULL UNIQUE,"
                               " owner TEXT NOT NULL,"
                               " name TEXT NOT NULL,"
                               " UNIQUE (owner, name)"
                               ") STRICT;"
                               "CREATE INDEX templates_by_name ON templates (name);"
                               "CREATE TABLE shares ("
                               " kind TEXT NOT NULL,"
                               " object TEXT NOT NULL,"
                               " owner TEXT NOT NULL,"
                               " PRIMARY KEY (kind, object, owner)"
                               ") STRICT, WITHOUT ROWID;";

/* The ceilings that were set for owners by command. */
static const char schema_9[] = "CREATE TABLE IF NOT EXISTS ceilings ("
                               " owner TEXT NOT NULL,"
                               " name TEXT NOT NULL,"
                               " value TEXT NOT NULL,"
                               " PRIMARY KEY (owner, name)"
                               ") STRICT, WITHOUT ROWID;";

/* Logins to the web console. */
static const char schema_10[] = "CREATE TABLE IF NOT EXISTS sessions ("
                                " id TEXT PRIMARY KEY,"
                                " owner TEXT NOT NULL,"
                                " role TEXT NOT NULL,"
                                " token TEXT NOT NULL,"
                                " main_mark TEXT NOT NULL,"
                                " scope TEXT NOT NULL,"
                                " cookie_hash TEXT NOT NULL,"
                                " key_hash TEXT NOT NULL,"
                                " address TEXT NOT NULL,"
                                " agent TEXT NOT NULL,"
                                " created_ms INTEGER NOT NULL,"
                                " expires_ms INTEGER NOT NULL"
                                ") STRICT, WITHOUT ROWID;";

/* The network policies of sandboxes, as JSON; one without a row has no network. */
static const char schema_11[] =
    "CREATE TABLE IF NOT EXISTS networks ("
    " sandbox TEXT PRIMARY KEY REFERENCES sandboxes (id) ON DELETE CASCADE,"
    " policy TEXT NOT NULL"
    ") STRICT, WITHOUT ROWID;";

/* What people call a snapshot. */
static const char schema_12[] = "ALTER TABLE snapshots ADD COLUMN note TEXT NOT NULL DEFAULT '';";

/* Previews of ports, beside the logins to the web console. */
static const char schema_13[] = "ALTER TABLE sessions ADD COLUMN sandbox TEXT NOT NULL DEFAULT '';"
                                "ALTER TABLE sessions ADD COLUMN port INTEGER NOT NULL DEFAULT 0;"
                                "ALTER TABLE sessions ADD COLUMN parent TEXT NOT NULL DEFAULT '';";

/* Sealed secrets, and what each sandbox has of them (JSON; see host/secret/grant.h). */
static const char schema_14[] =
    "CREATE TABLE IF NOT EXISTS secrets ("
    " number INTEGER PRIMARY KEY,"
    " id TEXT NOT NULL UNIQUE,"
    " owner TEXT NOT NULL,"
    " name TEXT NOT NULL,"
    " kind TEXT NOT NULL,"
    " use TEXT NOT NULL,"
    " sealed TEXT NOT NULL,"
    " created_ms INTEGER NOT NULL,"
    " changed_ms INTEGER NOT NULL,"
    " UNIQUE (owner, name)"
    ") STRICT;"
    "CREATE TABLE IF NOT EXISTS secret_grants ("
    " sandbox TEXT PRIMARY KEY REFERENCES sandboxes (id) ON DELETE CASCADE,"
    " grants TEXT NOT NULL"
    ") STRICT, WITHOUT ROWID;";

/* Codebases with their versions, and what sandboxes see of them. */
static const char schema_15[] =
    "CREATE TABLE IF NOT EXISTS codebases ("
    " number INTEGER PRIMARY KEY,"
    " id TEXT NOT NULL UNIQUE,"
    " owner TEXT NOT NULL,"
    " name TEXT NOT NULL,"
    " source TEXT NOT NULL,"
    " head INTEGER NOT NULL,"
    " UNIQUE (owner, name)"
    ") STRICT;"
    "CREATE TABLE IF NOT EXISTS codebase_versions ("
    " codebase TEXT NOT NULL REFERENCES codebases (id) ON DELETE CASCADE,"
    " version INTEGER NOT NULL,"
    " created_ms INTEGER NOT NULL,"
    " sandbox TEXT NOT NULL,"
    " message TEXT NOT NULL,"
    " files INTEGER NOT NULL,"
    " PRIMARY KEY (codebase, version)"
    ") STRICT, WITHOUT ROWID;"
    "ALTER TABLE sandboxes ADD COLUMN codebase TEXT NOT NULL DEFAULT '';"
    "ALTER TABLE sandboxes ADD COLUMN codebase_path TEXT NOT NULL DEFAULT '';"
    "ALTER TABLE sandboxes ADD COLUMN codebase_version INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE sandboxes ADD COLUMN codebase_base INTEGER NOT NULL DEFAULT 0;";

/* The path permissions of sandboxes (JSON; see host/view/permission.h). */
static const char schema_16[] =
    "CREATE TABLE IF NOT EXISTS permissions ("
    " sandbox TEXT PRIMARY KEY REFERENCES sandboxes (id) ON DELETE CASCADE,"
    " rules TEXT NOT NULL"
    ") STRICT, WITHOUT ROWID;";

/* Which version a directory of the host has, and which one it is being given. */
static const char schema_17[] =
    "CREATE TABLE IF NOT EXISTS codebase_applied ("
    " codebase TEXT NOT NULL REFERENCES codebases (id) ON DELETE CASCADE,"
    " directory TEXT NOT NULL,"
    " version INTEGER NOT NULL,"
    " wanted INTEGER NOT NULL,"
    " PRIMARY KEY (codebase, directory)"
    ") STRICT, WITHOUT ROWID;";

/* Logins to registries of images; see host/image/login.h. */
static const char schema_18[] = "CREATE TABLE IF NOT EXISTS image_logins ("
                                " owner TEXT NOT NULL,"
                                " registry TEXT NOT NULL,"
                                " username TEXT NOT NULL,"
                                " sealed TEXT NOT NULL,"
                                " changed_ms INTEGER NOT NULL,"
                                " PRIMARY KEY (owner, registry)"
                                ") STRICT, WITHOUT ROWID;";

/* Deep pauses: the mark of the archive that has a sandbox's files, and the archives in object
 * storage that this host answers for (see archive.h). */
static const char schema_19[] = "ALTER TABLE sandboxes ADD COLUMN archive TEXT NOT NULL DEFAULT '';"
                                "CREATE TABLE IF NOT EXISTS archives ("
                                " mark TEXT PRIMARY KEY,"
                                " sandbox TEXT NOT NULL,"
                                " owner TEXT NOT NULL,"
                                " stage INTEGER NOT NULL"
                                ") STRICT, WITHOUT ROWID;";

const char *const registry_schema[REGISTRY_VERSION] = {
    schema_1,  schema_2,  schema_3,  schema_4,  schema_5,  schema_6,  schema_7,
    schema_8,  schema_9,  schema_10, schema_11, schema_12, schema_13, schema_14,
    schema_15, schema_16, schema_17, schema_18, schema_19,
};
