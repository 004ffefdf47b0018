// SPDX-License-Identifier: Apache-2.0
/* Archives in object storage: streams come back as they were, or not at all. */
#include "base/random.h"
#include "base/text/hex.h"
#include "remote/archive/list.h"
#include "remote/archive/object.h"
#include "unit/remote/archives.h"

static void check_round_trip(const struct archive_store *store, const char *name,
                             const struct stream *stream)
{
    cleanup_with(archive_info_done) struct archive_info info = { 0 };

    (void)write_archive(store, name, stream);
    check_archive(store, name, stream);
    CHECK(archive_find(store, name, &info, &err) == 0, "(%s)", err.msg);
    CHECK_TEXT(info.name, name);
    CHECK_TEXT(info.description, "{\"about\": \"a test\"}");
    CHECK(info.size == stream->len && info.created_ms > UINT64_C(1700000000000));
}

static void a_stream_comes_back_as_it_was(void)
{
    static const size_t lens[] = { 0, 1, 63, 64, 65, 256 * 1024, 256 * 1024 + 1, 5 * MIB };

    for (int i = 0; i < 2; i++) {
        for (size_t k = 0; k < ARRAY_SIZE(lens); k++) {
            cleanup_with(stream_done) struct stream stream = random_stream(k, lens[k]);
            char name[32];

            (void)snprintf(name, sizeof(name), "%s/%zu", i ? "sealed" : "plain", lens[k]);
            check_round_trip(i ? &sealed : &plain, name, &stream);
        }
    }
    CHECK(count_keys("alice/markers/") == 0);
}

static void a_long_stream_comes_back_as_it_was(void)
{
    cleanup_with(stream_done) struct stream stream = random_stream(1, 50 * MIB);
    size_t chunks;

    check_round_trip(&sealed, "long", &stream);
    chunks = count_keys("alice/chunks/");
    CHECK(chunks > 25 && chunks < 100, "(%zu)", chunks);
}

static atomic_int gets;

static void got_count(const char *key, struct buf *content)
{
    (void)key;
    (void)content;
    atomic_fetch_add(&gets, 1);
}

static void what_repeats_is_stored_once_and_small(void)
{
    cleanup_with(stream_done) struct stream zeros = { .bytes = xcalloc(1, 50 * MIB),
                                                      .len = 50 * MIB };
    uint64_t stored;

    hooks.got = got_count;
    stored = write_archive(&sealed, "zeros", &zeros);
    hooks.got = NULL;
    check_archive(&sealed, "zeros", &zeros);
    /* The full chunk, the rest, the references and the list, one time each. */
    CHECK(atomic_load(&gets) == 4, "(%d)", atomic_load(&gets));
    CHECK(stored < 8192, "(%llu)", (unsigned long long)stored);
    CHECK(count_keys("alice/chunks/") == 3);
}

static void an_insertion_changes_few_chunks(void)
{
    enum { LEN = 40 * MIB };
    cleanup_with(stream_done) struct stream stream = random_stream(2, LEN);
    cleanup_with(stream_done) struct stream longer = { .bytes = xcalloc(1, LEN + 1),
                                                       .len = LEN + 1 };

    for (int i = 0; i < 2; i++) {
        const struct archive_store *store = i ? &sealed : &plain;
        uint64_t added;

        memcpy(longer.bytes, stream.bytes, LEN / 2);
        longer.bytes[LEN / 2] = 'x';
        memcpy(longer.bytes + LEN / 2 + 1, stream.bytes + LEN / 2, LEN / 2);
        CHECK(write_archive(store, i ? "s/1" : "p/1", &stream) > LEN);
        added = write_archive(store, i ? "s/2" : "p/2", &longer);
        CHECK(added > 0 && added < LEN / 5, "(%llu)", (unsigned long long)added);
        check_archive(store, i ? "s/2" : "p/2", &longer);
        CHECK(write_archive(store, i ? "s/3" : "p/3", &stream) == 0);
    }
}

static void check_no_name_is_shared(const char *prefix, const char *other)
{
    cleanup_with(keys_done) struct keys keys = keys_of(prefix), others = keys_of(other);

    CHECK(keys.count > 0 && others.count > 0);
    for (size_t i = 0; i < keys.count; i++) {
        for (size_t k = 0; k < others.count; k++)
            CHECK(strcmp(strrchr(keys.keys[i], '/'), strrchr(others.keys[k], '/')) != 0);
    }
}

