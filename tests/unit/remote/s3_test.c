// SPDX-License-Identifier: Apache-2.0
/* Object storage behind the S3 API: what holds for every backend, and for this one alone.
 *
 * With S3_ENDPOINT and S3_KEY_FILE, the first part runs against another server, in whose bucket
 * S3_BUCKET it leaves objects; with S3_REFUSED too, that server must not be trusted. */
#include "unit/remote/s3_world.h"

enum { ROUNDS = 50, CLIENTS = 40, OBJECTS_MANY = 100 * 1000 };

static void check_failure(int r, enum err_kind kind, const char *text)
{
    CHECK(r < 0 && err.kind == kind, "(%s: %s)", err_kind_name(err.kind), err.msg);
    CHECK(strstr(err.msg, text), "(got '%s', wanted '%s')", err.msg, text);
}

/* --- errors ----------------------------------------------------------------------------------- */

static int call_each(int which)
{
    cleanup_with(buf_done) struct buf got = BUF_INIT(64);
    struct found found = { .count = 0 };
    uint64_t size;

    switch (which) {
    case 0:
        return remote_put(remote, "key", "x", 1, &err);
    case 1:
        return remote_get(remote, "key", &got, &err);
    case 2:
        return remote_size(remote, "key", &size, &err);
    case 3:
        return remote_remove(remote, "key", &err);
    case 4:
        return remote_put_absent(remote, "key", "x", 1, &err);
    default:
        return remote_list(remote, "", found_add, &found, &err);
    }
}

enum { CALLS = 6 };

static void errors_name_what_to_correct(void)
{
    static const struct {
        const char *command, *key, *text, *remedy;
        enum err_kind kind;
    } rows[] = {
        { NULL, S3_ACCESS ":wrong", "the secret key is wrong", "remote.key-file", ERR_DENIED },
        { NULL, "AKIAOTHER:" S3_SECRET, "the access key is unknown", "remote.key-file",
          ERR_DENIED },
        { NULL, S3_ACCESS ":" S3_SECRET ":token", "the session token is invalid", "remote.key-file",
          ERR_DENIED },
        { "region eu-west-9", NULL, "the bucket is in region 'eu-west-9', not 'us-east-1'",
          "remote.region", ERR_INVALID },
        { "clock 4000", NULL, "behind that of the server", "set the clock", ERR_UNAVAILABLE },
        { "clock -4000", NULL, "ahead of that of the server", "set the clock", ERR_UNAVAILABLE },
    };

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        if (rows[i].command)
            TELL("%s", rows[i].command);
        if (rows[i].key)
            (void)key_file_write("key", rows[i].key, 0600);
        for (int call = 0; call < CALLS; call++) {
            check_failure(call_each(call), rows[i].kind, rows[i].text);
            CHECK(strstr(err_remedy_of(&err), rows[i].remedy), "(%s)", err_remedy_of(&err));
            CHECK(strstr(err.msg, call == CALLS - 1 ? "list objects" : "object 'key'"), "(%s)",
                  err.msg);
        }
        (void)key_file_write("key", S3_ACCESS ":" S3_SECRET, 0600);
        TELL("region us-east-1");
        TELL("clock 0");
    }
    put("key", "x");
}

static void a_missing_bucket_is_no_missing_object(void)
{
    const struct remote_config config = config_of("s3://holt-other");
    struct remote *first = remote;

    remote = open_with(&config);
    for (int call = 0; call < CALLS; call++)
        check_failure(call_each(call), ERR_INVALID, "the bucket does not exist");
    remote_close(remote);
    remote = first;
}

static void codes_of_servers_have_meanings(void)
{
    static const struct {
        const char *fault, *text;
        enum err_kind kind;
    } rows[] = {
        { "403 AccessDenied", "access denied", ERR_DENIED },
        { "400 ExpiredToken", "the session token has expired", ERR_DENIED },
        { "403 InvalidObjectState", "archived", ERR_BUSY },
        { "507 XMinioStorageFull", "no space left", ERR_EXHAUSTED },
        { "403 QuotaExceeded", "no space left", ERR_EXHAUSTED },
        { "400 TooFunny", "TooFunny it is: HTTP 400 TooFunny", ERR_INVALID },
        { "403 TooFunny", "TooFunny it is", ERR_DENIED },
        { "405", "HTTP 405, not as an S3 API does", ERR_INVALID },
        { "302", "redirects to another address", ERR_INVALID },
    };

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        unsigned before = requests();

        TELL("fault 1 status %s", rows[i].fault);
        check_failure(remote_put(remote, "key", "x", 1, &err), rows[i].kind, rows[i].text);
        CHECK((err.cause == CAUSE_NO_SPACE) == (rows[i].kind == ERR_EXHAUSTED));
        CHECK(requests() == before + 1, "(%s)", rows[i].fault);
    }
    TELL("fault 1 region ap-south-2");
    check_failure(remote_put(remote, "key", "x", 1, &err), ERR_INVALID, "region 'ap-south-2'");
}

