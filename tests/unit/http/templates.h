/* The templates of a host that has none: stubs for the service, which is included before. */
#pragma once

int stub_owned_template_list(struct host *host, const struct caller *caller,
                             struct owned_template **ret, size_t *ret_count, struct err *err)
{
    (void)host, (void)caller, (void)err;
    *ret = xcalloc(3, sizeof(**ret));
    (*ret)[0].info = (struct template_info){ .name = "debian",
                                             .is_host = false,
                                             .size_bytes = 5000000000,
                                             .files = 12,
                                             .created_at = 1700000000 };
    (*ret)[1].info = (struct template_info){ .name = "step-0123456789abcdef0123456789abcdef",
                                             .is_host = false,
                                             .size_bytes = 1,
                                             .files = 1,
                                             .created_at = 1 };
    (*ret)[2].info = (struct template_info){
        .name = "host", .is_host = true, .size_bytes = 0, .files = 0, .created_at = 0
    };
    for (size_t i = 0; i < 3; i++) {
        (void)snprintf((*ret)[i].record.name, sizeof((*ret)[i].record.name), "%s",
                       (*ret)[i].info.name);
        (void)snprintf((*ret)[i].record.owner, sizeof((*ret)[i].record.owner), "%s", OWNER_ROOT);
    }
    *ret_count = 3;
    return 0;
}

/* The first one is shared with two owners, the others with all. */
int stub_owned_template_shares(struct host *host, const struct caller *caller,
                               const struct template_record *record, struct share **ret,
                               size_t *ret_count, struct err *err)
{
    bool is_first = strcmp(record->name, "debian") == 0;

    (void)host, (void)caller, (void)err;
    *ret = xcalloc(2, sizeof(**ret));
    (*ret)[0] = is_first ? (struct share){ "ann" } : (struct share){ SHARE_ALL };
    (*ret)[1] = (struct share){ "bob" };
    *ret_count = is_first ? 2 : 1;
    return 0;
}

int stub_owned_template_share(struct host *host, const struct caller *caller, const char *word,
                              const struct sharing *sharing, struct owned_template *ret,
                              struct err *err)
{
    (void)host, (void)caller;
    if (sharing->is_public)
        return err_set(err, ERR_DENIED, "not public");
    (void)snprintf(ret->record.name, sizeof(ret->record.name), "%s", word);
    return 0;
}

int stub_owned_template_reserve(struct host *host, const struct caller *caller, const char *name,
                                struct template_record *ret, struct err *err)
{
    (void)host, (void)err;
    *ret = (struct template_record){ .store_name = "" };
    (void)snprintf(ret->store_name, sizeof(ret->store_name), "%s", name);
    (void)snprintf(ret->owner, sizeof(ret->owner), "%s", caller->owner);
    (void)snprintf(ret->name, sizeof(ret->name), "%s", name);
    return 0;
}

void stub_owned_template_release(struct host *host, const char *store_name)
{
    (void)host, (void)store_name;
}

int stub_host_get_template_owner(struct host *host, const char *name, char **ret, struct err *err)
{
    (void)host, (void)name, (void)err;
    *ret = NULL;
    return 0;
}

int stub_owned_template_remove(struct host *host, const struct caller *caller, const char *name,
                               struct err *err)
{
    (void)host, (void)caller;
    if (strcmp(name, "host") == 0)
        return err_set(err, ERR_DENIED, "the host template cannot be removed");
    return err_set(err, ERR_BUSY, "template '%s' is in use", name);
}

int stub_template_import(struct store *store, const struct template_source *source,
                         struct template_info *ret, struct err *err)
{
    (void)store;
    if (strcmp(source->path, "/bomb") == 0)
        return err_set(err, ERR_EXHAUSTED, "the archive is too large");
    source->progress(&(struct template_progress){ 1000, 10, 500, 800 }, source->context);
    (void)usleep(300 * 1000);
    *ret = (struct template_info){
        .name = "new", .is_host = false, .size_bytes = 2000, .files = 20, .created_at = 1
    };
    return 0;
}
