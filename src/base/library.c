// SPDX-License-Identifier: Apache-2.0
#include "base/library.h"

#include <dlfcn.h>
#include <string.h>

const char *library_load(const char *file, const struct library_row *rows, size_t count,
                         void *ret_table)
{
    void *library = dlopen(file, RTLD_NOW | RTLD_LOCAL);

    if (!library)
        return dlerror();
    for (size_t i = 0; i < count; i++) {
        void *found = dlsym(library, rows[i].name);

        if (!found)
            return dlerror();
        memcpy((char *)ret_table + rows[i].offset, &found, sizeof(found));
    }
    return NULL;
}
