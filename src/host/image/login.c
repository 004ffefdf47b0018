// SPDX-License-Identifier: Apache-2.0
#include "host/image/login.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/fault.h"
#include "base/json.h"
#include "base/text/image_ref.h"
#include "base/xalloc.h"
#include "host/core/host_internal.h"
#include "host/core/share.h"
#include "host/image/endpoint.h"
#include "host/image/helper.h"
#include "host/observe/event.h"

enum { CONTEXT_MAX = 1024 };

static void login_init(struct image_login *login, const struct login_row *row)
{
    memcpy(login->owner, row->owner, sizeof(login->owner));
    memcpy(login->registry, row->registry, sizeof(login->registry));
    memcpy(login->username, row->username, sizeof(login->username));
    login->changed_ms = row->changed_ms;
}

/* What the password is bound to; the user name comes last, as it alone may have blanks. */
static void context_write(const struct login_row *row, char ret[CONTEXT_MAX])
{
    (void)snprintf(ret, CONTEXT_MAX, "holt registry login 1 %s %s %s", row->owner, row->registry,
                   row->username);
}

static int login_not_found(const char *registry, struct err *err)
{
    (void)err_set(err, ERR_NOT_FOUND, "no login to registry '%.100s'", registry);
    return err_remedy(err, "see 'holt registry ls'");
}

/* --- change ----------------------------------------------------------------------------------- */

static int registry_parse(const char *registry, struct image_ref *ret, struct err *err)
{
    char reference[LOGIN_REGISTRY_MAX + 8];

    (void)snprintf(reference, sizeof(reference), "%s/x:y", registry);
    if (strlen(registry) > LOGIN_REGISTRY_MAX || image_ref_parse(reference, ret) < 0 ||
        strcmp(ret->registry, registry) != 0)
        return err_set(err, ERR_INVALID,
                       "'%.100s' is not a registry: HOST or HOST:PORT, such as docker.io",
                       registry);
    return 0;
}

static int request_check(const struct image_login_request *request, struct err *err)
{
    const char *name = request->username;

    if (!*name || strlen(name) > LOGIN_USERNAME_MAX)
        return err_set(err, ERR_INVALID, "a user name has 1 to %d bytes", LOGIN_USERNAME_MAX);
    for (const char *c = name; *c; c++)
        if ((unsigned char)*c < ' ' || *c == 0x7f || *c == ':')
            return err_set(err, ERR_INVALID, "a user name has no ':' and no control bytes");
    if (!*request->password || strlen(request->password) > SECRET_VALUE_MAX)
        return err_set(err, ERR_INVALID, "a password has 1 to %d bytes", SECRET_VALUE_MAX);
    return 0;
}

/* Reads the answer of holt-image, which has one message. */
static int answer_read(struct image_helper *helper, struct err *err)
{
    cleanup_json json_t *message = NULL;
    const char *word = "";
    int r = image_helper_next(helper, &message, err);

    if (r == 0)
        r = json_get_text(message, "do", &word, err);
    if (r < 0)
        return r;
    if (strcmp(word, "failed") == 0)
        return image_helper_failed(message, err);
    return strcmp(word, "done") == 0
               ? 0
               : err_set(err, ERR_INTERNAL, "holt-image sent a malformed message");
}

/* Asks the registry itself, never a mirror. */
static int login_check(struct host *host, const struct caller *caller,
                       const struct image_login_request *request, const struct image_ref *ref,
                       struct err *err)
{
    cleanup_with(image_helper_done) struct image_helper helper = IMAGE_HELPER_INIT;
    cleanup_json json_t *endpoints = NULL;
    int r = image_endpoints(host->image_config, ref, caller_is_admin(caller), &endpoints, err);

    if (r == 0)
        r = image_helper_start(&helper, err);
    if (r == 0)
        r = image_helper_send(&helper,
                              json_pack("{s:s, s:O, s:s, s:s, s:s}", "do", "login", "endpoints",
                                        endpoints, "repository", "", "user", request->username,
                                        "password", request->password),
                              -1, err);
    return r < 0 ? r : answer_read(&helper, err);
}

static int share_check(struct host *host, const struct login_row *row, struct err *err)
{
    cleanup_free struct login_row *rows = NULL;
    const size_t share = owner_share(row->owner, LOGINS_MAX);
    size_t count = 0, own = 0;
    int r = registry_list_logins(host->registry, &rows, &count, err);

    if (r < 0)
        return r;
    for (size_t i = 0; i < count; i++) {
        bool is_own = strcmp(rows[i].owner, row->owner) == 0;

        if (is_own && strcmp(rows[i].registry, row->registry) == 0)
            return 0;
        own += is_own;
    }
    if (count >= LOGINS_MAX)
        return err_set(err, ERR_EXHAUSTED, "limit of logins to registries reached (%d)",
                       LOGINS_MAX);
    if (own >= share)
        return err_set(err, ERR_EXHAUSTED, "limit of logins of owner '%s' reached (%zu)",
                       row->owner, share);
    return 0;
}