static void owners_and_keys_share_nothing(void)
{
    static const uint8_t other_key[ARCHIVE_KEY_LEN] = "another";
    cleanup_with(stream_done) struct stream stream = random_stream(3, 6 * MIB);
    struct archive_store bob = sealed, other = sealed;
    struct archive_info info;
    uint64_t stored = write_archive(&sealed, "one", &stream);

    bob.owner = "bob";
    CHECK(write_archive(&bob, "one", &stream) >= 6 * MIB && stored >= 6 * MIB);
    check_no_name_is_shared("alice/chunks/", "bob/chunks/");
    other.key = other_key;
    CHECK(write_archive(&other, "two", &stream) >= 6 * MIB);
    CHECK(archive_find(&other, "one", &info, &err) < 0 && err.kind == ERR_INTERNAL);
    CHECK(strstr(err.msg, "another key"), "(%s)", err.msg);
    CHECK(try_read(&other, "one", &stream, &err) < 0 && err.kind == ERR_INTERNAL);
    CHECK(try_read(&plain, "one", &stream, &err) < 0 && strstr(err.msg, "no key"), "(%s)", err.msg);
    (void)write_archive(&plain, "three", &stream);
    CHECK(try_read(&sealed, "three", &stream, &err) < 0 && strstr(err.msg, "not sealed"), "(%s)",
          err.msg);
}

/* Where chunks end does not depend on the content alone. */
static void lengths_of_chunks_depend_on_the_key(void)
{
    static const uint8_t other_key[ARCHIVE_KEY_LEN] = "another";
    cleanup_with(stream_done) struct stream stream = random_stream(4, 24 * MIB);
    struct archive_store other = sealed;
    uint64_t sizes[2][KEYS_MAX];
    size_t counts[2], same = 0;

    other.owner = "bob";
    other.key = other_key;
    for (int i = 0; i < 2; i++) {
        const struct archive_store *store = i ? &other : &sealed;
        cleanup_free char *prefix = xasprintf("%s/chunks/", store->owner);
        cleanup_with(keys_done) struct keys keys = { 0 };

        (void)write_archive(store, "x", &stream);
        keys = keys_of(prefix);
        counts[i] = keys.count;
        for (size_t k = 0; k < keys.count; k++)
            CHECK(remote_size(inner, keys.keys[k], &sizes[i][k], &err) == 0);
    }
    CHECK(counts[0] > 8 && counts[1] > 8);
    for (size_t i = 0; i < counts[0]; i++) {
        for (size_t k = 0; k < counts[1]; k++)
            same += sizes[0][i] == sizes[1][k];
    }
    CHECK(same <= 1, "(%zu)", same);
}

static void nothing_is_stored_in_plain_text(void)
{
    static const char secret[] = "correct horse battery staple";
    cleanup_with(stream_done) struct stream stream = random_stream(5, 3 * MIB);
    cleanup_with(keys_done) struct keys keys = { 0 };

    for (size_t i = 0; i + sizeof(secret) < stream.len; i += 4096)
        memcpy(stream.bytes + i, secret, sizeof(secret));
    (void)write_archive(&sealed, "x", &stream);
    keys = keys_of("");
    CHECK(keys.count > 2);
    for (size_t i = 0; i < keys.count; i++) {
        cleanup_with(buf_done) struct buf object = object_get(keys.keys[i]);

        CHECK(!memmem(object.data, object.len, secret, 12));
        CHECK(!memmem(object.data, object.len, "about", 5));
        CHECK(!memmem(object.data, object.len, stream.bytes + 100, 8));
    }
}

