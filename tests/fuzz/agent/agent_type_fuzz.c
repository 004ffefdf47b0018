// SPDX-License-Identifier: Apache-2.0
/* Files of agent types. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "agent/type.h"
#include "base/buf.h"
#include "base/err.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    const struct agent_values values = { "token",  "sandbox", "name",  "id",
                                         "secret", "url",     "model", "format" };
    char *text = strndup((const char *)data, len);
    struct agent_type type;
    struct err err;

    if (text && agent_type_parse("x", "x.conf", text, &type, &err) == 0) {
        for (size_t i = 0; i < type.file_count; i++) {
            struct buf out = BUF_INIT(AGENT_FILE_BYTES);

            (void)agent_values_add(&values, type.files[i].value, &out);
            buf_done(&out);
        }
        (void)agent_type_uses(&type, "token");
        agent_type_done(&type);
    }
    free(text);
    return 0;
}
