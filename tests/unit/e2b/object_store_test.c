// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/files/tree.h"
#include "base/json.h"
#include "base/xalloc.h"
#include "check.h"
#include "e2b/core/object_store.h"

enum { MIB = 1024 * 1024 };

/* Puts an object with so many bytes of text; returns 0 or -errno. */
static int object_put(struct e2b_objects *objects, const char *owner, int number, size_t size,
                      struct err *err)
{
    cleanup_free char *text = xcalloc(1, size + 1);
    cleanup_free char *id = xasprintf("%s-%d", owner, number);
    cleanup_json json_t *object = NULL;

    memset(text, 'x', size);
    object = json_pack("{s:s, s:s, s:s}", "id", id, "owner", owner, "value", text);
    return e2b_objects_put(objects, OBJECTS_SECRETS, object, NULL, err);
}

static void an_owner_leaves_half_of_the_store_to_others(void)
{
    char state[] = "/tmp/holt-objects.XXXXXX";
    struct e2b_objects *objects = NULL;
    struct err err = { 0 };
    int count = 0;

    CHECK(mkdtemp(state) && e2b_objects_open(state, &objects, &err) == 0, "(%s)", err.msg);
    while (object_put(objects, "ann", count, MIB, &err) == 0)
        count++;
    CHECK(count == 7 && err.kind == ERR_EXHAUSTED, "(%d: %s)", count, err.msg);
    CHECK(strstr(err.msg, "owner 'ann'"), "(%s)", err.msg);
    CHECK(object_put(objects, "bob", 0, MIB, &err) == 0, "(%s)", err.msg);
    /* What an owner has may become smaller, and room that is free again is its own. */
    CHECK(object_put(objects, "ann", 0, 1, &err) == 0, "(%s)", err.msg);
    CHECK(object_put(objects, "ann", count, MIB, &err) == 0, "(%s)", err.msg);
    e2b_objects_close(objects);
    CHECK(tree_remove_at(AT_FDCWD, state) == 0);
}

int main(void)
{
    RUN(an_owner_leaves_half_of_the_store_to_others);
    return 0;
}
