// SPDX-License-Identifier: Apache-2.0
/* Routing of E2B requests. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/route.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/json.h"
#include "base/xalloc.h"
#include "check.h"
#include "e2b/control/network.h"
#include "e2b/control/sandbox_request.h"
#include "e2b/core/e2b.h"
#include "e2b/core/object_store.h"
#include "e2b/core/route.h"
#include "e2b/core/target.h"
#include "http/call_stats.h"

static void ids_are_mapped_without_loss(void)
{
    static const char *const bad_holt[] = { "", "sb", "sb-", "work", "sb-A", "sb-1.2", "xb-12" };
    static const char *const bad_e2b[] = {
        "",     "sb",    "s",          "sb-12",      "SB12",    "i123",          "sb1/",
        "sb 1", "sb12-", "sb12-holt1", "sb12-other", "sb-holt", "sb12-holt-holt"
    };
    char there[SANDBOX_ID_MAX], back[SANDBOX_ID_MAX];

    CHECK(e2b_id_from("sb-0123456789abcdef", there) && e2b_id_to(there, back));
    CHECK_TEXT(there, "sb0123456789abcdef");
    CHECK_TEXT(back, "sb-0123456789abcdef");
    CHECK(e2b_id_to("sb0123456789abcdef-holt", back));
    CHECK_TEXT(back, "sb-0123456789abcdef");
    for (size_t i = 0; i < ARRAY_SIZE(bad_holt); i++)
        CHECK(!e2b_id_from(bad_holt[i], there), "%s", bad_holt[i]);
    for (size_t i = 0; i < ARRAY_SIZE(bad_e2b); i++)
        CHECK(!e2b_id_to(bad_e2b[i], there), "%s", bad_e2b[i]);
    CHECK(!e2b_id_to("sb01234567890123456789012345678901234567890", there));
}

static void host_names_say_which_port_of_which_sandbox(void)
{
    static const char *const bad[] = {
        "",
        "localhost",
        "3000",
        "3000-sb1",
        "-sb1.x",
        "0-sb1.x",
        "65536-s.x",
        "99999999-s.x",
        "3000-.x",
        "3000-SB.x",
        "3000--sb.x",
        "3000-sb-1.x",
        "a3000-sb.x",
        " 3000-sb1.x",
        "3000-0123456789012345678901234567890123.x",
        "3000-sb1-holt",
        "3000-sb1-other.x",
        "3000-sb1-holty.x",
        "3000--holt.x",
    };
    char sandbox[SANDBOX_ID_MAX];
    uint16_t port = 0;
    const char *rest = e2b_host_parse("3000-sb12.sbx.test:3443", &port, sandbox);

    CHECK(rest && port == 3000);
    CHECK_TEXT(rest, "sbx.test:3443");
    CHECK_TEXT(sandbox, "sb12");
    rest = e2b_host_parse("3001-sb12-holt.sbx.test:3443", &port, sandbox);
    CHECK(rest && port == 3001);
    CHECK_TEXT(rest, "sbx.test:3443");
    CHECK_TEXT(sandbox, "sb12");
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
        CHECK(!e2b_host_parse(bad[i], &port, sandbox), "%s", bad[i]);
}

static enum e2b_kind kind_of(const struct e2b_request_headers *signs)
{
    struct e2b_target to;

    CHECK(e2b_target_find(signs, &to));
    return to.kind;
}

static void a_request_has_one_place(void)
{
    struct e2b_target to;
    static const struct e2b_request_headers wrong = { .path = "/",
                                                      .sandbox_header = "sb1",
                                                      .port_header = "http" };

    CHECK(kind_of(&(struct e2b_request_headers){ .path = "/metrics" }) == E2B_NONE);
    CHECK(kind_of(&(struct e2b_request_headers){ .path = "/healthz" }) == E2B_NONE);
    CHECK(kind_of(&(struct e2b_request_headers){ .path = "/mcp", .host = "localhost" }) ==
          E2B_NONE);
    CHECK(kind_of(&(struct e2b_request_headers){ .path = "/holt.v1.HostService/Health" }) ==
          E2B_NONE);
    CHECK(kind_of(&(struct e2b_request_headers){ .path = "/sandboxesx" }) == E2B_NONE);
    CHECK(kind_of(&(struct e2b_request_headers){ .path = "/files" }) == E2B_NONE);
    CHECK(kind_of(&(struct e2b_request_headers){ .path = "/nothing", .has_key = true }) ==
          E2B_CONTROL);
    CHECK(kind_of(&(struct e2b_request_headers){ .path = "/health" }) == E2B_CONTROL);
    CHECK(kind_of(&(struct e2b_request_headers){ .path = "/sandboxes/sb1/pause" }) == E2B_CONTROL);
    CHECK(kind_of(&(struct e2b_request_headers){ .path = "/files", .has_signature = true }) ==
          E2B_SIGNED);
    CHECK(kind_of(&(struct e2b_request_headers){ .path = "/metrics", .sandbox_header = "sb1" }) ==
          E2B_ENVD);
    CHECK(kind_of(&(struct e2b_request_headers){ .path = "/", .host = "8000-sb1.x" }) == E2B_PORT);
    CHECK(e2b_target_find(&(struct e2b_request_headers){ .path = "/sandboxes",
                                                         .host = "8000-sb1.x",
                                                         .sandbox_header = "sb2",
                                                         .port_header = "49983" },
                          &to));
    CHECK(to.kind == E2B_ENVD);
    CHECK_TEXT(to.sandbox, "sb2");
    CHECK(!e2b_target_find(&wrong, &to));
}

static void escapes_are_undone(void)
{
    static const char *const cases[][2] = {
        { "a%20b", "a b" }, { "a+b", "a+b" },   { "%", "%" },       { "%4", "%4" },
        { "%zz", "%zz" },   { "%41%42", "AB" }, { "%2520", "%20" }, { "%c3%bc", "\xc3\xbc" },
    };
    cleanup_free char *blank = e2b_unescape("a+b", 3, true);

    CHECK_TEXT(blank, "a b");
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        cleanup_free char *text = e2b_unescape(cases[i][0], strlen(cases[i][0]), false);

        CHECK_TEXT(text, cases[i][1]);
    }
    CHECK(!e2b_unescape("%00", 3, false));
    CHECK(!e2b_unescape("%ff", 3, false));
}

static void every_route_has_its_counter(void)
{
    const struct e2b_route *route;
    const char *to = "";
    size_t count = 0;

    for (; (route = e2b_route_at(count, &to)); count++)
        CHECK(e2b_route_index(route) == count);
    CHECK(count > 60 && ROUTES_MAX + count <= CALL_STATS_METHODS, "(%zu)", count);
    CHECK_TEXT(to, "port");
}

struct found {
    struct e2b_request request;
    const struct e2b_route *route;
    bool has_path;
};

static struct found find(enum e2b_kind kind, const char *verb, const char *path)
{
    struct found found = { .request = { .verb = verb, .to.kind = kind } };

    found.request.path = xstrdup(path);
    found.route = e2b_route_find(&found.request, &found.has_path);
    free(found.request.path);
    return found;
}

static void found_done(struct found *found)
{
    for (size_t i = 0; i < E2B_PARAMS_MAX; i++)
        free(found->request.params[i]);
}

static void paths_lead_to_their_handlers(void)
{
    static const char *const nowhere[] = {
        "",         "/", "/sandboxes/", "/sandboxes/a/b/c", "/sandboxes//pause", "/sandboxes/%00",
        "sandboxes"
    };
    cleanup_with(found_done) struct found pause =
        find(E2B_CONTROL, "POST", "/sandboxes/a%2Fb/pause");
    cleanup_with(found_done) struct found many = find(E2B_CONTROL, "GET", "/sandboxes/metrics");
    cleanup_with(found_done) struct found one = find(E2B_CONTROL, "GET", "/sandboxes/abc");
    cleanup_with(found_done) struct found head = find(E2B_CONTROL, "HEAD", "/health");
    cleanup_with(found_done) struct found other = find(E2B_CONTROL, "PATCH", "/sandboxes/abc");
    cleanup_with(found_done) struct found rest = find(E2B_CONTROL, "DELETE", "/templates/ns/n%3At");

    CHECK(pause.route);
    CHECK_TEXT(pause.request.params[0], "a/b");
    CHECK(many.route && many.route != one.route && !many.request.params[0]);
    CHECK(one.route);
    CHECK(head.route && head.route->is_open);
    CHECK(!other.route && other.has_path && !other.request.params[0]);
    CHECK_TEXT(rest.request.params[0], "ns/n:t");
    for (size_t i = 0; i < ARRAY_SIZE(nowhere); i++) {
        cleanup_with(found_done) struct found lost = find(E2B_CONTROL, "POST", nowhere[i]);

        CHECK(!lost.route, "%s", nowhere[i]);
    }
}

static int create_parse(const char *text, bool is_v1, struct e2b_create *ret)
{
    cleanup_json json_t *body = json_loads(text, 0, NULL);
    struct err err = { 0 };
    int r = e2b_create_parse(body, is_v1, ret, &err);

    ret->template_id = NULL; /* it was in the body */
    return r;
}