/* A second sealing of the same chunk has nothing in common with the first. */
static void a_chunk_is_sealed_differently_each_time(void)
{
    cleanup_with(stream_done) struct stream stream = random_stream(6, 1000);
    cleanup_with(keys_done) struct keys keys = { 0 };

    (void)write_archive(&sealed, "1", &stream);
    keys = keys_of("alice/chunks/");
    CHECK(keys.count == 2);
    for (size_t i = 0; i < keys.count; i++) {
        cleanup_with(buf_done) struct buf first = object_get(keys.keys[i]);
        cleanup_with(buf_done) struct buf second = BUF_INIT(REMOTE_OBJECT_MAX);
        size_t same = 0;
        char name[32];

        CHECK(remote_remove(inner, keys.keys[i], &err) == 0);
        (void)snprintf(name, sizeof(name), "again%zu", i);
        (void)write_archive(&sealed, name, &stream);
        CHECK(remote_get(inner, keys.keys[i], &second, &err) == 0, "(%s)", err.msg);
        CHECK(first.len == second.len);
        for (size_t k = 12; k < first.len; k++)
            same += first.data[k] == second.data[k];
        CHECK(same < first.len / 8, "(%zu of %zu)", same, first.len);
    }
}

/* --- damage ----------------------------------------------------------------------------------- */

static struct stream damaged_stream;
static const struct archive_store *damaged_store;

static void check_refused(const char *what)
{
    struct err error = { 0 };

    CHECK(try_read(damaged_store, "a/2", &damaged_stream, &error) < 0, "(%s)", what);
    CHECK(error.kind == ERR_INTERNAL, "(%s: %s)", what, error.msg);
}

/* Changes one object in every way. */
static void object_damage(const char *key, bool is_chunk)
{
    cleanup_with(buf_done) struct buf object = object_get(key);
    size_t places[] = { 0, 4, 5, 6, 7, 8, 11, 12, 23, 24, object.len / 2, object.len - 1 };

    for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
        object.data[places[i]] ^= 4;
        object_put(key, object.data, object.len);
        check_refused(key);
        object.data[places[i]] ^= 4;
    }
    for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
        object_put(key, object.data, places[i]);
        check_refused(key);
    }
    CHECK(buf_add(&object, "", 1) == 0);
    object_put(key, object.data, object.len);
    check_refused(key);
    if (is_chunk) {
        CHECK(remote_remove(inner, key, &err) == 0);
        check_refused(key);
    }
    object_put(key, object.data, object.len - 1);
    check_archive(damaged_store, "a/2", &damaged_stream);
}

/* Puts each object in the place of each other one. */
static void objects_swap(const struct keys *keys)
{
    for (size_t i = 0; i < keys->count; i++) {
        cleanup_with(buf_done) struct buf first = object_get(keys->keys[i]);

        for (size_t k = 0; k < keys->count; k++) {
            cleanup_with(buf_done) struct buf second = object_get(keys->keys[k]);

            if (i == k)
                continue;
            object_put(keys->keys[i], second.data, second.len);
            check_refused(keys->keys[i]);
            object_put(keys->keys[k], first.data, first.len);
            check_refused(keys->keys[k]);
            object_put(keys->keys[i], first.data, first.len);
            object_put(keys->keys[k], second.data, second.len);
        }
    }
    check_archive(damaged_store, "a/2", &damaged_stream);
}

static void damage_everything(const struct archive_store *store)
{
    cleanup_with(stream_done) struct stream stream = random_stream(7, 2 * MIB);
    cleanup_with(keys_done) struct keys chunks = { 0 };

    damaged_store = store;
    damaged_stream = stream;
    (void)write_archive(store, "a/2", &stream);
    chunks = keys_of("alice/chunks/");
    CHECK(chunks.count >= 2);
    for (size_t i = 0; i < chunks.count; i++)
        object_damage(chunks.keys[i], true);
    object_damage("alice/archives/a/2", false);
    objects_swap(&chunks);
}

static void damage_is_refused(void)
{
    damage_everything(&plain);
}

static void damage_of_what_is_sealed_is_refused(void)
{
    damage_everything(&sealed);
}

