/* What this machine can and cannot do, tried for real, with cause and remedy. */
#pragma once

#include <stdbool.h>
#include <stdio.h>

struct config;

/* Writes one line per check, or a JSON object: 0 when sandboxes can run here, 1 otherwise. */
int doctor_run(const struct config *config, bool as_json, FILE *out);
