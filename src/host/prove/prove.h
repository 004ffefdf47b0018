/* Proves what sandboxes withstand: runs the attempts of holt-prove (src/prove/) in a sandbox of
 * each runtime on this machine, from one sandbox against another, and against the host's own way to
 * the files of a sandbox. Each attempt also runs outside of any sandbox, where it has to succeed.
 */
#pragma once

#include <stdbool.h>
#include <stdio.h>

struct config;

/* Writes a table of what held, or a JSON object. Returns 0 if everything did in every runtime that
 * works here, otherwise 1; 125 if it could not be tried. */
int prove_run(const struct config *config, bool as_json, FILE *out);
