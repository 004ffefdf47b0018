// SPDX-License-Identifier: Apache-2.0
#include "store/codebase/settle.h"

#include <errno.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/io.h"

enum {
    TEXT_MAX = 4 << 20, /* bytes of a file that is merged as text */
    MODE_BITS = 0777,
};

static bool is_file(const struct tree_entry *entry)
{
    return entry->exists && S_ISREG(entry->st.st_mode) && entry->st.st_size <= TEXT_MAX;
}

/* Returns 1, 0 for a file that is no text, or -errno. */
static int text_read(const struct tree_entry *entry, struct buf *into)
{
    const size_t size = (size_t)entry->st.st_size;
    cleanup_close int fd = tree_entry_open(entry);
    int r = fd < 0 ? fd : buf_reserve(into, size + 1);
    ssize_t len;

    if (r < 0)
        return r == -ESTALE ? 0 : r;
    len = read_full(fd, into->data, size + 1);
    if (len < 0)
        return (int)len;
    into->len = (size_t)len;
    return into->len == size && !memchr(into->data, '\0', size);
}

/* A mode that only one side has changed is taken; false: both have. */
static bool mode_merge(const struct apply_conflict *conflict, mode_t *ret)
{
    const mode_t from = conflict->from->st.st_mode & MODE_BITS;
    const mode_t to = conflict->to->st.st_mode & MODE_BITS;
    const mode_t here = conflict->here->st.st_mode & MODE_BITS;

    *ret = here == from ? to : here;
    return here == from || to == from || here == to;
}

/* The hunks of one file on their way to its conflict, which is there once one has been found. */
struct hunks {
    struct conflicts *conflicts;
    struct conflict *conflict;
    const char *path;
    size_t count;
};

static void hunk_add(void *context, const struct text_hunk *hunk)
{
    struct hunks *hunks = context;

    if (hunks->count++ == 0)
        hunks->conflict = conflicts_add(hunks->conflicts, hunks->path, "was changed on both sides");
    if (hunks->conflict)
        conflict_add_hunk(hunks->conflicts, hunks->conflict, hunk);
}

struct texts {
    struct buf base, ours, theirs, merged;
};

static void texts_done(struct texts *texts)
{
    buf_done(&texts->base);
    buf_done(&texts->ours);
    buf_done(&texts->theirs);
    buf_done(&texts->merged);
}

static struct text text_of(const struct buf *buf)
{
    return (struct text){ buf->data, buf->len };
}

/* Returns whether the merged file is that of our side, which then stays. */
static bool is_unchanged(const struct apply_conflict *conflict, const struct texts *texts,
                         mode_t mode)
{
    const struct buf *ours = &texts->ours, *merged = &texts->merged;

    return mode == (conflict->here->st.st_mode & MODE_BITS) && ours->len == merged->len &&
           (ours->len == 0 || memcmp(ours->data, merged->data, ours->len) == 0);
}

/* Returns 1 if the conflict is settled or noted, 0 if the files are not to be merged as text, or
 * -errno. */
static int texts_merge(const struct settling *settling, const struct apply_conflict *conflict,
                       struct texts *texts, struct apply_choice *choice)
{
    struct hunks hunks = { .conflicts = settling->conflicts, .path = conflict->here->path };
    const struct text_merge merge = { .base = text_of(&texts->base),
                                      .ours = text_of(&texts->ours),
                                      .theirs = text_of(&texts->theirs),
                                      .side = settling->side,
                                      .name = settling->name,
                                      .conflict = hunk_add,
                                      .context = &hunks };
    mode_t mode;
    int r;

    if (!mode_merge(conflict, &mode))
        return 0;
    r = text_merge(&merge, &texts->merged);
    if (r < 0)
        return r == -EFBIG ? 0 : r;
    if (hunks.count > 0 || is_unchanged(conflict, texts, mode))
        return 1;
    if (buf_reserve(&texts->merged, 1) < 0)
        return -ENOMEM;
    *choice = (struct apply_choice){ .side = APPLY_TEXT,
                                     .text = TAKE_PTR(texts->merged.data),
                                     .text_len = texts->merged.len,
                                     .mode = mode };
    return 1;
}

static int files_merge(const struct settling *settling, const struct apply_conflict *conflict,
                       struct apply_choice *choice)
{
    cleanup_with(texts_done) struct texts texts = { .base = BUF_INIT(TEXT_MAX + 1),
                                                    .ours = BUF_INIT(TEXT_MAX + 1),
                                                    .theirs = BUF_INIT(TEXT_MAX + 1),
                                                    .merged = BUF_INIT(4 * (size_t)TEXT_MAX) };
    int r;

    if (!is_file(conflict->from) || !is_file(conflict->to) || !is_file(conflict->here))
        return 0;
    r = text_read(conflict->from, &texts.base);
    if (r == 1)
        r = text_read(conflict->here, &texts.ours);
    if (r == 1)
        r = text_read(conflict->to, &texts.theirs);
    return r == 1 ? texts_merge(settling, conflict, &texts, choice) : r;
}

static const char *reason_of(const struct apply_conflict *conflict)
{
    if (!conflict->from->exists)
        return "was added on both sides";
    if (!conflict->here->exists)
        return "was removed here and changed there";
    return conflict->to->exists ? "was changed on both sides"
                                : "was changed here and removed there";
}

int conflict_settle(void *context, const struct apply_conflict *conflict,
                    struct apply_choice *choice, struct err *err)
{
    const struct settling *settling = context;
    int r = files_merge(settling, conflict, choice);

    if (r < 0)
        return err_sys(err, r, "merge '%.150s'", conflict->here->path);
    if (r == 1)
        return 0;
    choice->side = settling->side == CODEBASE_THEIRS ? APPLY_TAKE : APPLY_KEEP;
    if (settling->side != CODEBASE_OURS && settling->side != CODEBASE_THEIRS)
        (void)conflicts_add(settling->conflicts, conflict->here->path, reason_of(conflict));
    return 0;
}
