/* WWW-Authenticate: how a registry wants to be asked. */
#pragma once

#include <stdbool.h>

struct challenge {
    bool is_bearer; /* otherwise Basic */
    char realm[1024];
    char service[256];
    char scope[512];
};

/* Parses the first Bearer or Basic challenge of a header's value, which is not trusted. Returns
 * false if there is none, or one that is malformed or too long. */
bool challenge_parse(const char *value, struct challenge *ret);
