// SPDX-License-Identifier: Apache-2.0
/* What errors of S3 servers mean:
 * https://docs.aws.amazon.com/AmazonS3/latest/API/ErrorResponses.html */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "remote/s3_internal.h"
#include "remote/s3_xml.h"

enum { CLOCKS_APART_S = 60 };

struct code_row {
    const char *code;
    enum err_kind kind;
    bool may_pass;
    const char *text, *remedy; /* NULL: the server's own message; the remedy of the kind */
};

static const struct code_row codes[] = {
    { "AccessDenied", ERR_DENIED, false, "access denied",
      "allow the access key to list the bucket and to read, write and remove its objects" },
    { "AllAccessDisabled", ERR_DENIED, false, NULL, NULL },
    { "BadDigest", ERR_UNAVAILABLE, true, "the object was damaged on its way", NULL },
    { "ConditionalRequestConflict", ERR_UNAVAILABLE, true, NULL, NULL },
    { "ExpiredToken", ERR_DENIED, false, "the session token has expired",
      "write new credentials to remote.key-file; they are used at once" },
    { "IncompleteBody", ERR_UNAVAILABLE, true, "the object was cut on its way", NULL },
    { "InvalidAccessKeyId", ERR_DENIED, false, "the access key is unknown",
      "correct remote.key-file" },
    { "InvalidBucketName", ERR_INVALID, false, "the bucket cannot have this name",
      "correct remote.url" },
    { "InvalidObjectState", ERR_BUSY, false, "the object is archived and cannot be read",
      "restore it from its storage class, and exempt the bucket from such rules" },
    { "InvalidToken", ERR_DENIED, false, "the session token is invalid",
      "correct remote.key-file" },
    { "NoSuchBucket", ERR_INVALID, false, "the bucket does not exist",
      "create it, or correct remote.url" },
    { "NoSuchKey", ERR_NOT_FOUND, false, "there is no such object", NULL },
    { "OperationAborted", ERR_UNAVAILABLE, true, NULL, NULL },
    { "RequestTimeout", ERR_UNAVAILABLE, true, NULL, NULL },
    { "SignatureDoesNotMatch", ERR_DENIED, false, "the secret key is wrong",
      "correct remote.key-file" },
    { "TokenRefreshRequired", ERR_DENIED, false, "the session token has expired",
      "write new credentials to remote.key-file; they are used at once" },
    { "XAmzContentSHA256Mismatch", ERR_UNAVAILABLE, true, "the object was damaged on its way",
      NULL },
};

/* Codes for the lack of space: MinIO's and Ceph's own. */
static const char *const full_codes[] = { "QuotaExceeded", "XMinioStorageFull",
                                          "XMinioAdminBucketQuotaExceeded" };
/* Codes of a bucket in another region than the request was signed for. */
static const char *const region_codes[] = { "AuthorizationHeaderMalformed", "PermanentRedirect",
                                            "TemporaryRedirect",
                                            "IllegalLocationConstraintException" };

static const struct code_row *row_of(const struct s3_reply *reply)
{
    for (size_t i = 0; i < ARRAY_SIZE(codes); i++) {
        if (strcmp(codes[i].code, reply->code) == 0)
            return &codes[i];
    }
    return NULL;
}

static bool code_is_of(const struct s3_reply *reply, const char *const *list, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (strcmp(list[i], reply->code) == 0)
            return true;
    }
    return false;
}

static int field_take(void *context, const char *path, const char *text)
{
    struct s3_reply *reply = context;

    if (strcmp(path, "Error/Code") == 0)
        (void)snprintf(reply->code, sizeof(reply->code), "%s", text);
    else if (strcmp(path, "Error/Message") == 0)
        (void)snprintf(reply->message, sizeof(reply->message), "%s", text);
    else if (strcmp(path, "Error/Region") == 0)
        (void)snprintf(reply->region, sizeof(reply->region), "%s", text);
    return 0;
}

void s3_reply_read(struct s3_reply *reply, const struct buf *body)
{
    (void)s3_xml_read(body, field_take, reply);
}

