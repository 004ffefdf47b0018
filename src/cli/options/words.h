/* A list of texts from repeated options, for libholt. */
#pragma once

#include <stddef.h>

struct err;

struct words {
    char **items; /* ends with NULL; NULL: no words */
    size_t count;
};

/* Adds a copy of the text. */
void words_add(struct words *words, const char *text);

/* Adds the text of a --label; fails if it is not KEY=VALUE. */
int words_add_label(struct words *words, const char *text, struct err *err);

/* Adds the text of a --volume; fails if it is not NAME:PATH[:ro] with an absolute path. */
int words_add_volume(struct words *words, const char *text, struct err *err);

void words_done(struct words *words);
