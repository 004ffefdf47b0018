/* Names and descriptions of archives. */
#pragma once

#include <jansson.h>
#include <stddef.h>

#include "remote/archive.h"

struct err;
struct sandbox;

#define ARCHIVE_PAUSES "sandboxes/"
#define ARCHIVE_BACKUPS "backups/"

/* Writes the name of the archive of a deep pause. */
void archive_pause_name(const char *sandbox, const char *mark,
                        char ret[static ARCHIVE_NAME_MAX + 1]);

/* Finds the word for the template of a sandbox that its bundles omit, because it is made of this
 * machine's own /usr; "": they contain it. The caller frees it. */
int archive_omitted_template(const struct sandbox *sandbox, char **ret, struct err *err);

/* Describes an archive of a sandbox; snapshot: that it has the files of, NULL: the present ones.
 * The caller frees it. NULL if memory is short. */
char *archive_describe(struct sandbox *sandbox, const char *host, const char *template,
                       const char *snapshot);

/* Parses a description of this program's; NULL if it is none. */
json_t *archive_description_parse(const char *text);