/* The list of an older archive, of another one and of another owner. */
static void a_list_from_elsewhere_is_refused(void)
{
    static const char *const from[] = { "alice/archives/a/1", "alice/archives/b/2",
                                        "bob/archives/a/2" };
    cleanup_with(stream_done) struct stream stream = random_stream(8, MIB);
    struct archive_store bob[2] = { plain, sealed };

    damaged_stream = stream;
    for (int i = 0; i < 2; i++) {
        damaged_store = i ? &sealed : &plain;
        bob[i].owner = "bob";
        (void)write_archive(damaged_store, "a/1", &stream);
        (void)write_archive(damaged_store, "a/2", &stream);
        (void)write_archive(damaged_store, "b/2", &stream);
        (void)write_archive(&bob[i], "a/2", &stream);
        for (size_t k = 0; k < ARRAY_SIZE(from); k++) {
            cleanup_with(buf_done) struct buf list = object_get(from[k]);

            object_put("alice/archives/a/2", list.data, list.len);
            check_refused(from[k]);
        }
        for (size_t k = 0; k < ARRAY_SIZE(from); k++)
            CHECK(remote_remove(inner, from[k], &err) == 0);
        CHECK(remote_remove(inner, "alice/archives/a/2", &err) == 0);
    }
}

static void a_damaged_chunk_is_replaced_when_it_is_written_again(void)
{
    cleanup_with(stream_done) struct stream stream = random_stream(9, 3 * MIB);
    cleanup_with(keys_done) struct keys keys = { 0 };

    (void)write_archive(&sealed, "1", &stream);
    keys = keys_of("alice/chunks/");
    for (size_t i = 0; i < keys.count; i++)
        object_put(keys.keys[i], "garbage", 7);
    CHECK(try_read(&sealed, "1", &stream, &err) < 0);
    CHECK(write_archive(&sealed, "2", &stream) > 3 * MIB);
    check_archive(&sealed, "1", &stream);
    check_archive(&sealed, "2", &stream);
}

/* --- objects ---------------------------------------------------------------------------------- */

static void an_object_cannot_be_a_bomb(void)
{
    cleanup_with(buf_done) struct buf object = BUF_INIT(ARCHIVE_OBJECT_MAX);
    cleanup_with(buf_done) struct buf content = BUF_INIT(ARCHIVE_CHUNK_MAX);
    cleanup_free uint8_t *zeros = xcalloc(1, ARCHIVE_CHUNK_MAX + 1);
    enum { LEN = ARCHIVE_CHUNK_MAX - 1 };
    static const uint32_t lies[] = { 0, 1, LEN - 1, LEN + 1, ARCHIVE_CHUNK_MAX + 1, UINT32_MAX };
    struct archive_codec *codec = archive_codec_new();
    struct archive_keys keys = { .is_sealed = false };
    struct archive_subject subject = { .keys = &keys, .kind = ARCHIVE_CHUNK, .id = one_key };

    CHECK(archive_object_make(codec, &subject, zeros, ARCHIVE_CHUNK_MAX + 1, &object) == -ENOBUFS);
    CHECK(archive_object_make(codec, &subject, zeros, LEN, &object) == 0);
    CHECK(object.len < 4096);
    CHECK(archive_object_open(codec, &subject, object.data, object.len, &content) == 0);
    CHECK(content.len == LEN);
    for (size_t i = 0; i < ARRAY_SIZE(lies); i++) {
        struct buf small = BUF_INIT(ARCHIVE_CHUNK_MAX);

        memcpy(object.data + 8, &lies[i], 4);
        CHECK(archive_object_open(codec, &subject, object.data, object.len, &small) == -EBADMSG);
        CHECK(small.cap <= 2 * ARCHIVE_CHUNK_MAX && small.len == 0);
        buf_done(&small);
    }
    archive_codec_free(codec);
}