static void answers_of_other_servers_are_no_success(void)
{
    cleanup_with(buf_done) struct buf got = BUF_INIT(REMOTE_OBJECT_MAX);
    uint64_t size;

    TELL("fault 1 html 200");
    check_failure(remote_put(remote, "key", "x", 1, &err), ERR_UNAVAILABLE, "HTTP 200");
    TELL("fault 1 html 404");
    check_failure(remote_get(remote, "key", &got, &err), ERR_INVALID, "not as an S3 API does");
    TELL("fault 2 html 404");
    check_failure(remote_size(remote, "key", &size, &err), ERR_INVALID, "not as an S3 API does");
    TELL("fault 1 html 404");
    check_failure(remote_remove(remote, "key", &err), ERR_INVALID, "not as an S3 API does");
    TELL("fault 1 html 200");
    check_failure(remote_list(remote, "", found_add, NULL, &err), ERR_INVALID, "no list");
    CHECK(got.len == 0);
}

static void redirects_are_not_followed(void)
{
    struct server other;

    server_start(&other);
    for (int call = 0; call < CALLS; call++) {
        TELL("fault 2 redirect %s", other.endpoint);
        check_failure(call_each(call), ERR_INVALID, "redirects to another address");
        /* HEAD is followed by a request that tells more. */
        if (call != 2 && call != 4)
            (void)call_each(call);
    }
    CHECK_TEXT(ask(&other, "connections"), "0");
    server_stop(&other);
}

/* --- failures that may pass ------------------------------------------------------------------- */

static void failures_that_may_pass_are_tried_again(void)
{
    static const char *const faults[] = {
        "status 503 SlowDown",
        "status 429",
        "status 502",
        "status 504",
        "close",
        "status 400 RequestTimeout",
        "status 500 X",
        "status 409 OperationAborted",
    };

    for (size_t i = 0; i < ARRAY_SIZE(faults); i++) {
        unsigned before = requests();

        TELL("fault 1 %s", faults[i]);
        put("key", faults[i]);
        CHECK(requests() == before + 2, "(%s)", faults[i]);
    }
    TELL("fault 2 close");
    check_object("key", faults[ARRAY_SIZE(faults) - 1]);
    TELL("fault 1 status 503 SlowDown 1"); /* Retry-After */
    CHECK(list("k").count == 1);
    TELL("fault 1 close");
    CHECK(remote_remove(remote, "key", &err) == 0, "(%s)", err.msg);
}

static void a_failure_that_does_not_pass_is_told(void)
{
    unsigned before = requests();

    TELL("fault 100 status 503 SlowDown");
    check_failure(remote_put(remote, "key", "x", 1, &err), ERR_UNAVAILABLE,
                  "SlowDown it is: HTTP 503 SlowDown");
    CHECK(requests() == before + 6, "(%u)", requests() - before);
    CHECK(err_is_retryable(&err));
}

static void a_server_that_is_gone_is_told(void)
{
    struct remote_config config = config_of("s3://" S3_BUCKET);
    struct remote *first = remote;
    struct server gone;

    server_start(&gone);
    config.endpoint = gone.endpoint;
    remote = open_with(&config);
    server_stop(&gone);
    check_failure(remote_put(remote, "key", "x", 1, &err), ERR_UNAVAILABLE, "Failed to connect");
    remote_close(remote);
    remote = first;
}

static void a_damaged_or_cut_object_is_sent_again(void)
{
    put("key", "0123456789");
    TELL("fault 1 cut");
    check_object("key", "0123456789");
    TELL("fault 1 damage");
    put("key", "9876543210");
    check_object("key", "9876543210");
}

