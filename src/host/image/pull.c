// SPDX-License-Identifier: Apache-2.0
#include "host/image/pull.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/access/caller.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/fault.h"
#include "base/json.h"
#include "host/core/host.h"
#include "host/core/host_internal.h"
#include "host/core/owned_template.h"
#include "host/image/endpoint.h"
#include "host/image/fetch.h"
#include "host/image/login.h"
#include "host/observe/event.h"
#include "store/import/blobs.h"
#include "store/import/image.h"
#include "store/template/settings.h"

enum { PULLS_MAX = 8 };

/* A pull under way. */
struct pull {
    struct host *host;
    const struct caller *caller;
    const struct image_pull *asked;
    struct image_ref ref;
    int images_fd;
    struct image_credentials credentials;
    char digest[IMAGE_DIGEST_LEN + 1];
    struct template_record old; /* the owner's template of this name; store_name "": none */
    char old_digest[IMAGE_DIGEST_LEN + 1];
};

static int blobs_fetch(struct pull *pull, struct err *err)
{
    const struct image_login_request given = { pull->ref.registry, pull->asked->user,
                                               pull->asked->password };
    cleanup_json json_t *endpoints = NULL;
    struct image_fetch fetch = {
        .ref = &pull->ref,
        .user = pull->credentials.user,
        .password = pull->credentials.password.bytes,
        .progress = pull->asked->progress,
        .context = pull->asked->context,
    };
    int r = image_endpoints(pull->host->image_config, &pull->ref, caller_is_admin(pull->caller),
                            &endpoints, err);

    if (r == 0)
        r = image_credentials_find(pull->host, pull->caller, &given, &pull->credentials, err);
    if (r == 0)
        r = blobs_open(pull->host->store, pull->caller->owner, &pull->images_fd, err);
    if (r < 0)
        return r;
    fetch.endpoints = endpoints;
    fetch.images_fd = pull->images_fd;
    fetch.bytes_max = image_config_bytes_max(pull->host->image_config);
    return image_fetch(&fetch, pull->digest, err);
}

/* Finds the template that has the name now. */
static int old_find(struct pull *pull, struct err *err)
{
    struct template_record found;
    struct template_info info;
    int r = owned_template_find(pull->host, pull->caller, pull->ref.familiar, &found, err);

    if (r < 0 && err->kind == ERR_NOT_FOUND)
        return 0;
    if (r < 0 || strcmp(found.owner, pull->caller->owner) != 0)
        return r;
    r = template_get_info(pull->host->store, found.store_name, &info, err);
    if (r < 0)
        return r;
    pull->old = found;
    memcpy(pull->old_digest, info.digest, sizeof(pull->old_digest));
    return 0;
}

static int template_make(struct pull *pull, const char *store_name, struct template_info *ret,
                         struct err *err)
{
    cleanup_with(template_settings_done) struct template_settings settings = { .object = NULL };
    const struct template_source source = {
        .name = store_name,
        .digest = pull->digest,
        .image_fd = pull->images_fd,
        .owner = pull->caller->owner,
        .settings = &settings,
        .progress = pull->asked->progress,
        .context = pull->asked->context,
    };
    int r = image_settings(pull->images_fd, pull->digest, &settings, err);

    return r < 0 ? r : template_import(pull->host->store, &source, ret, err);
}

/* Errors of the store name the template by its name there, which means nothing to callers. */
static int make_explain(const struct pull *pull, struct err *err)
{
    const char *rest = strstr(err->msg, "': ");
    char text[sizeof(err->msg)];

    if (strncmp(err->msg, "import '", strlen("import '")) == 0 && rest) {
        (void)snprintf(text, sizeof(text), "%s", rest + strlen("': "));
        (void)snprintf(err->msg, sizeof(err->msg), "%s", text);
    }
    return err_wrap(err, "unpack '%.100s'", pull->ref.familiar);
}

