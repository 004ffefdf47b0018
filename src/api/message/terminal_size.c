// SPDX-License-Identifier: Apache-2.0
#include "api/message/terminal_size.h"

#include "base/err.h"
#include "base/json.h"

static int side_get(const json_t *object, const char *name, uint16_t *ret, struct err *err)
{
    uint32_t value = 0;
    int r = json_get_u32(object, name, &value, err);

    if (r < 0)
        return r;
    if (value < 1 || value > UINT16_MAX)
        return err_set(err, ERR_INVALID, "field '%s' must be from 1 to %d", name, UINT16_MAX);
    *ret = (uint16_t)value;
    return 0;
}

int terminal_size_parse(const json_t *object, struct terminal_size *ret, struct err *err)
{
    static const char *const fields[] = { "rows", "columns", NULL };
    struct terminal_size size;
    int r = json_only_fields(object, fields, err);

    if (r == 0)
        r = side_get(object, "rows", &size.rows, err);
    if (r == 0)
        r = side_get(object, "columns", &size.columns, err);
    if (r == 0)
        *ret = size;
    return r;
}