static void an_object_without_a_length_is_not_whole(void)
{
    cleanup_with(buf_done) struct buf got = BUF_INIT(REMOTE_OBJECT_MAX);

    CHECK(buf_add_str(&got, "before") == 0);
    TELL("fault 1 bare x");
    check_failure(remote_get(remote, "key", &got, &err), ERR_INVALID, "without its length");
    CHECK_TEXT(got.data, "before");
}

static void silence_is_ended(void)
{
    put("key", "0123456789");
    TELL("fault 1 silence");
    check_object("key", "0123456789");
    TELL("fault 1 trickle");
    check_object("key", "0123456789");
}

static void a_lost_reply_does_not_lose_a_claim(void)
{
    /* With a kept connection, libcurl tries again by itself. */
    for (int is_kept = 0; is_kept < 2; is_kept++) {
        char key[32];

        put("first", "x"); /* the bucket is known, so a claim is HEAD and PUT */
        (void)snprintf(key, sizeof(key), "claim/%d", is_kept);
        TELL("fault 1 %s", is_kept ? "none" : "last");
        TELL("fault 1 lost");
        CHECK(remote_put_absent(remote, key, "mine", 4, &err) == 0, "(%s)", err.msg);
        check_object(key, "mine");
        (void)snprintf(key, sizeof(key), "claim/other/%d", is_kept);
        TELL("fault 1 %s", is_kept ? "none" : "last");
        TELL("fault 1 stolen");
        CHECK(remote_put_absent(remote, key, "mine", 4, &err) < 0 && err.kind == ERR_EXISTS, "(%s)",
              err.msg);
        check_object(key, "stolen");
    }
    TELL("fault 1 lost");
    put("key", "x");
    TELL("fault 1 lost");
    CHECK(remote_remove(remote, "key", &err) == 0, "(%s)", err.msg);
    CHECK(is_missing("key"));
}

static void servers_without_conditions_are_asked_first(void)
{
    static const char *const conditions[] = { "ignore", "refuse" };

    for (size_t i = 0; i < ARRAY_SIZE(conditions); i++) {
        unsigned before;

        put("first", "x"); /* the bucket is known */
        TELL("conditions %s", conditions[i]);
        before = requests();
        CHECK(remote_put_absent(remote, "claim", "one", 3, &err) == 0, "(%s)", err.msg);
        CHECK(requests() == before + 2 + i, "(%u)", requests() - before);
        CHECK(remote_put_absent(remote, "claim", "two", 3, &err) < 0 && err.kind == ERR_EXISTS);
        check_object("claim", "one");
        CHECK(remote_remove(remote, "claim", &err) == 0);
    }
}

static void a_refusal_ends_the_upload(void)
{
    static char bytes[REMOTE_OBJECT_MAX];

    TELL("fault 1 early");
    check_failure(remote_put(remote, "key", bytes, sizeof(bytes), &err), ERR_DENIED,
                  "access denied");
    CHECK(requests() == 1);
}

/* --- hostile replies -------------------------------------------------------------------------- */

static void replies_are_bounded(void)
{
    static const char *const endless[] = { "endless", "headers", "huge 16777217" };
    cleanup_with(buf_done) struct buf got = BUF_INIT(64 * 1024 * 1024);

    for (size_t i = 0; i < ARRAY_SIZE(endless); i++) {
        TELL("fault 1 %s", endless[i]);
        CHECK(remote_get(remote, "key", &got, &err) < 0 && got.len == 0, "(%s)", endless[i]);
        CHECK(strcmp(endless[i], "headers") == 0 || err.kind == ERR_EXHAUSTED, "(%s: %s)",
              endless[i], err.msg);
        TELL("fault 1 %s", endless[i]);
        CHECK(remote_list(remote, "", found_add, NULL, &err) < 0, "(%s)", endless[i]);
    }
    CHECK(got.cap <= 2 * REMOTE_OBJECT_MAX + 1, "(%zu)", got.cap);
    TELL("fault 1 error");
    check_failure(remote_get(remote, "key", &got, &err), ERR_DENIED, "access denied");
    TELL("fault 1 headers");
    check_failure(remote_put(remote, "key", "x", 1, &err), ERR_UNAVAILABLE, "http://");
}

#define LIST(inner) "<ListBucketResult>" inner "</ListBucketResult>"
#define OBJECT(inner) LIST("<IsTruncated>false</IsTruncated><Contents>" inner "</Contents>")
#define REST "<Size>1</Size><LastModified>2026-01-01T00:00:00Z</LastModified>"