static bool reply_is_full(const struct s3_reply *reply)
{
    return reply->status == 507 || code_is_of(reply, full_codes, ARRAY_SIZE(full_codes));
}

bool s3_reply_may_pass(const struct s3_reply *reply)
{
    const struct code_row *row = row_of(reply);

    if (row || reply_is_full(reply))
        return row && row->may_pass;
    return reply->status == 408 || reply->status == 429 ||
           (reply->status >= 500 && reply->status != 501);
}

static int region_explain(const struct s3 *s3, const struct s3_reply *reply, struct err *err)
{
    if (reply->region[0])
        (void)err_set(err, ERR_INVALID, "%.80s: the bucket is in region '%s', not '%.60s'",
                      s3->remote.where, reply->region, s3->region);
    else
        (void)err_set(err, ERR_INVALID, "%.80s: the bucket is not in region '%.60s'",
                      s3->remote.where, s3->region);
    return err_remedy(err, "correct remote.region, and remote.endpoint if it names a region");
}

static int clock_explain(const struct s3 *s3, const struct s3_reply *reply, struct err *err)
{
    int64_t apart_s = (int64_t)(clock_wall_ms() / 1000) - reply->date_s;

    if (reply->date_s > 0 && (apart_s > CLOCKS_APART_S || apart_s < -CLOCKS_APART_S))
        (void)err_set(err, ERR_UNAVAILABLE,
                      "%.80s: the clock of this machine is %" PRId64 " s %s that of the server",
                      s3->remote.where, apart_s < 0 ? -apart_s : apart_s,
                      apart_s < 0 ? "behind" : "ahead of");
    else
        (void)err_set(err, ERR_UNAVAILABLE,
                      "%.80s: the clocks of this machine and of the server differ",
                      s3->remote.where);
    return err_remedy(err, "set the clock, for example with NTP");
}

/* Errors that the row of a code, or no row, describes. */
static int code_explain(const struct s3 *s3, const struct s3_reply *reply, struct err *err)
{
    const struct code_row *row = row_of(reply);
    const char *text = row && row->text ? row->text : reply->message;
    enum err_kind kind = ERR_INVALID;
    int r;

    if (row)
        kind = row->kind;
    else if (reply->status == 401 || reply->status == 403)
        kind = ERR_DENIED;
    else if (s3_reply_may_pass(reply) || reply->status < 300)
        kind = ERR_UNAVAILABLE;
    else if (reply->status == 501)
        kind = ERR_UNSUPPORTED;
    r = err_set(err, kind, "%.80s: %s%sHTTP %ld%s%s", s3->remote.where, text, *text ? ": " : "",
                reply->status, reply->code[0] ? " " : "", reply->code);
    return row && row->remedy ? err_remedy(err, "%s", row->remedy) : r;
}

int s3_explain(const struct s3 *s3, const struct s3_reply *reply, struct err *err)
{
    if (code_is_of(reply, region_codes, ARRAY_SIZE(region_codes)))
        return region_explain(s3, reply, err);
    if (strcmp(reply->code, "RequestTimeTooSkewed") == 0)
        return clock_explain(s3, reply, err);
    if (reply_is_full(reply)) {
        (void)err_refuse(err, CAUSE_NO_SPACE, "%.80s: no space left", s3->remote.where);
        return err_remedy(err, "enlarge the storage or its quota, or remove objects");
    }
    if (reply->status >= 300 && reply->status < 400) {
        (void)err_set(err, ERR_INVALID, "%.80s redirects to another address (HTTP %ld)",
                      s3->remote.where, reply->status);
        return err_remedy(err, "correct remote.endpoint and remote.region");
    }
    if (!reply->code[0] && reply->status >= 400 && reply->status < 500 && reply->status != 429 &&
        reply->status != 408) {
        (void)err_set(err, ERR_INVALID, "%.80s answers with HTTP %ld, not as an S3 API does",
                      s3->remote.where, reply->status);
        return err_remedy(err, "correct remote.endpoint");
    }
    return code_explain(s3, reply, err);
}