/* The list of 65,537 references to one chunk has two pieces. */
static void a_list_may_have_several_pieces(void)
{
    enum { COUNT = ARCHIVE_PIECE_REFS + 1 };
    cleanup_with(buf_done) struct buf refs = BUF_INIT(COUNT * ARCHIVE_REF_LEN);
    cleanup_with(buf_done) struct buf content = BUF_INIT(8);
    cleanup_with(archive_list_done) struct archive_list list = { .size = COUNT };
    cleanup_with(stream_done) struct stream stream = { xcalloc(1, COUNT), COUNT };
    struct archive_session session;
    struct archive_scratch scratch;
    struct archive_ref ref;
    uint8_t encoded[ARCHIVE_REF_LEN];
    uint64_t stored;

    CHECK(archive_session_open(&sealed, &session, &err) == 0);
    archive_scratch_init(&scratch);
    list.description = xstrdup("");
    CHECK(buf_add(&content, "", 1) == 0);
    CHECK(archive_chunk_identify(&session, &content, &ref, &err) == 0);
    CHECK(archive_chunk_store(&session, &scratch, &ref, &content, &stored, &err) == 0);
    archive_ref_encode(&ref, encoded);
    for (size_t i = 0; i < COUNT; i++)
        CHECK(buf_add(&refs, encoded, sizeof(encoded)) == 0);
    CHECK(archive_pieces_store(&session, &scratch, &refs, &list, &err) == 0, "(%s)", err.msg);
    CHECK(list.pieces == 2 && list.chunks == COUNT);
    CHECK(archive_list_put(&session, &scratch, "long", &list, &err) == 0, "(%s)", err.msg);
    check_archive(&sealed, "long", &stream);
    CHECK(collect(&sealed) == 0);
    list.size++;
    CHECK(archive_list_put(&session, &scratch, "wrong", &list, &err) == 0, "(%s)", err.msg);
    CHECK(try_read(&sealed, "wrong", &stream, &err) < 0 && err.kind == ERR_INTERNAL);
    archive_scratch_done(&scratch);
    archive_session_done(&session);
}

/* --- names ------------------------------------------------------------------------------------ */

static void a_name_is_taken_once(void)
{
    cleanup_with(stream_done) struct stream one = random_stream(10, 1000);
    cleanup_with(stream_done) struct stream two = random_stream(11, 1000);

    (void)write_archive(&sealed, "a/b", &one);
    CHECK(try_write(&sealed, "a/b", &two, NULL, &err) < 0 && err.kind == ERR_EXISTS, "(%s)",
          err.msg);
    check_archive(&sealed, "a/b", &one);
    CHECK(collect(&sealed) == 2);
    check_archive(&sealed, "a/b", &one);
}

static void names_that_are_none_are_refused(void)
{
    static const char *const refused[] = { "", "/", "../x", "a//b", "a b", "a/..", "x/" };
    cleanup_with(stream_done) struct stream stream = random_stream(12, 10);
    struct archive_store store = sealed;
    char name[ARCHIVE_NAME_MAX + 2];

    for (size_t i = 0; i < ARRAY_SIZE(refused); i++) {
        CHECK(try_write(&sealed, refused[i], &stream, NULL, &err) < 0 && err.kind == ERR_INVALID);
        CHECK(try_read(&sealed, refused[i], &stream, &err) < 0 && err.kind == ERR_INVALID);
        CHECK(archive_remove(&sealed, refused[i], &err) < 0 && err.kind == ERR_INVALID);
        store.owner = refused[i];
        CHECK(try_write(&store, "x", &stream, NULL, &err) < 0 && err.kind == ERR_INVALID);
        store.owner = sealed.owner;
        store.host = refused[i];
        CHECK(try_write(&store, "x", &stream, NULL, &err) < 0 && err.kind == ERR_INVALID);
        store.host = sealed.host;
    }
    memset(name, 'x', sizeof(name));
    name[ARCHIVE_NAME_MAX + 1] = '\0';
    CHECK(try_write(&sealed, name, &stream, NULL, &err) < 0 && err.kind == ERR_INVALID);
    name[ARCHIVE_NAME_MAX] = '\0';
    check_round_trip(&sealed, name, &stream);
    CHECK(archive_find(&sealed, "nothing", &(struct archive_info){ 0 }, &err) < 0 &&
          err.kind == ERR_NOT_FOUND);
    CHECK(try_read(&sealed, "nothing", &stream, &err) < 0 && err.kind == ERR_NOT_FOUND);
    CHECK(archive_remove(&sealed, "nothing", &err) == 0);
}

static void a_description_has_a_limit(void)
{
    cleanup_free char *text = xcalloc(1, ARCHIVE_DESCRIPTION_MAX + 2);
    cleanup_with(archive_info_done) struct archive_info info = { 0 };
    struct archive_writer *writer = NULL;

    memset(text, 'd', ARCHIVE_DESCRIPTION_MAX + 1);
    CHECK(archive_writer_open(&sealed, &writer, &err) == 0, "(%s)", err.msg);
    CHECK(archive_writer_finish(writer, "x", text, NULL, &err) < 0 && err.kind == ERR_INVALID);
    text[ARCHIVE_DESCRIPTION_MAX] = '\0';
    CHECK(archive_writer_finish(writer, "x", text, NULL, &err) == 0, "(%s)", err.msg);
    archive_writer_close(writer);
    CHECK(archive_find(&sealed, "x", &info, &err) == 0, "(%s)", err.msg);
    CHECK_TEXT(info.description, text);
}

