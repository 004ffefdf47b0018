/* The layers of an image as templates of their own, each based on the one below, so that images of
 * one owner share the layers that they have in common, on disk and in the page cache. Layers are
 * unpacked at the same time, each without those below it. */
#pragma once

struct err;
struct image_layers;
struct import;
struct template_source;

/* Makes the template under way one that is based on the layers of the image source->digest, and
 * holds them until the import ends. Returns 1 if the image must be unpacked into one tree instead:
 * it has too many layers, or one whose names mean nothing without the layers below. */
int image_layers_import(struct import *import, const struct template_source *source,
                        struct err *err);

/* Ends the hold. Accepts NULL. */
void image_layers_free(struct image_layers *layers);