static void absurd_lists_are_refused(void)
{
    static const char *const pages[] = {
        "",
        "x",
        "<",
        "<ListBucketResult>",
        "<ListBucketResult/>",
        "{\"keys\": []}",
        LIST("<IsTruncated>maybe</IsTruncated>"),
        LIST("<IsTruncated>true</IsTruncated>"),
        LIST("<IsTruncated>true</IsTruncated><NextContinuationToken/>"),
        LIST("<IsTruncated>false</IsTruncated>") "<a/>",
        "<Other><IsTruncated>false</IsTruncated></Other>",
        "<!DOCTYPE a [<!ENTITY b \"b\">]>" LIST("<IsTruncated>false</IsTruncated>"),
        LIST("<IsTruncated>false</IsTruncated><!-- -->"),
        LIST("<IsTruncated>false</IsTruncated>&b;"),
        LIST("<IsTruncated>&#x110000;</IsTruncated>"),
        LIST("<IsTruncated>false</IsTruncate>"),
        OBJECT(""),
        OBJECT("<Key>some/folder/a</Key>"),
        OBJECT("<Key>some/folder/a</Key><Size>-1</Size>"
               "<LastModified>2026-01-01T00:00:00Z</LastModified>"),
        OBJECT("<Key>some/folder/a</Key><Size>99999999999999999999</Size>"
               "<LastModified>2026-01-01T00:00:00Z</LastModified>"),
        OBJECT("<Key>some/folder/a</Key><Size>1</Size><LastModified>now</LastModified>"),
    };

    for (size_t i = 0; i < ARRAY_SIZE(pages); i++) {
        TELL("fault 1 xml %s", pages[i]);
        check_failure(remote_list(remote, "", found_add, &(struct found){ .count = 0 }, &err),
                      ERR_INVALID, "no list");
    }
}

static void names_of_others_are_left_out(void)
{
    static const char *const others[] = {
        "some/folder/",         "some/folder/a b", "some/folder/../x", "some/folder//x",
        "some/folder/\xc3\xa4", "some/folders/x",  "some/folder/~new", "some/folder/a%2Fb",
        "some/folder/\x01",     "other",
    };

    for (size_t i = 0; i < ARRAY_SIZE(others); i++) {
        char hex[64] = "";

        for (size_t n = 0; others[i][n]; n++)
            (void)snprintf(hex + 2 * n, sizeof(hex) - 2 * n, "%02x", (unsigned char)others[i][n]);
        TELL("raw %s", hex);
    }
    put("mine", "x");
    CHECK(list("").count == 1 && list("m").count == 1);
    TELL("fault 1 xml %s", OBJECT("<Key>some/folder/a&amp;&#x00;&#10;</Key>" REST));
    CHECK(list("").count == 0);
    TELL("fault 1 xml %s", OBJECT("<Key>some/folder/b</Key>" REST));
    CHECK(list("a").count == 0);
    TELL("fault 1 xml %s",
         "\\xef\\xbb\\xbf<?xml version='1.0'?> <ListBucketResult a=\"1\" b='>' ><IsTruncated >false"
         "</IsTruncated ><Contents><Owner><ID>x</ID></Owner><Key>some/folder/&#x61;&#98;</Key>" REST
         "</Contents></ListBucketResult> ");
    CHECK(list("ab").count == 1);
}

/* --- lists ------------------------------------------------------------------------------------ */

static int found_count(void *context, const struct remote_object *object)
{
    size_t *count = context;

    CHECK(strncmp(object->key, "many/", 5) == 0);
    ++*count;
    return 0;
}

static void lists_have_pages(void)
{
    const struct remote_config config = config_of("s3://" S3_BUCKET "/");
    struct remote *whole = open_with(&config);
    unsigned before = requests();
    size_t count = 0;

    TELL("seed %d", OBJECTS_MANY);
    CHECK(remote_list(whole, "many/", found_count, &count, &err) == 0, "(%s)", err.msg);
    CHECK(count == OBJECTS_MANY && requests() == before + OBJECTS_MANY / 1000, "(%zu)", count);
    remote_close(whole);
}

static int found_remove(void *context, const struct remote_object *object)
{
    (void)context;
    return remote_remove(remote, object->key, &err);
}