static int login_record(struct host *host, struct login_row *row, const char *password,
                        struct err *err)
{
    cleanup_free char *sealed = NULL;
    char context[CONTEXT_MAX];
    int r = share_check(host, row, err);

    if (r < 0)
        return r;
    context_write(row, context);
    r = secrets_seal_text(host->secrets, context, password, &sealed, err);
    if (r < 0)
        return r;
    (void)snprintf(row->sealed, sizeof(row->sealed), "%s", sealed);
    row->changed_ms = clock_wall_ms();
    fault_point("login.sealed");
    r = registry_put_login(host->registry, row, err);
    fault_point("login.recorded");
    return r;
}

int image_login_set(struct host *host, const struct caller *caller,
                    const struct image_login_request *request, struct image_login *ret,
                    struct err *err)
{
    cleanup_free struct login_row *row = xcalloc(1, sizeof(*row));
    struct image_ref ref;
    int r = caller_check_labels(caller, NULL, 0, err); /* logins have no labels */

    if (r == 0)
        r = registry_parse(request->registry, &ref, err);
    if (r == 0)
        r = request_check(request, err);
    if (r == 0)
        r = login_check(host, caller, request, &ref, err);
    if (r < 0)
        return r;
    (void)snprintf(row->owner, sizeof(row->owner), "%s", caller->owner);
    (void)snprintf(row->registry, sizeof(row->registry), "%s", request->registry);
    (void)snprintf(row->username, sizeof(row->username), "%s", request->username);
    r = login_record(host, row, request->password, err);
    if (r < 0)
        return r;
    owner_event(host, row->owner, EVENT_REGISTRY_LOGIN,
                json_pack("{s:s, s:s}", "registry", row->registry, "username", row->username));
    login_init(ret, row);
    return 0;
}

int image_login_remove(struct host *host, const struct caller *caller, const char *word,
                       struct err *err)
{
    cleanup_free struct image_login *list = NULL;
    struct share_word split;
    size_t count = 0;
    int r = image_login_list(host, caller, &list, &count, err);

    if (r < 0)
        return r;
    if (!share_word_split(word, caller, &split))
        return login_not_found(word, err);
    for (size_t i = 0; i < count; i++) {
        if (strcmp(list[i].owner, split.owner) != 0 || strcmp(list[i].registry, split.name) != 0)
            continue;
        r = registry_remove_login(host->registry, list[i].owner, list[i].registry, err);
        if (r == 0)
            owner_event(host, list[i].owner, EVENT_REGISTRY_LOGOUT,
                        json_pack("{s:s}", "registry", list[i].registry));
        return r;
    }
    return login_not_found(word, err);
}

/* --- use -------------------------------------------------------------------------------------- */

int image_login_list(struct host *host, const struct caller *caller, struct image_login **ret,
                     size_t *ret_count, struct err *err)
{
    cleanup_free struct login_row *rows = NULL;
    struct image_login *list;
    size_t count = 0, kept = 0;
    int r = registry_list_logins(host->registry, &rows, &count, err);

    if (r < 0)
        return r;
    list = xcalloc(count + 1, sizeof(*list));
    for (size_t i = 0; i < count; i++)
        if (caller_sees(caller, rows[i].owner, NULL, 0))
            login_init(&list[kept++], &rows[i]);
    *ret = list;
    *ret_count = kept;
    return 0;
}

void image_credentials_done(struct image_credentials *credentials)
{
    explicit_bzero(credentials, sizeof(*credentials));
}

static int login_open(struct host *host, const struct login_row *row, struct image_credentials *ret,
                      struct err *err)
{
    char context[CONTEXT_MAX];
    struct err cause;

    context_write(row, context);
    if (secrets_open_text(host->secrets, context, row->sealed, &ret->password, &cause) < 0) {
        (void)err_set(err, ERR_INTERNAL, "the login to registry '%.100s' cannot be opened: %s",
                      row->registry,
                      cause.errnum == ENOKEY ? "secret.key is missing in the state directory"
                                             : "it was changed, or sealed with another key");
        return err_remedy(err,
                          "Restore secret.key from a backup, or log in again: holt registry "
                          "login %.100s",
                          row->registry);
    }
    (void)snprintf(ret->user, sizeof(ret->user), "%s", row->username);
    return 0;
}

int image_credentials_find(struct host *host, const struct caller *caller,
                           const struct image_login_request *given, struct image_credentials *ret,
                           struct err *err)
{
    cleanup_free struct login_row *rows = NULL;
    size_t count = 0;
    int r;

    *ret = (struct image_credentials){ .user = "" };
    if (*given->username) {
        (void)snprintf(ret->user, sizeof(ret->user), "%s", given->username);
        (void)snprintf(ret->password.bytes, sizeof(ret->password.bytes), "%s", given->password);
        return 0;
    }
    if (caller->scope_count > 0)
        return 0;
    r = registry_list_logins(host->registry, &rows, &count, err);
    for (size_t i = 0; r == 0 && i < count; i++)
        if (strcmp(rows[i].owner, caller->owner) == 0 &&
            strcmp(rows[i].registry, given->registry) == 0)
            return login_open(host, &rows[i], ret, err);
    return r;
}
