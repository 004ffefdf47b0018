/* Which bytes belong to one template alone: templates share the layers of their images and the
 * templates that they are based on. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct template_info;

struct template_usage {
    const struct template_info *infos; /* of template_list, all of them */
    size_t count;
    struct template_part *parts; /* one for each */
};

/* Counts the users of each template and layer: all templates, or those that is_user (not NULL) has
 * a true for. The list must outlive the usage. */
void template_usage_init(struct template_usage *usage, const struct template_info *infos,
                         size_t count, const bool *is_user);
void template_usage_done(struct template_usage *usage);

/* Returns how many bytes of a template are those of others as well. */
uint64_t template_usage_shared(const struct template_usage *usage, const char *name);

/* Counts a template as removed, with the layers that only it has used. Returns their bytes. */
uint64_t template_usage_remove(struct template_usage *usage, const char *name);
