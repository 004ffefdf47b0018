// SPDX-License-Identifier: Apache-2.0
/* ListObjectsV2: pages of at most 1000 objects, as XML. Keys are not asked for percent-encoded:
 * those of Holt have no character that XML cannot carry, and others are left out. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/text/parse.h"
#include "base/xalloc.h"
#include "remote/s3_internal.h"
#include "remote/s3_xml.h"

#define ROOT "ListBucketResult/"
#define OBJECT ROOT "Contents"

enum { PAGE_MAX_BYTES = 8 * 1024 * 1024, PAGES_MAX = 100 * 1000, QUERY_MAX = 3 };

struct page {
    const struct remote_list *list;
    const char *prefix;
    char *key; /* of the present object; NULL: not yet seen */
    uint64_t size, modified_ms;
    bool has_size, has_time; /* of the present object */
    bool is_list, is_cut, has_stopped;
    char *token;
};

static void page_done(struct page *page)
{
    free(page->key);
    free(page->token);
}

static void text_replace(char **to, const char *text)
{
    free(*to);
    *to = text ? xstrdup(text) : NULL;
}

/* Reports the object that is complete now, if it can be Holt's. */
static int object_end(struct page *page)
{
    size_t len = strlen(page->prefix);
    struct remote_object object = { .size = page->size, .modified_ms = page->modified_ms };
    int r = 0;

    if (!page->key || !page->has_size || !page->has_time)
        return -EBADMSG;
    if (strncmp(page->key, page->prefix, len) == 0 && remote_key_is(page->key + len) &&
        strncmp(page->key + len, page->list->prefix, strlen(page->list->prefix)) == 0) {
        object.key = page->key + len;
        r = page->list->found(page->list->context, &object);
        page->has_stopped = r < 0;
    }
    text_replace(&page->key, NULL);
    page->has_size = page->has_time = false;
    return r;
}

static int element_take(void *context, const char *path, const char *text)
{
    struct page *page = context;

    if (strcmp(path, OBJECT "/Key") == 0) {
        text_replace(&page->key, text);
    } else if (strcmp(path, OBJECT "/Size") == 0) {
        page->has_size = parse_u64(text, &page->size) == 0;
    } else if (strcmp(path, OBJECT "/LastModified") == 0) {
        page->has_time = parse_time_ms(text, &page->modified_ms) == 0;
    } else if (strcmp(path, OBJECT) == 0) {
        return object_end(page);
    } else if (strcmp(path, ROOT "NextContinuationToken") == 0) {
        text_replace(&page->token, text);
    } else if (strcmp(path, ROOT "IsTruncated") == 0) {
        page->is_list = parse_bool(text, &page->is_cut) == 0;
    }
    return 0;
}

int s3_page_read(const struct buf *body, const char *prefix, const struct remote_list *list,
                 char **ret_token, bool *ret_has_stopped)
{
    cleanup_with(page_done) struct page page = { .list = list, .prefix = prefix };
    int r = s3_xml_read(body, element_take, &page);

    *ret_has_stopped = page.has_stopped;
    if (r < 0)
        return r;
    if (!page.is_list || (page.is_cut && (!page.token || !*page.token)))
        return -EBADMSG;
    *ret_token = page.is_cut ? TAKE_PTR(page.token) : NULL;
    return 0;
}

/* Asks for a page; token NULL: the first. */
static int page_get(struct s3 *s3, const char *prefix, const char *token, struct buf *into,
                    struct err *err)
{
    cleanup_free char *path = xasprintf("/%s", s3->bucket);
    struct sigv4_pair query[QUERY_MAX] = { { "list-type", "2" } };
    struct s3_reply reply;
    size_t count = 1;
    int r;

    if (*prefix)
        query[count++] = (struct sigv4_pair){ "prefix", prefix };
    if (token)
        query[count++] = (struct sigv4_pair){ "continuation-token", token };
    r = s3_send(s3,
                &(struct s3_call){
                    .method = "GET",
                    .path = path,
                    .query = query,
                    .query_count = count,
                    .into = into,
                    .into_max = PAGE_MAX_BYTES,
                },
                &reply, err);
    if (r < 0)
        return r;
    return reply.status == 200 ? 0 : s3_explain(s3, &reply, err);
}

/* Lists one page. Returns 1 if there is another, with its token. */
static int page_list(struct s3 *s3, const char *prefix, const struct remote_list *list,
                     char **token, bool *ret_has_stopped, struct err *err)
{
    cleanup_with(buf_done) struct buf body = BUF_INIT(PAGE_MAX_BYTES);
    cleanup_free char *last = TAKE_PTR(*token);
    int r = page_get(s3, prefix, last, &body, err);

    if (r < 0)
        return err_wrap(err, "list objects");
    r = s3_page_read(&body, s3->prefix, list, token, ret_has_stopped);
    if (*ret_has_stopped)
        return r;
    if (r == 0 && last && *token && strcmp(last, *token) == 0)
        r = -EBADMSG;
    if (r < 0)
        return err_set(err, ERR_INVALID, "list objects: %.80s sent no list of an S3 API",
                       s3->remote.where);
    atomic_store(&s3->has_bucket, true);
    return *token != NULL;
}

int s3_list(struct remote *remote, const struct remote_list *list, struct err *err)
{
    struct s3 *s3 = (struct s3 *)remote;
    cleanup_free char *prefix = xasprintf("%s%s", s3->prefix, list->prefix);
    cleanup_free char *token = NULL;
    bool has_stopped = false;
    int r = 1;

    for (unsigned pages = 0; r == 1; pages++) {
        if (pages == PAGES_MAX)
            return err_set(err, ERR_EXHAUSTED, "list objects: the list of %.80s has no end",
                           remote->where);
        r = page_list(s3, prefix, list, &token, &has_stopped, err);
    }
    return r;
}
