// SPDX-License-Identifier: Apache-2.0
/* What a storage may hold in the place of a chunk or a list: refused, or a content within its
 * bounds; a list that is taken is written with the same bytes again. */
#include <assert.h>
#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "base/cleanup.h"
#include "remote/archive/list.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void list_check(const void *data, size_t size)
{
    cleanup_with(buf_done) struct buf again = BUF_INIT(ARCHIVE_LIST_MAX);
    cleanup_with(archive_list_done) struct archive_list list = { 0 };

    if (!archive_list_decode(data, size, &list))
        return;
    assert(list.size <= ARCHIVE_SIZE_MAX && list.chunks <= ARCHIVE_CHUNKS_MAX);
    assert(list.pieces <= ARCHIVE_PIECES_MAX);
    assert(strlen(list.description) <= ARCHIVE_DESCRIPTION_MAX);
    assert(archive_list_encode(&list, &again) == 0);
    assert(again.len == size && memcmp(again.data, data, size) == 0);
}

static void object_check(const uint8_t *data, size_t size, enum archive_kind kind, bool is_sealed)
{
    static const uint8_t id[ARCHIVE_ID_LEN] = "identity";
    cleanup_with(archive_scratch_done) struct archive_scratch scratch = { 0 };
    struct archive_keys keys = { .is_sealed = is_sealed };
    struct archive_subject subject = { .keys = &keys, .kind = kind, .id = id };
    int r;

    archive_scratch_init(&scratch);
    r = archive_object_open(scratch.codec, &subject, data, size, &scratch.content);
    assert(r == 0 || r == -EBADMSG || r == -ENOKEY);
    assert(r == 0 || scratch.content.len == 0);
    assert(scratch.content.len <= ARCHIVE_CHUNK_MAX);
    if (r == 0 && kind == ARCHIVE_LIST)
        list_check(scratch.content.data, scratch.content.len);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    list_check(data, size);
    for (int i = 0; i < 2; i++) {
        object_check(data, size, ARCHIVE_CHUNK, i);
        object_check(data, size, ARCHIVE_LIST, i);
    }
    return 0;
}
