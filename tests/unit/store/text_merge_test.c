// SPDX-License-Identifier: Apache-2.0
/* Merges of texts: what one side has changed is taken, what both have changed is a hunk.
 *
 * TEXT_MERGE_ROUNDS=N  random texts
 * TEXT_MERGE_SEED=N    repeats a run */
#include <stdlib.h>
#include <time.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "check.h"
#include "store/codebase/text_merge.h"

enum { ROUNDS_SHORT = 3000, TEXT_BYTES = 4096, LINES_RANDOM = 24, HUNKS_MAX = 64 };

static struct {
    unsigned count;
    unsigned line[HUNKS_MAX];
    char ours[HUNKS_MAX][64], theirs[HUNKS_MAX][64];
} seen;

static unsigned seed;

static unsigned pick(unsigned count)
{
    return (unsigned)rand_r(&seed) % count;
}

static struct text text_of(const char *text)
{
    return (struct text){ text, strlen(text) };
}

static void hunk_note(void *context, const struct text_hunk *hunk)
{
    (void)context;
    if (seen.count < HUNKS_MAX) {
        seen.line[seen.count] = hunk->line;
        (void)snprintf(seen.ours[seen.count], 64, "%.*s", (int)hunk->ours.len, hunk->ours.data);
        (void)snprintf(seen.theirs[seen.count], 64, "%.*s", (int)hunk->theirs.len,
                       hunk->theirs.data);
    }
    seen.count++;
}

/* Returns the merged text, until the next call. */
static const char *merged(const char *base, const char *ours, const char *theirs,
                          enum codebase_side side)
{
    static char result[3 * TEXT_BYTES];
    cleanup_with(buf_done) struct buf out = BUF_INIT(sizeof(result) - 1);
    const struct text_merge merge = { .base = text_of(base),
                                      .ours = text_of(ours),
                                      .theirs = text_of(theirs),
                                      .side = side,
                                      .name = "s2",
                                      .conflict = hunk_note };

    seen.count = 0;
    CHECK(text_merge(&merge, &out) == 0);
    (void)snprintf(result, sizeof(result), "%s", out.data ? out.data : "");
    return result;
}

static void what_one_side_changed_is_taken(void)
{
    CHECK_TEXT(merged("1\n2\n3\n", "1\n2\n3\n", "1\nb\n3\n", CODEBASE_NEITHER), "1\nb\n3\n");
    CHECK_TEXT(merged("1\n2\n3\n4\n5\n", "a\n2\n3\n4\n5\n", "1\n2\n3\n4\nb\n", CODEBASE_NEITHER),
               "a\n2\n3\n4\nb\n");
    CHECK_TEXT(merged("1\n2\n3\n", "2\n3\n", "1\n2\n3\n4\n", CODEBASE_NEITHER), "2\n3\n4\n");
    CHECK_TEXT(merged("1\n2\n3", "1\n2\n3", "1\n2\n3\n", CODEBASE_NEITHER), "1\n2\n3\n");
    CHECK_TEXT(merged("", "", "", CODEBASE_NEITHER), "");
    CHECK(seen.count == 0);
}

static void equal_changes_are_no_conflict(void)
{
    CHECK_TEXT(merged("1\n2\n3\n", "1\nx\n3\n", "1\nx\n3\n", CODEBASE_NEITHER), "1\nx\n3\n");
    CHECK_TEXT(merged("1\n2\n", "", "", CODEBASE_NEITHER), "");
    CHECK(seen.count == 0);
}

static void what_both_changed_is_a_hunk(void)
{
    (void)merged("1\n2\n3\n4\n5\n6\n", "1\na\n3\n4\n5\nx\n", "1\nb\n3\n4\n5\ny\n",
                 CODEBASE_NEITHER);
    CHECK(seen.count == 2 && seen.line[0] == 2 && seen.line[1] == 6);
    CHECK_TEXT(seen.ours[0], "a\n");
    CHECK_TEXT(seen.theirs[0], "b\n");
    (void)merged("1\n2\n3\n", "1\n3\n", "1\nb\n3\n", CODEBASE_NEITHER);
    CHECK(seen.count == 1 && seen.line[0] == 2);
    CHECK_TEXT(seen.ours[0], "");
    CHECK_TEXT(seen.theirs[0], "b\n");
}

static void changes_that_touch_are_one_hunk(void)
{
    (void)merged("1\n2\n3\n", "a\n2\n3\n", "1\nb\n3\n", CODEBASE_NEITHER);
    CHECK(seen.count == 1);
}

static void a_side_wins_only_where_there_is_a_conflict(void)
{
    const char *base = "1\n2\n3\n4\n5\n", *ours = "a\n2\nour\n4\n5\n",
               *theirs = "1\n2\ntheir\n4\nb\n";

    CHECK_TEXT(merged(base, ours, theirs, CODEBASE_OURS), "a\n2\nour\n4\nb\n");
    CHECK_TEXT(merged(base, ours, theirs, CODEBASE_THEIRS), "a\n2\ntheir\n4\nb\n");
    CHECK_TEXT(merged(base, ours, theirs, CODEBASE_MARKERS),
               "a\n2\n<<<<<<< ours\nour\n=======\ntheir\n>>>>>>> s2\n4\nb\n");
    CHECK_TEXT(merged("1", "a", "b", CODEBASE_MARKERS),
               "<<<<<<< ours\na\n=======\nb\n>>>>>>> s2\n");
    CHECK_TEXT(merged("0\n", "same\na\nend\n", "same\nb\nend\n", CODEBASE_MARKERS),
               "same\n<<<<<<< ours\na\n=======\nb\n>>>>>>> s2\nend\n");
}