/* Gives the template its name; the earlier one goes, unless something uses it. */
static int template_publish(struct pull *pull, struct template_record *record, struct err *err)
{
    char old_name[IMAGE_REF_MAX + IMAGE_DIGEST_LEN + 8];
    const char *colon = strrchr(pull->ref.familiar, ':');
    struct template_record unused;
    struct err ignored;
    int r;

    (void)snprintf(old_name, sizeof(old_name), "%.*s@%s",
                   colon ? (int)(colon - pull->ref.familiar) : 0, pull->ref.familiar,
                   pull->old_digest);
    /* An image that was pulled by its digest has that name already. */
    if (strlen(old_name) > IMAGE_REF_MAX || !pull->old_digest[0] ||
        owned_template_find(pull->host, pull->caller, old_name, &unused, &ignored) == 0)
        (void)snprintf(old_name, sizeof(old_name), "%.128s@%s", pull->ref.repository,
                       pull->old.store_name);
    r = owned_template_name(pull->host, record, pull->ref.familiar, old_name, err);
    fault_point("pull.named");
    if (r == 0 && pull->old.store_name[0])
        (void)host_remove_template(pull->host, pull->old.store_name, &ignored);
    return r;
}

static int template_create(struct pull *pull, struct template_record *ret_record,
                           struct template_info *ret, struct err *err)
{
    struct template_record record;
    int r = owned_template_reserve_image(pull->host, pull->caller, &record, err);

    if (r < 0)
        return r;
    fault_point("pull.reserved");
    r = template_make(pull, record.store_name, ret, err);
    if (r < 0) {
        owned_template_release(pull->host, record.store_name);
        template_layers_collect(pull->host->store);
        return make_explain(pull, err);
    }
    fault_point("pull.unpacked");
    r = template_publish(pull, &record, err);
    if (r < 0)
        return r;
    owner_event(pull->host, record.owner, EVENT_TEMPLATE_IMPORTED,
                json_pack("{s:s, s:s, s:s}", "template", record.store_name, "image",
                          pull->ref.familiar, "digest", pull->digest));
    *ret_record = record;
    return 0;
}

static int pull_run(struct pull *pull, struct template_record *ret_record,
                    struct template_info *ret, struct err *err)
{
    uint64_t removed;
    struct err ignored;
    int r = blobs_fetch(pull, err);

    if (r < 0)
        return err_wrap(err, "pull '%.100s'", pull->ref.familiar);
    r = old_find(pull, err);
    if (r < 0)
        return r;
    if (pull->old.store_name[0] && strcmp(pull->old_digest, pull->digest) == 0) {
        *ret_record = pull->old;
        return template_get_info(pull->host->store, pull->old.store_name, ret, err);
    }
    r = template_create(pull, ret_record, ret, err);
    if (r == 0)
        (void)blobs_prune(pull->images_fd, image_config_cache(pull->host->image_config), &removed,
                          &ignored);
    return r;
}

int image_pull(struct host *host, const struct caller *caller, const struct image_pull *asked,
               struct template_record *ret_record, struct template_info *ret, struct err *err)
{
    struct pull pull = { .host = host, .caller = caller, .asked = asked, .images_fd = -EBADF };
    int r;

    if (image_ref_parse(asked->reference, &pull.ref) < 0)
        return err_set(err, ERR_INVALID,
                       "'%.100s' is not a reference: [REGISTRY/]REPOSITORY[:TAG][@sha256:HEX]",
                       asked->reference);
    if (atomic_fetch_add(&host->pulls, 1) >= PULLS_MAX)
        r = err_set(err, ERR_EXHAUSTED, "%d images are being pulled already: try again later",
                    PULLS_MAX);
    else
        r = pull_run(&pull, ret_record, ret, err);
    atomic_fetch_sub(&host->pulls, 1);
    image_credentials_done(&pull.credentials);
    (void)fd_close(pull.images_fd);
    return r;
}