static void wishes_are_taken_or_refused(void)
{
    static const char *const bad[] = {
        "{}",
        "{\"templateID\":1}",
        "{\"templateID\":\"t\",\"timeout\":1.5}",
        "{\"templateID\":\"t\",\"metadata\":{\"a\":null}}",
        "{\"templateID\":\"t\",\"envVars\":{\"\":\"x\"}}",
        "{\"templateID\":\"t\",\"autoPause\":1}",
        "{\"templateID\":\"t\",\"autoResume\":true}",
        "{\"templateID\":\"t\",\"autoPauseMemory\":false}",
        "{\"templateID\":\"t\",\"network\":{\"denyOut\":[1]}}",
        "{\"templateID\":\"t\",\"network\":{\"denyOut\":[\"1.2.3.4/33\"]}}",
        "{\"templateID\":\"t\",\"network\":{\"denyOut\":null,\"deny_out\":[\"1.2.3.4\"]}}",
        "{\"templateID\":\"t\",\"allowInternetAccess\":0}",
        "{\"templateID\":\"t\",\"allowInternetAccess\":true,\"allow_internet_access\":0}",
        "{\"templateID\":\"t\",\"volumeMounts\":[{\"name\":\"v\"}]}",
    };
    struct e2b_create wish = { 0 };

    CHECK(create_parse("{\"templateID\":\"t\",\"metadata\":null,\"new\":[]}", false, &wish) == 0);
    CHECK(wish.timeout_s == 300 && !json_object_get(wish.metadata, "trafficToken"));
    e2b_create_done(&wish);
    CHECK(create_parse("{\"templateID\":\"t\"}", true, &wish) == 0 && wish.timeout_s == 15);
    CHECK(json_object_get(wish.metadata, "accessToken"));
    e2b_create_done(&wish);
    CHECK(create_parse("{\"templateID\":\"t\",\"secure\":false}", true, &wish) == 0);
    CHECK(json_object_get(wish.metadata, "accessToken"));
    e2b_create_done(&wish);
    CHECK(create_parse("{\"templateID\":\"t\",\"secure\":true}", true, &wish) == 0);
    CHECK(json_object_get(wish.metadata, "accessToken"));
    e2b_create_done(&wish);
    CHECK(create_parse("{\"templateID\":\"t\",\"network\":{\"allowPublicTraffic\":false}}", true,
                       &wish) < 0);
    e2b_create_done(&wish);
    CHECK(create_parse("{\"templateID\":\"t\",\"network\":{\"allowPublicTraffic\":false}}", false,
                       &wish) == 0 &&
          json_object_get(wish.metadata, "trafficToken"));
    e2b_create_done(&wish);
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        CHECK(create_parse(bad[i], false, &wish) < 0, "%s", bad[i]);
        e2b_create_done(&wish);
    }
}

