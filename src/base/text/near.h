/* How much one word looks like another, for "did you mean". */
#pragma once

/* A slip of the pen is no further away than this. */
enum { NEAR_MAX = 2 };

/* How many letters must be put in, left out, changed or swapped with their neighbour to make one
 * word of the other; more than NEAR_MAX where it would be most of a word. */
int word_distance(const char *a, const char *b);
