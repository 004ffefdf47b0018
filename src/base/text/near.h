/* Edit distance between words, for "did you mean". */
#pragma once

/* Maximum distance of a typing error. */
enum { NEAR_MAX = 2 };

/* Returns how many letters must be inserted, deleted, changed or swapped with their neighbour to
 * turn one word into the other; more than NEAR_MAX if that is most of a word. */
int word_distance(const char *a, const char *b);