struct found {
    unsigned count, damaged, stop_at;
    char name[64];
};

static int found_add(void *context, const struct archive_info *info)
{
    struct found *found = context;

    CHECK(info->is_damaged || info->size == 1000);
    CHECK_TEXT(info->description, info->is_damaged ? "" : "{\"about\": \"a test\"}");
    found->damaged += info->is_damaged;
    (void)snprintf(found->name, sizeof(found->name), "%s", info->name);
    return ++found->count == found->stop_at ? -ECANCELED : 0;
}

static struct found find_all(const char *prefix)
{
    struct found found = { .count = 0 };

    CHECK(archive_list(&sealed, prefix, found_add, &found, &err) == 0, "(%s)", err.msg);
    return found;
}

static void a_list_of_archives_has_the_damaged_too(void)
{
    cleanup_with(stream_done) struct stream stream = random_stream(13, 1000);
    struct found found = { .stop_at = 2 };

    (void)write_archive(&sealed, "a/1", &stream);
    (void)write_archive(&sealed, "a/2", &stream);
    (void)write_archive(&sealed, "b", &stream);
    CHECK(find_all("").count == 3 && find_all("a/").count == 2 && find_all("x").count == 0);
    CHECK_TEXT(find_all("b").name, "b");
    CHECK(archive_list(&sealed, "", found_add, &found, &err) == -ECANCELED && found.count == 2);
    object_put("alice/archives/a/1", "x", 1);
    CHECK(find_all("").count == 3 && find_all("").damaged == 1);
    CHECK(archive_remove(&sealed, "a/1", &err) == 0);
    CHECK(find_all("").count == 2 && find_all("").damaged == 0);
}

static int data_stop(void *context, const void *data, size_t len)
{
    (void)context;
    (void)data;
    return len > 0 ? -ECANCELED : 0;
}

static void a_read_ends_where_the_caller_wants(void)
{
    cleanup_with(stream_done) struct stream stream = random_stream(14, 10 * MIB);

    (void)write_archive(&plain, "x", &stream);
    err = (struct err){ 0 };
    CHECK(archive_read(&plain, "x", data_stop, NULL, &err) == -ECANCELED);
    CHECK(err.kind == ERR_NONE);
}

int main(void)
{
    RUN_WITH_STORAGE(a_stream_comes_back_as_it_was);
    RUN_WITH_STORAGE(a_long_stream_comes_back_as_it_was);
    RUN_WITH_STORAGE(what_repeats_is_stored_once_and_small);
    RUN_WITH_STORAGE(an_insertion_changes_few_chunks);
    RUN_WITH_STORAGE(owners_and_keys_share_nothing);
    RUN_WITH_STORAGE(lengths_of_chunks_depend_on_the_key);
    RUN_WITH_STORAGE(nothing_is_stored_in_plain_text);
    RUN_WITH_STORAGE(a_chunk_is_sealed_differently_each_time);
    RUN_WITH_STORAGE(damage_is_refused);
    RUN_WITH_STORAGE(damage_of_what_is_sealed_is_refused);
    RUN_WITH_STORAGE(a_list_from_elsewhere_is_refused);
    RUN_WITH_STORAGE(a_damaged_chunk_is_replaced_when_it_is_written_again);
    RUN(an_object_cannot_be_a_bomb);
    RUN_WITH_STORAGE(a_list_may_have_several_pieces);
    RUN_WITH_STORAGE(a_name_is_taken_once);
    RUN_WITH_STORAGE(names_that_are_none_are_refused);
    RUN_WITH_STORAGE(a_description_has_a_limit);
    RUN_WITH_STORAGE(a_list_of_archives_has_the_damaged_too);
    RUN_WITH_STORAGE(a_read_ends_where_the_caller_wants);
    return 0;
}
