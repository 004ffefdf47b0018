// SPDX-License-Identifier: Apache-2.0
#include "tools/search/finder.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include "base/xalloc.h"

/* The rank of each byte by its frequency in source code and documents; 0 is the rarest. */
static const unsigned char rank[256] = {
    0,   1,   2,   3,   4,   5,   6,   50,  7,   196, 245, 8,   71,  72,  9,   10,  11,  12,  13,
    14,  15,  16,  17,  18,  46,  19,  20,  47,  21,  22,  23,  24,  255, 161, 211, 207, 173, 160,
    170, 198, 230, 231, 233, 168, 229, 216, 219, 234, 226, 213, 208, 193, 189, 194, 188, 184, 187,
    191, 204, 202, 209, 201, 212, 159, 169, 227, 195, 223, 206, 235, 200, 197, 186, 228, 167, 181,
    222, 203, 224, 220, 215, 164, 221, 237, 232, 192, 185, 174, 190, 180, 162, 183, 178, 182, 157,
    249, 175, 247, 218, 244, 242, 254, 239, 225, 238, 250, 179, 214, 243, 236, 251, 248, 241, 171,
    246, 252, 253, 240, 210, 199, 205, 217, 172, 177, 166, 176, 158, 25,  154, 137, 133, 123, 103,
    96,  107, 136, 132, 104, 81,  78,  102, 95,  82,  140, 122, 131, 105, 112, 148, 115, 144, 92,
    120, 143, 114, 90,  141, 135, 84,  152, 163, 127, 93,  113, 129, 100, 110, 126, 106, 146, 85,
    138, 83,  98,  101, 80,  119, 116, 117, 111, 124, 118, 142, 99,  150, 134, 108, 109, 130, 121,
    128, 88,  26,  27,  165, 153, 77,  94,  58,  56,  61,  65,  62,  53,  64,  51,  147, 125, 155,
    145, 59,  57,  54,  60,  97,  139, 91,  89,  55,  52,  43,  28,  29,  30,  149, 87,  156, 86,
    69,  76,  75,  74,  73,  70,  68,  67,  66,  63,  31,  79,  151, 32,  33,  48,  44,  34,  45,
    35,  36,  37,  42,  38,  39,  49,  40,  41,
};

static char lower(char c)
{
    if (c >= 'A' && c <= 'Z')
        c |= 0x20;
    return c;
}

/* Returns the rank of a byte of the text; with ignore_case that of its more frequent case. */
static unsigned byte_rank(const struct finder *finder, size_t at)
{
    unsigned char c = (unsigned char)finder->text[at];
    unsigned ret = rank[c];

    if (finder->ignore_case && c >= 'a' && c <= 'z' && rank[c - 0x20] > ret)
        ret = rank[c - 0x20];
    return ret;
}

void finder_init(struct finder *finder, const char *text, size_t len, bool ignore_case)
{
    *finder = (struct finder){ .text = xcalloc(1, len + 1), .len = len };
    finder->ignore_case = ignore_case;
    memcpy(finder->text, text, len);
    for (size_t i = 0; i < len && ignore_case; i++)
        finder->text[i] = lower(text[i]);
    for (size_t i = 1; i < len; i++)
        if (byte_rank(finder, i) < byte_rank(finder, finder->rare))
            finder->rare = i;
    finder->other = finder->rare == 0 ? len - 1 : 0;
    for (size_t i = 0; i < len; i++)
        if (i != finder->rare && byte_rank(finder, i) < byte_rank(finder, finder->other))
            finder->other = i;
}

void finder_done(struct finder *finder)
{
    free(finder->text);
    finder->text = NULL;
}

static bool finder_matches(const struct finder *finder, const char *at)
{
    if (!finder->ignore_case)
        return memcmp(at, finder->text, finder->len) == 0;
    for (size_t i = 0; i < finder->len; i++)
        if (lower(at[i]) != finder->text[i])
            return false;
    return true;
}

static const char *finder_find_slowly(const struct finder *finder, const char *start,
                                      const char *end)
{
    for (; (size_t)(end - start) >= finder->len; start++)
        if (finder_matches(finder, start))
            return start;
    return NULL;
}

#ifdef __SSE2__
enum { WIDTH = sizeof(__m128i) };

/* Returns the bit that differs between upper and lower case, if case is ignored. */
static char case_bit(const struct finder *finder, size_t at)
{
    char c = finder->text[at];

    return finder->ignore_case && c >= 'a' && c <= 'z' ? 0x20 : 0;
}

static __m128i load16(const char *at)
{
    return _mm_loadu_si128((const __m128i *)(const void *)at);
}

const char *finder_find(const struct finder *finder, const char *start, const char *end)
{
    __m128i rare = _mm_set1_epi8(finder->text[finder->rare]);
    __m128i other = _mm_set1_epi8(finder->text[finder->other]);
    __m128i rare_bit = _mm_set1_epi8(case_bit(finder, finder->rare));
    __m128i other_bit = _mm_set1_epi8(case_bit(finder, finder->other));
    const char *at = start;

    for (; end - at >= (ptrdiff_t)(finder->len + WIDTH); at += WIDTH) {
        __m128i one = _mm_or_si128(load16(at + finder->rare), rare_bit);
        __m128i two = _mm_or_si128(load16(at + finder->other), other_bit);
        unsigned found = (unsigned)_mm_movemask_epi8(
            _mm_and_si128(_mm_cmpeq_epi8(one, rare), _mm_cmpeq_epi8(two, other)));

        for (; found; found &= found - 1) {
            const char *place = at + __builtin_ctz(found);

            if (finder_matches(finder, place))
                return place;
        }
    }
    return finder_find_slowly(finder, at, end);
}

size_t newline_count(const char *start, const char *end)
{
    __m128i newline = _mm_set1_epi8('\n'), zero = _mm_setzero_si128();
    size_t ret = 0;

    while (end - start >= WIDTH) {
        __m128i sum = zero;

        /* A byte overflows after 255. */
        for (int i = 0; i < 255 && end - start >= WIDTH; i++, start += WIDTH)
            sum = _mm_sub_epi8(sum, _mm_cmpeq_epi8(load16(start), newline));
        sum = _mm_sad_epu8(sum, zero);
        ret += (size_t)_mm_cvtsi128_si64(sum) +
               (size_t)_mm_cvtsi128_si64(_mm_unpackhi_epi64(sum, sum));
    }
    for (; start < end; start++)
        ret += *start == '\n';
    return ret;
}
#else
const char *finder_find(const struct finder *finder, const char *start, const char *end)
{
    if (finder->ignore_case)
        return finder_find_slowly(finder, start, end);
    return memmem(start, (size_t)(end - start), finder->text, finder->len);
}

size_t newline_count(const char *start, const char *end)
{
    size_t ret = 0;

    while ((start = memchr(start, '\n', (size_t)(end - start)))) {
        start++;
        ret++;
    }
    return ret;
}
#endif
