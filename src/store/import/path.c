// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "store/import/import.h"

struct import_label import_label(const char *name)
{
    struct import_label label;
    size_t len = strlen(name), room = sizeof(label.text) - 1;
    const char *shown = len > room ? name + len - room : name;

    (void)snprintf(label.text, sizeof(label.text), "%s", shown);
    for (char *c = label.text; *c; c++) {
        if (*c < ' ' || *c > '~')
            *c = '?';
    }
    if (shown != name)
        memcpy(label.text, "...", 3);
    return label;
}

int import_error(struct err *err, int r, const char *what, const char *name)
{
    if (r == -ENOSPC || r == -EDQUOT) {
        (void)err_set(err, ERR_EXHAUSTED, "%s '%s': the disk of the state directory is full", what,
                      import_label(name).text);
        return r;
    }
    return err_sys(err, r, "%s '%s'", what, import_label(name).text);
}

static int name_error(struct err *err, const char *name, const char *why)
{
    return err_set(err, ERR_INVALID, "entry '%s' %s", import_label(name).text, why);
}

static const char *skip_slashes(const char *text)
{
    return text + strspn(text, "/");
}

static bool is_part(const char *part, size_t len, const char *text)
{
    return len == strlen(text) && memcmp(part, text, len) == 0;
}

int import_path(const char *name, char ret_path[static PATH_MAX], struct err *err)
{
    size_t used = 0, depth = 0, len;

    if (strlen(name) >= PATH_MAX)
        return name_error(err, name, "has a path that is too long");
    for (const char *part = skip_slashes(name); *part; part = skip_slashes(part + len)) {
        len = strcspn(part, "/");
        if (is_part(part, len, "."))
            continue;
        if (is_part(part, len, ".."))
            return name_error(err, name, "has '..' in its path");
        if (len > NAME_MAX)
            return name_error(err, name, "has a name that is too long");
        if (++depth > IMPORT_DEPTH_MAX)
            return name_error(err, name, "is nested too deep");
        if (used > 0)
            ret_path[used++] = '/';
        memcpy(ret_path + used, part, len);
        used += len;
    }
    ret_path[used] = '\0';
    return 0;
}

static bool has_prefix(const char *text, const char *prefix)
{
    return strncmp(text, prefix, strlen(prefix)) == 0;
}

bool import_keeps_xattr(const char *name)
{
    if (has_prefix(name, "user."))
        return !has_prefix(name, "user.overlay.");
    return strcmp(name, "security.capability") == 0;
}
