/* The doctor: tests on this machine whether sandboxes work, and reports causes and remedies. */
#pragma once

#include <stdbool.h>
#include <stdio.h>

struct config;

/* Writes one line per check, or a JSON object. With `fixes`, first applies the remedies of
 * host/observe/doctor_fix.h, and reports each. Returns 0 when sandboxes can run here, otherwise 1.
 */
int doctor_run(const struct config *config, bool as_json, bool fixes, FILE *out);
