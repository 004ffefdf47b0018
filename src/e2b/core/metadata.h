/* The metadata of a sandbox that E2B's clients use: one JSON object in the registry, with what Holt
 * itself does not know. Its fields, all optional:
 *
 *   accessToken    required by envd; made at creation, never changed
 *   secure         false: envd requires no token; only in sandboxes of earlier versions
 *   trafficToken   required by ports; absent: they are public
 *   templateID     of the request, resolved
 *   alias          the name of that template
 *   envVars        {name: value}, for every process
 *   metadata       {name: value}
 *   network        of the request, without secrets
 *   internet       whether internet access was requested
 *   timeout        seconds, of the last request
 *   autoPause      bool: pause at the timeout; autoPauseMemory: with memory
 *   autoResume     bool: requests resume it
 *   volumeMounts   [{name, path}]
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>

struct err;
struct sandbox;

enum { E2B_TOKEN_SIZE = 2 * 32 + 1 };

/* Makes a random token of hexadecimal digits. */
int e2b_token_make(char ret[E2B_TOKEN_SIZE], struct err *err);

/* Returns a copy for the caller; an empty object if there is no metadata. */
json_t *e2b_metadata_read(struct sandbox *sandbox);

/* Returns the text that is recorded, for the caller to free. Fails with ERR_EXHAUSTED if too long.
 */
int e2b_metadata_print(const json_t *metadata, char **ret, struct err *err);

/* Changes the metadata atomically. `change` returns 1 if it has changed anything, 0 if not, or a
 * negative errno with err set. *ret is a copy of the result for the caller. */
typedef int (*e2b_metadata_fn)(json_t *metadata, const void *context, struct err *err);
int e2b_metadata_change(struct sandbox *sandbox, e2b_metadata_fn change, const void *context,
                        json_t **ret, struct err *err);

/* Return a field; NULL or false if absent. */
const char *e2b_metadata_text(const json_t *metadata, const char *field);
bool e2b_metadata_bool(const json_t *metadata, const char *field);

/* Whether envd requires no token. */
bool e2b_metadata_is_open(const json_t *metadata);