static void objects_may_be_removed_while_they_are_listed(void)
{
    char key[32];

    TELL("page 3");
    for (int i = 0; i < 10; i++) {
        (void)snprintf(key, sizeof(key), "old/%d", i);
        put(key, "x");
    }
    CHECK(remote_list(remote, "old/", found_remove, NULL, &err) == 0, "(%s)", err.msg);
    CHECK(list("").count == 0);
}

static void a_list_that_goes_round_is_ended(void)
{
    TELL("fault 2 xml %s",
         LIST("<IsTruncated>true</IsTruncated><NextContinuationToken>x</NextContinuationToken>"));
    check_failure(remote_list(remote, "", found_add, NULL, &err), ERR_INVALID, "no list");
}

/* --- requests --------------------------------------------------------------------------------- */

static void put_one(void *argument)
{
    struct err mine;

    CHECK(remote_put(argument, "key", "x", 1, &mine) == 0, "(%s)", mine.msg);
}

static void connections_are_kept_for_all_threads(void)
{
    put_one(remote);
    TELL("reset");
    for (int i = 0; i < CLIENTS; i++) {
        struct thread thread = { 0 };

        CHECK(thread_start(&thread, "client", put_one, remote) == 0);
        thread_join(&thread);
    }
    CHECK_TEXT(ask(&server, "connections"), "0");
    CHECK(requests() == CLIENTS);
}

static void a_closed_connection_is_replaced(void)
{
    put("key", "x");
    TELL("fault 1 last");
    put("key", "y");
    check_object("key", "y");
    CHECK_TEXT(ask(&server, "connections"), "2");
}

static void a_size_costs_one_request(void)
{
    unsigned before;
    uint64_t size;

    put("key", "12345");
    before = requests();
    CHECK(remote_size(remote, "key", &size, &err) == 0 && size == 5);
    CHECK(remote_size(remote, "none", &size, &err) < 0 && err.kind == ERR_NOT_FOUND);
    CHECK(requests() == before + 2, "(%u)", requests() - before);
}

static void an_etag_is_no_checksum(void)
{
    TELL("fault 1 etag \"0123456789abcdef0123456789abcdef\"");
    put("key", "x");
    check_object("key", "x");
    TELL("fault 1 etag");
    check_failure(remote_put(remote, "key", "x", 1, &err), ERR_UNAVAILABLE, "HTTP 200");
}

static void requests_carry_no_more_than_they_need(void)
{
    put("key", "x");
    CHECK_TEXT(ask(&server, "header Host"), server.endpoint + strlen("http://"));
    CHECK_TEXT(ask(&server, "header Content-Length"), "1");
    CHECK_TEXT(ask(&server, "header Expect"), "");
    CHECK_TEXT(ask(&server, "header Transfer-Encoding"), "");
}

/* --- configuration ---------------------------------------------------------------------------- */

static void new_credentials_are_used_at_once(void)
{
    put("key", "x");
    (void)key_file_write("key", S3_ACCESS ":wrong", 0600);
    CHECK(remote_put(remote, "key", "x", 1, &err) < 0 && err.kind == ERR_DENIED);
    TELL("token a.new/token=");
    (void)key_file_write("key", S3_ACCESS ":" S3_SECRET ":a.new/token=\r\nmore\n", 0600);
    put("key", "y");
    check_object("key", "y");
    (void)key_file_write("key", S3_ACCESS ":" S3_SECRET ":a.new/token=", 0640);
    check_failure(remote_put(remote, "key", "x", 1, &err), ERR_INVALID, "has mode 0640");
    CHECK(strncmp(err_remedy_of(&err), "chmod 600 '", 11) == 0);
}

