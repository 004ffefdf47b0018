// SPDX-License-Identifier: Apache-2.0
/* WWW-Authenticate from anywhere: no challenge, or one without control characters. */
#include <assert.h>
#include <ctype.h>
#include <stdint.h>
#include <string.h>

#include "image/challenge.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct challenge challenge;
    char text[5000];

    if (size >= sizeof(text))
        return 0;
    memcpy(text, data, size);
    text[size] = '\0';
    if (!challenge_parse(text, &challenge))
        return 0;
    assert(!challenge.is_bearer || challenge.realm[0]);
    for (const char *c = challenge.realm; *c; c++)
        assert(!iscntrl((unsigned char)*c));
    assert(strlen(challenge.realm) < sizeof(challenge.realm));
    return 0;
}