static void either_spelling_of_a_network_counts(void)
{
    struct e2b_create wish = { 0 };
    const json_t *network;

    CHECK(create_parse("{\"templateID\":\"t\",\"network\":{\"allow_public_traffic\":false}}", true,
                       &wish) < 0);
    e2b_create_done(&wish);
    CHECK(create_parse("{\"templateID\":\"t\",\"allowInternetAccess\":false,\"network\":{"
                       "\"allow_public_traffic\":false,\"deny_out\":[\"0.0.0.0/0\"],"
                       "\"egress_proxy\":\"socks5://u:hunter2@h:1\"}}",
                       false, &wish) == 0);
    network = json_object_get(wish.metadata, "network");
    CHECK(json_object_get(wish.metadata, "trafficToken"));
    CHECK(json_is_false(json_object_get(wish.metadata, "internet")));
    CHECK(json_array_size(json_object_get(network, "denyOut")) == 1);
    CHECK(json_object_size(json_object_get(network, "egressProxy")) == 1);
    CHECK_TEXT(
        json_string_value(json_object_get(json_object_get(network, "egressProxy"), "address")),
        "h:1");
    CHECK(json_object_size(network) == 3);
    e2b_create_done(&wish);
}

static void errors_have_the_statuses_that_clients_know(void)
{
    static const struct {
        enum err_cause cause;
        unsigned status;
    } wanted[] = {
        { CAUSE_SESSION_NOT_FOUND, 404 },
        { CAUSE_SESSION_PAUSED, 409 },
        { CAUSE_MAX_SESSIONS_REACHED, 429 },
        { CAUSE_SHUTTING_DOWN, 503 },
        { CAUSE_NO_SPACE, 507 },
        { CAUSE_QUOTA_EXCEEDED, 507 },
    };

    for (size_t i = 0; i < ARRAY_SIZE(wanted); i++) {
        struct err err = { 0 };

        (void)err_refuse(&err, wanted[i].cause, "no");
        CHECK(e2b_status_of(&err) == wanted[i].status, "%u", e2b_status_of(&err));
    }
}