/* --- random texts ----------------------------------------------------------------------------- */

static void text_make(char ret[TEXT_BYTES], unsigned words)
{
    size_t len = 0;

    ret[0] = '\0';
    for (unsigned i = pick(LINES_RANDOM); i > 0; i--)
        len += (size_t)snprintf(ret + len, TEXT_BYTES - len, "%c\n", 'a' + pick(words));
    if (len > 0 && pick(4) == 0)
        ret[len - 1] = '\0'; /* no newline at the end */
}

/* The longest common subsequence, in the plain way. */
static size_t longest(const struct lines *a, const struct lines *b)
{
    static size_t best[LINES_RANDOM + 1][LINES_RANDOM + 1];

    for (size_t i = 0; i <= a->count; i++)
        for (size_t j = 0; j <= b->count; j++)
            if (i == 0 || j == 0)
                best[i][j] = 0;
            else if (a->items[i - 1].number == b->items[j - 1].number)
                best[i][j] = best[i - 1][j - 1] + 1;
            else
                best[i][j] = best[i - 1][j] > best[i][j - 1] ? best[i - 1][j] : best[i][j - 1];
    return best[a->count][b->count];
}

static void pairs_check(const char *a, const char *b)
{
    const struct text texts[] = { text_of(a), text_of(b) };
    struct lines lines[2];
    int32_t pairs[LINES_RANDOM + 1], last = -1;
    size_t count = 0;

    CHECK(lines_split(texts, 2, lines) == 0);
    CHECK(lines_match(&lines[0], &lines[1], pairs) == 0);
    for (size_t i = 0; i < lines[0].count; i++) {
        if (pairs[i] < 0)
            continue;
        CHECK(pairs[i] > last && (size_t)pairs[i] < lines[1].count);
        CHECK(lines[0].items[i].number == lines[1].items[pairs[i]].number);
        last = pairs[i];
        count++;
    }
    CHECK(count == longest(&lines[0], &lines[1]), "(%zu pairs of\n%s\nand\n%s)", count, a, b);
    lines_done(&lines[0]);
    lines_done(&lines[1]);
}

static void random_texts_keep_the_laws_of_merges(void)
{
    const char *rounds = getenv("TEXT_MERGE_ROUNDS"), *from = getenv("TEXT_MERGE_SEED");
    const unsigned count = rounds ? (unsigned)strtoul(rounds, NULL, 10) : ROUNDS_SHORT;
    char a[TEXT_BYTES], b[TEXT_BYTES], c[TEXT_BYTES], first[3 * TEXT_BYTES];

    seed = from ? (unsigned)strtoul(from, NULL, 10) : (unsigned)time(NULL);
    (void)printf("TEXT_MERGE_SEED=%u\n", seed);
    for (unsigned round = 0; round < count; round++) {
        const unsigned words = 2 + pick(8);
        unsigned conflicts;

        text_make(a, words);
        text_make(b, words);
        text_make(c, words);
        pairs_check(a, b);
        CHECK_TEXT(merged(a, a, b, CODEBASE_NEITHER), b);
        CHECK_TEXT(merged(a, b, a, CODEBASE_NEITHER), b);
        CHECK_TEXT(merged(a, b, b, CODEBASE_NEITHER), b);
        (void)snprintf(first, sizeof(first), "%s", merged(a, b, c, CODEBASE_NEITHER));
        conflicts = seen.count;
        if (conflicts == 0)
            CHECK_TEXT(merged(a, c, b, CODEBASE_NEITHER), first);
        else
            (void)merged(a, c, b, CODEBASE_NEITHER);
        CHECK(seen.count == conflicts);
        (void)snprintf(first, sizeof(first), "%s", merged(a, b, c, CODEBASE_OURS));
        CHECK_TEXT(merged(a, c, b, CODEBASE_THEIRS), first);
    }
}

/* --- hostile texts ---------------------------------------------------------------------------- */

static char *many_lines(size_t count, const char *prefix)
{
    struct buf text = BUF_INIT(64 << 20);

    for (size_t i = 0; i < count; i++)
        CHECK(buf_printf(&text, "%s%zu\n", prefix, i) == 0);
    return text.data;
}

static int many_merged(const char *base, const char *ours, const char *theirs)
{
    cleanup_with(buf_done) struct buf out = BUF_INIT(64 << 20);
    const struct text_merge merge = { .base = text_of(base),
                                      .ours = text_of(ours),
                                      .theirs = text_of(theirs),
                                      .name = "",
                                      .conflict = hunk_note };

    seen.count = 0;
    return text_merge(&merge, &out);
}

static void texts_without_a_common_line_are_one_hunk(void)
{
    cleanup_free char *base = many_lines(LINES_MAX, "");
    cleanup_free char *ours = many_lines(LINES_MAX, "a");
    cleanup_free char *theirs = many_lines(LINES_MAX, "b");

    CHECK(many_merged(base, ours, theirs) == 0 && seen.count == 1);
    CHECK(many_merged(base, base, theirs) == 0 && seen.count == 0);
}

static void too_many_lines_are_refused(void)
{
    cleanup_free char *base = many_lines(LINES_MAX + 1, "");

    CHECK(many_merged(base, base, "") == -EFBIG);
}

int main(void)
{
    RUN(what_one_side_changed_is_taken);
    RUN(equal_changes_are_no_conflict);
    RUN(what_both_changed_is_a_hunk);
    RUN(changes_that_touch_are_one_hunk);
    RUN(a_side_wins_only_where_there_is_a_conflict);
    RUN(random_texts_keep_the_laws_of_merges);
    RUN(texts_without_a_common_line_are_one_hunk);
    RUN(too_many_lines_are_refused);
    return 0;
}
