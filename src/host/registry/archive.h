/* What this host has in object storage for deep pauses, so that a killed daemon forgets nothing of
 * it. A record is made before the first object, and removed after the last one
 * (host/backup/settle.h).
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "host/sandbox/info.h"

struct err;
struct registry;

enum archive_stage {
    ARCHIVE_OWN,     /* this host has made it, or was going to */
    ARCHIVE_CLAIMED, /* another host has made it, and this one brings its sandbox here */
    ARCHIVE_MOVED,   /* the sandbox is here */
};

struct archive_record {
    char mark[ARCHIVE_MARK_LEN + 1];
    char sandbox[SANDBOX_ID_MAX];
    char owner[OWNER_NAME_MAX + 1];
    uint32_t stage; /* enum archive_stage */
};

/* Records an archive, or changes its stage. */
int registry_put_archive(struct registry *registry, const struct archive_record *record,
                         struct err *err);

/* Removes a record; no error when there is none. */
int registry_remove_archive(struct registry *registry, const char *mark, struct err *err);

/* Lists all records. The caller frees the array. */
int registry_list_archives(struct registry *registry, struct archive_record **ret,
                           size_t *ret_count, struct err *err);
