/* Templates as callers see them. The store has one namespace of directories; the registry knows the
 * owner of each and the name that the owner gave it. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/access/caller.h"
#include "host/registry/registry.h"
#include "store/template/template.h"

struct err;
struct host;

struct owned_template {
    struct template_record record;
    struct template_info info; /* its name is that in the store */
};

/* Finds a template by NAME or OWNER/NAME, or the reference of an image that was pulled; NULL is the
 * default of the configuration, which all owners may use, as the template of the host. A name
 * stands for the caller's own template, then for one of root's that is shared with the caller, then
 * for the only other one. Fails with ERR_NOT_FOUND, and with ERR_INVALID if it stands for several.
 */
int owned_template_find(struct host *host, const struct caller *caller, const char *word,
                        struct template_record *ret, struct err *err);

/* Finds a template that the caller may change: its own, or any for an admin. Fails with ERR_DENIED
 * for one that is only shared with it. */
int owned_template_find_own(struct host *host, const struct caller *caller, const char *word,
                            struct template_record *ret, struct err *err);

/* Records a template that is about to be created for the caller's owner, and chooses its name in
 * the store. Fails with ERR_EXISTS if the owner has one of this name. A record without a template
 * does not exist for callers; the next start removes it. */
int owned_template_reserve(struct host *host, const struct caller *caller, const char *name,
                           struct template_record *ret, struct err *err);

/* Does the same for an image that is being pulled; owned_template_name gives it the name. Until
 * then it does not exist for callers, and the next start removes it. */
int owned_template_reserve_image(struct host *host, const struct caller *caller,
                                 struct template_record *ret, struct err *err);

/* Names a pulled image by its reference. An earlier template of the owner with this name gets
 * old_name, which is its own. */
int owned_template_name(struct host *host, struct template_record *record, const char *reference,
                        const char *old_name, struct err *err);

/* Does the same for an internal template, whose name in the store is known and unique. */
int owned_template_reserve_internal(struct host *host, const char *owner, const char *store_name,
                                    struct err *err);

/* Removes the record of a template whose creation has failed. */
void owned_template_release(struct host *host, const char *store_name);

/* Lists the templates that the caller sees or that are shared with it, by name and owner. The
 * caller frees the array. */
int owned_template_list(struct host *host, const struct caller *caller, struct owned_template **ret,
                        size_t *ret_count, struct err *err);

/* Removes a template of the caller's. Fails with ERR_BUSY while it is in use. */
int owned_template_remove(struct host *host, const struct caller *caller, const char *word,
                          struct err *err);

/* Replaces what a template of the caller's is shared with, see share_set. */
struct sharing;
int owned_template_share(struct host *host, const struct caller *caller, const char *word,
                         const struct sharing *sharing, struct owned_template *ret,
                         struct err *err);

/* Lists the owners that a template is shared with, for those that may change it; none for others.
 * The caller frees the array. */
int owned_template_shares(struct host *host, const struct caller *caller,
                          const struct template_record *record, struct share **ret,
                          size_t *ret_count, struct err *err);

enum { TEMPLATE_WORD_MAX = OWNER_NAME_MAX + 1 + IMAGE_REF_MAX };

/* Writes the word by which the caller finds a template of the store: NAME, or OWNER/NAME for one of
 * another owner whose name in the store is no name for users. */
void owned_template_word(struct host *host, const struct caller *caller, const char *store_name,
                         char ret[static TEMPLATE_WORD_MAX + 1]);

/* Removes the records of templates that a killed daemon had not created yet, or had removed. */
int owned_templates_recover(struct host *host, struct err *err);
