/* What is kept of a sandbox for clients of E2B, beside what Holt knows of it: one JSON object in
 * the registry. Its fields, all of which may be absent:
 *
 *   accessToken    that envd wants to see; made with the metadata, and never changed
 *   secure         false: it has no such token, and envd asks for none
 *   trafficToken   that ports want to see; absent: they are public
 *   templateID     as it was asked for, and resolved
 *   alias          the name of that template
 *   envVars        {name: value}, for every process
 *   metadata       {name: value}
 *   network        as asked for, without secrets
 *   internet       whether access to the internet was asked for
 *   timeout        seconds, last asked for
 *   autoPause      bool: what its timeout does; autoPauseMemory: whether with its memory
 *   autoResume     bool: requests wake it
 *   volumeMounts   [{name, path}]
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>

struct err;
struct sandbox;

enum { E2B_TOKEN_SIZE = 2 * 32 + 1 };

/* Random, in hexadecimal. */
int e2b_token_make(char ret[E2B_TOKEN_SIZE], struct err *err);

/* A copy, for the caller; that of a sandbox that no client of E2B has asked for is an empty object.
 */
json_t *e2b_metadata_read(struct sandbox *sandbox);

/* As it is recorded, for the caller to free; ERR_EXHAUSTED: it is too long. */
int e2b_metadata_print(const json_t *metadata, char **ret, struct err *err);

/* Changes it, with nobody in between. The function says whether it has changed anything (1, 0, or a
 * negative errno with err set). *ret is the metadata as it is then, for the caller. */
typedef int (*e2b_metadata_fn)(json_t *metadata, const void *context, struct err *err);
int e2b_metadata_change(struct sandbox *sandbox, e2b_metadata_fn change, const void *context,
                        json_t **ret, struct err *err);

/* A field, or NULL or false where it is absent. */
const char *e2b_metadata_text(const json_t *metadata, const char *field);
bool e2b_metadata_bool(const json_t *metadata, const char *field);

/* Whether envd lets in whoever knows the sandbox. */
bool e2b_metadata_is_open(const json_t *metadata);
