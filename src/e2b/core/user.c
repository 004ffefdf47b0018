// SPDX-License-Identifier: Apache-2.0
#include "e2b/core/user.h"

#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/text/base64.h"
#include "e2b/core/e2b.h"
#include "e2b/core/metadata.h"

/* "user" if the sandbox has it, else root, which always exists. */
#define DEFAULT_USER "user:0"

int e2b_user_refuse(const char *name, struct err *err)
{
    (void)err_set(err, ERR_UNAUTHENTICATED, "invalid username: '%.80s'", name);
    return err_remedy(err, "name a user of the sandbox");
}

static int set_name(struct e2b_user *user, const char *name, struct err *err)
{
    if (strchr(name, ':') || strlen(name) > PROCESS_USER_MAX)
        return e2b_user_refuse(name, err);
    (void)snprintf(user->name, sizeof(user->name), "%s", name);
    user->is_named = true;
    return 0;
}

/* The template's user, or the default. */
static int set_default(const struct e2b_request *request, struct e2b_user *user, struct err *err)
{
    const char *name = e2b_metadata_text(request->metadata, "user");
    int r = name ? set_name(user, name, err) : 0;

    if (!name)
        (void)snprintf(user->name, sizeof(user->name), "%s", DEFAULT_USER);
    return r;
}

int e2b_user_of_call(const struct e2b_request *request, struct e2b_user *ret, struct err *err)
{
    cleanup_with(buf_done) struct buf text = BUF_INIT(512);
    const char *header = e2b_header(request, MHD_HTTP_HEADER_AUTHORIZATION);

    *ret = (struct e2b_user){ .is_named = false };
    if (!header || strncasecmp(header, "Basic ", 6) != 0)
        return set_default(request, ret, err);
    header += 6 + strspn(header + 6, " ");
    if (base64_decode(&text, header, strlen(header)) < 0 || text.len == 0 ||
        memchr(text.data, '\0', text.len))
        return err_set(err, ERR_UNAUTHENTICATED, "invalid username: the header is not readable");
    text.data[strcspn(text.data, ":")] = '\0';
    return text.data[0] ? set_name(ret, text.data, err) : set_default(request, ret, err);
}

int e2b_user_of_query(const struct e2b_request *request, struct e2b_user *ret, struct err *err)
{
    const char *name = e2b_query(request, "username");

    *ret = (struct e2b_user){ .is_named = false };
    return name && name[0] ? set_name(ret, name, err) : set_default(request, ret, err);
}
