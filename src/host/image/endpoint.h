/* Where images come from: what holt.conf says of registries. The network of pulls is that of the
 * operator; the policies of sandboxes do not apply. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

struct config;
struct err;
struct image_config;
struct image_ref;

/* Check values of holt.conf. */
int image_registries_check(const char *text, struct err *err);
int image_mirrors_check(const char *text, struct err *err);

/* Copies the keys image.* of a configuration. */
struct image_config *image_config_new(const struct config *config);
void image_config_free(struct image_config *config);

/* Returns how many bytes of an owner's blobs are kept. */
uint64_t image_config_cache(const struct image_config *config);

/* Returns how large an image may be, packed and unpacked. */
uint64_t image_config_bytes_max(const struct image_config *config);

/* Makes the list of endpoints for holt-image (image/control.h): mirrors, then the registry. Fails
 * with ERR_DENIED for a registry that is not allowed. Private addresses are allowed for registries
 * that holt.conf names, and for all if the caller is an admin. */
int image_endpoints(const struct image_config *config, const struct image_ref *ref, bool is_admin,
                    json_t **ret, struct err *err);