static void key_files_are_checked(void)
{
    static const struct {
        const char *text, *error;
        mode_t mode;
    } rows[] = {
        { S3_ACCESS ":" S3_SECRET, "has mode 0644", 0644 },
        { S3_ACCESS ":" S3_SECRET, "has mode 0604", 0604 },
        { "", "ACCESS_KEY:SECRET_KEY", 0600 },
        { "\n" S3_ACCESS ":" S3_SECRET, "ACCESS_KEY:SECRET_KEY", 0600 },
        { S3_ACCESS, "ACCESS_KEY:SECRET_KEY", 0600 },
        { ":" S3_SECRET, "ACCESS_KEY:SECRET_KEY", 0600 },
        { S3_ACCESS ":", "ACCESS_KEY:SECRET_KEY", 0600 },
        { S3_ACCESS ":" S3_SECRET ":", "ACCESS_KEY:SECRET_KEY", 0600 },
        { S3_ACCESS " : " S3_SECRET, "ACCESS_KEY:SECRET_KEY", 0600 },
    };
    struct remote_config config = config_of("s3://" S3_BUCKET);
    struct remote *opened = NULL;

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        config.key_file = key_file_write("other", rows[i].text, rows[i].mode);
        check_failure(remote_open(&config, &opened, &err), ERR_INVALID, rows[i].error);
        CHECK(!strstr(err.msg, S3_SECRET), "(%s)", err.msg);
    }
    config.key_file = key_file_write("other", S3_ACCESS ":" S3_SECRET, 0400);
    remote_close(open_with(&config));
    config.key_file = "/nonexistent/key";
    CHECK(remote_open(&config, &opened, &err) < 0 && strstr(err.msg, "/nonexistent/key"));
    config.key_file = top;
    check_failure(remote_open(&config, &opened, &err), ERR_INVALID, "no regular file");
    config.key_file = "";
    check_failure(remote_open(&config, &opened, &err), ERR_INVALID, "needs remote.key-file");
    CHECK(!opened);
}

static void absurd_configurations_are_refused(void)
{
    static const struct {
        const char *url, *endpoint, *region, *error;
    } rows[] = {
        { "s3://", "", "", "names no bucket" },
        { "s3://ab", "", "", "names no bucket" },
        { "s3:///folder", "", "", "names no bucket" },
        { "s3://a bucket", "", "", "names no bucket" },
        { "s3://-bucket", "", "", "names no bucket" },
        { "s3://bucket?x", "", "", "names no bucket" },
        { "s3://bucket//", "", "", "folder of objects" },
        { "s3://bucket/../x", "", "", "folder of objects" },
        { "s3://bucket/a b", "", "", "folder of objects" },
        { "s3://bucket", "example.com", "", "is not https://HOST" },
        { "s3://bucket", "ftp://example.com", "", "is not https://HOST" },
        { "s3://bucket", "https://", "", "is not https://HOST" },
        { "s3://bucket", "https://example.com/path", "", "is not https://HOST" },
        { "s3://bucket", "https://user:word@example.com", "", "is not https://HOST" },
        { "s3://bucket", "https://example.com?x", "", "is not https://HOST" },
        { "s3://bucket", "https://example.com#x", "", "is not https://HOST" },
        { "s3://bucket", "http://example.com", "", "is not encrypted" },
        { "s3://bucket", "http://10.0.0.1:9000", "", "is not encrypted" },
        { "s3://bucket", "http://127.0.0.1.example.com", "", "is not encrypted" },
        { "s3://bucket", "", "eu west", "no name of a region" },
        { "s3://bucket", "", "eu/../west", "no name of a region" },
        { "s4://bucket", "", "", "file:///DIRECTORY or s3://BUCKET" },
    };
    struct remote *opened = NULL;

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct remote_config config = config_of(rows[i].url);

        config.endpoint = rows[i].endpoint;
        config.region = rows[i].region;
        check_failure(remote_open(&config, &opened, &err), ERR_INVALID, rows[i].error);
    }
    CHECK(!opened);
}

static void endpoints_are_what_they_seem(void)
{
    static const struct {
        const char *endpoint, *region, *where;
        bool is_insecure;
    } rows[] = {
        { NULL, NULL, "s3://bucket/a at https://s3.us-east-1.amazonaws.com", false },
        { "", "eu-west-9", "s3://bucket/a at https://s3.eu-west-9.amazonaws.com", false },
        { "https://example.com/", "", "s3://bucket/a at https://example.com", false },
        { "https://example.com:9000", "", "s3://bucket/a at https://example.com:9000", false },
        { "http://localhost:9000", "", "s3://bucket/a at http://localhost:9000", false },
        { "http://[::1]:9000", "", "s3://bucket/a at http://[::1]:9000", false },
        { "http://127.0.0.2", "", "s3://bucket/a at http://127.0.0.2", false },
        { "http://10.0.0.1:9000", "", "s3://bucket/a at http://10.0.0.1:9000", true },
    };

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct remote_config config = config_of("s3://bucket/a");
        struct remote *opened;

        config.endpoint = rows[i].endpoint;
        config.region = rows[i].region;
        config.is_insecure = rows[i].is_insecure;
        opened = open_with(&config);
        CHECK_TEXT(remote_where(opened), rows[i].where);
        remote_close(opened);
    }
}

