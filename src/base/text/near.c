// SPDX-License-Identifier: Apache-2.0
#include "base/text/near.h"

#include <string.h>

enum { WORD_MAX = 32 };

static int least_of(int a, int b)
{
    return a < b ? a : b;
}

/* Computes one row of the matrix from the previous two. */
static void next_row(const char *a, const char *b, size_t at, int rows[3][WORD_MAX + 1])
{
    int *row = rows[at % 3], *before = rows[(at + 2) % 3], *earlier = rows[(at + 1) % 3];

    row[0] = (int)at;
    for (size_t j = 1; j <= strlen(b); j++) {
        row[j] = least_of(before[j] + 1, row[j - 1] + 1);
        row[j] = least_of(row[j], before[j - 1] + (a[at - 1] != b[j - 1]));
        if (at > 1 && j > 1 && a[at - 1] == b[j - 2] && a[at - 2] == b[j - 1])
            row[j] = least_of(row[j], earlier[j - 2] + 1);
    }
}

int word_distance(const char *a, const char *b)
{
    size_t a_len = strlen(a), b_len = strlen(b);
    int rows[3][WORD_MAX + 1];
    int distance;

    if (a_len > WORD_MAX || b_len > WORD_MAX)
        return NEAR_MAX + 1;
    for (size_t j = 0; j <= b_len; j++)
        rows[0][j] = (int)j;
    for (size_t i = 1; i <= a_len; i++)
        next_row(a, b, i, rows);
    distance = rows[a_len % 3][b_len];
    return 2 * distance >= (int)(a_len > b_len ? a_len : b_len) ? NEAR_MAX + 1 : distance;
}