static int add_one(json_t *list, void *context, struct err *err)
{
    json_t *count = json_object_get(e2b_objects_pick(list, "id", "a"), "count");

    (void)err;
    if (!count)
        return json_array_append_new(list, json_pack("{s:s, s:i}", "id", "a", "count", 0));
    if (context)
        return err_set(err, ERR_INVALID, "not this time");
    return json_integer_set(count, json_integer_value(count) + 1);
}

static void *add_many(void *objects)
{
    struct err err = { 0 };

    for (int i = 0; i < 20; i++)
        CHECK(e2b_objects_change(objects, OBJECTS_SECRETS, add_one, NULL, &err) == 0);
    return NULL;
}

static json_int_t count_on(const char *dir)
{
    struct e2b_objects *objects = NULL;
    struct err err = { 0 };
    json_int_t count;
    json_t *object;

    CHECK(e2b_objects_open(dir, &objects, &err) == 0);
    object = e2b_objects_find(objects, OBJECTS_SECRETS, "id", "a");
    count = json_integer_value(json_object_get(object, "count"));
    json_decref(object);
    e2b_objects_close(objects);
    return count;
}

static void a_shelf_is_changed_by_one_at_a_time(void)
{
    char dir[] = "/tmp/holt-shelf.XXXXXX", file[64];
    struct e2b_objects *objects = NULL;
    struct err err = { 0 };
    pthread_t threads[4];

    CHECK(mkdtemp(dir) && e2b_objects_open(dir, &objects, &err) == 0);
    CHECK(e2b_objects_change(objects, OBJECTS_SECRETS, add_one, NULL, &err) == 0);
    for (size_t i = 0; i < ARRAY_SIZE(threads); i++)
        CHECK(pthread_create(&threads[i], NULL, add_many, objects) == 0);
    for (size_t i = 0; i < ARRAY_SIZE(threads); i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
    CHECK(e2b_objects_change(objects, OBJECTS_SECRETS, add_one, dir, &err) < 0);
    e2b_objects_close(objects);
    CHECK(count_on(dir) == 80, "%lld", (long long)count_on(dir));
    (void)snprintf(file, sizeof(file), "%s/e2b-secrets.json", dir);
    CHECK(unlink(file) == 0 && rmdir(dir) == 0);
}

int main(void)
{
    RUN(ids_are_mapped_without_loss);
    RUN(host_names_say_which_port_of_which_sandbox);
    RUN(a_request_has_one_place);
    RUN(escapes_are_undone);
    RUN(every_route_has_its_counter);
    RUN(paths_lead_to_their_handlers);
    RUN(wishes_are_taken_or_refused);
    RUN(either_spelling_of_a_network_counts);
    RUN(errors_have_the_statuses_that_clients_know);
    RUN(a_shelf_is_changed_by_one_at_a_time);
    return 0;
}