/* --- another server --------------------------------------------------------------------------- */

static struct remote *open_other(void)
{
    char url[128];

    (void)snprintf(url, sizeof(url), "s3://%s/%d", getenv("S3_BUCKET"), (int)getpid());
    return open_with(&(struct remote_config){
        .url = url,
        .endpoint = getenv("S3_ENDPOINT"),
        .key_file = getenv("S3_KEY_FILE"),
    });
}

static int found_forget(void *context, const struct remote_object *object)
{
    (void)context;
    return remote_remove(remote, object->key, &err);
}

static void around_other(test_fn *test)
{
    remote = open_other();
    test();
    CHECK(remote_list(remote, "", found_forget, NULL, &err) == 0, "(%s)", err.msg);
    remote_close(remote);
}

static void pages_are_those_of_the_server(void)
{
    size_t count = 0;
    char key[32];

    for (int i = 0; i < 2100; i++) {
        (void)snprintf(key, sizeof(key), "many/%04d", i);
        put(key, "");
    }
    CHECK(remote_list(remote, "many/", found_count, &count, &err) == 0, "(%s)", err.msg);
    CHECK(count == 2100, "(%zu)", count);
}

static void a_server_with_an_unknown_certificate_is_refused(void)
{
    remote = open_other();
    check_failure(remote_put(remote, "key", "x", 1, &err), ERR_DENIED, "certificate");
    CHECK(strstr(err_remedy_of(&err), "update-ca-certificates"));
    remote_close(remote);
}

static void own_server(void)
{
    suite_run(around);
    RUN_WITH_SERVER(threads_do_not_disturb_each_other);
    RUN_WITH_SERVER(one_of_several_claims_wins);
    RUN_WITH_SERVER(errors_name_what_to_correct);
    RUN_WITH_SERVER(a_missing_bucket_is_no_missing_object);
    RUN_WITH_SERVER(codes_of_servers_have_meanings);
    RUN_WITH_SERVER(answers_of_other_servers_are_no_success);
    RUN_WITH_SERVER(redirects_are_not_followed);
    RUN_WITH_SERVER(failures_that_may_pass_are_tried_again);
    RUN_WITH_SERVER(a_failure_that_does_not_pass_is_told);
    RUN_WITH_SERVER(a_server_that_is_gone_is_told);
    RUN_WITH_SERVER(a_damaged_or_cut_object_is_sent_again);
    RUN_WITH_SERVER(an_object_without_a_length_is_not_whole);
    RUN_WITH_SERVER(silence_is_ended);
    RUN_WITH_SERVER(a_lost_reply_does_not_lose_a_claim);
    RUN_WITH_SERVER(servers_without_conditions_are_asked_first);
    RUN_WITH_SERVER(a_refusal_ends_the_upload);
    RUN_WITH_SERVER(replies_are_bounded);
    RUN_WITH_SERVER(absurd_lists_are_refused);
    RUN_WITH_SERVER(names_of_others_are_left_out);
    RUN_WITH_SERVER(lists_have_pages);
    RUN_WITH_SERVER(objects_may_be_removed_while_they_are_listed);
    RUN_WITH_SERVER(a_list_that_goes_round_is_ended);
    RUN_WITH_SERVER(connections_are_kept_for_all_threads);
    RUN_WITH_SERVER(a_closed_connection_is_replaced);
    RUN_WITH_SERVER(a_size_costs_one_request);
    RUN_WITH_SERVER(an_etag_is_no_checksum);
    RUN_WITH_SERVER(requests_carry_no_more_than_they_need);
    RUN_WITH_SERVER(new_credentials_are_used_at_once);
    RUN_WITH_SERVER(key_files_are_checked);
    RUN_WITH_SERVER(absurd_configurations_are_refused);
    RUN_WITH_SERVER(endpoints_are_what_they_seem);
}

int main(void)
{
    suite_rounds = ROUNDS;
    if (!getenv("S3_ENDPOINT")) {
        test_run("own_server", own_server, world_run);
    } else if (getenv("S3_REFUSED")) {
        RUN(a_server_with_an_unknown_certificate_is_refused);
    } else {
        suite_run(around_other);
        test_run("pages_are_those_of_the_server", pages_are_those_of_the_server, around_other);
    }
    return 0;
}
