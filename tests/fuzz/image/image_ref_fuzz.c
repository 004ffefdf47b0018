// SPDX-License-Identifier: Apache-2.0
/* References from anywhere: refused, or accepted with one spelling that reads back the same. */
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "base/text/image_ref.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct image_ref ref, again;
    char text[600];

    if (size >= sizeof(text))
        return 0;
    memcpy(text, data, size);
    text[size] = '\0';
    if (image_ref_parse(text, &ref) < 0)
        return 0;
    assert(image_ref_parse(ref.familiar, &again) == 0);
    assert(strcmp(ref.familiar, again.familiar) == 0);
    assert(strcmp(ref.registry, again.registry) == 0);
    assert(strcmp(ref.repository, again.repository) == 0);
    assert(image_ref_is(ref.familiar));
    assert(!strstr(ref.repository, "..") && !strpbrk(ref.familiar, " \n?#%\\"));
    assert((ref.tag[0] == '\0') != (ref.digest[0] == '\0'));
    return 0;
}
