// SPDX-License-Identifier: Apache-2.0
#include "host/net/upstream.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/io.h"
#include "base/json.h"
#include "base/xalloc.h"
#include "host/core/config.h"
#include "net/name.h"
#include "net/policy.h"
#include "net/proxy.h"

enum { FILE_MAX = 4096, ZONES_MAX = 32, SERVERS_MAX = 4 };

int net_proxy_check(const char *text, struct err *err)
{
    struct net_proxy proxy;
    int r = *text ? net_proxy_parse(text, &proxy, err) : 0;

    if (r < 0 || !*text || !proxy.user[0])
        return r;
    (void)err_set(err, ERR_INVALID, "the URL must not have a user name or password");
    return err_remedy(err, "write the URL to a file of mode 0600 and name it in net.proxy-file");
}

/* Adds the rules to a list (NULL: only checks them). Each is a name, a pattern or a range, with or
 * without ports. */
static int no_proxy_read(const char *text, json_t *list, struct err *err)
{
    cleanup_with(net_layer_done) struct net_layer layer = { 0 };
    cleanup_free char *copy = xstrdup(text);
    char *rest = NULL;

    for (char *word = strtok_r(copy, " \t", &rest); word; word = strtok_r(NULL, " \t", &rest)) {
        size_t before = layer.deny.count;
        int r = net_layer_deny(&layer, word, err);

        if (r < 0)
            return r;
        if (layer.deny.count > before &&
            (layer.deny.items[before].scheme != NET_ANY_SCHEME || layer.deny.items[before].path[0]))
            return err_set(err, ERR_INVALID, "'%.100s' is not a name or a range", word);
        if (list)
            (void)json_array_append_new(list, json_string(word));
    }
    return 0;
}

int net_no_proxy_check(const char *text, struct err *err)
{
    return no_proxy_read(text, NULL, err);
}

static int servers_read(char *text, json_t *list, struct err *err)
{
    char *rest = NULL;

    for (char *word = strtok_r(text, ",", &rest); word; word = strtok_r(NULL, ",", &rest)) {
        struct net_address address;

        if (net_address_parse(word, &address) < 0)
            return err_set(err, ERR_INVALID, "'%.60s' is not the address of a name server", word);
        if (json_array_size(list) == SERVERS_MAX)
            return err_set(err, ERR_INVALID, "a zone has at most %d name servers", SERVERS_MAX);
        (void)json_array_append_new(list, json_string(word));
    }
    return json_array_size(list) > 0 ? 0 : err_set(err, ERR_INVALID, "a zone has no name server");
}

static int zone_read(char *word, json_t *zones, struct err *err)
{
    char *equals = strchr(word, '=');
    size_t len = equals ? (size_t)(equals - word) : 0;
    char name[NET_NAME_SIZE];
    json_t *servers;

    if (!equals || net_name_normalize(word, len, name))
        return err_set(err, ERR_INVALID, "'%.100s' is not ZONE=ADDRESS[,ADDRESS...]", word);
    if (json_array_size(zones) == ZONES_MAX)
        return err_set(err, ERR_INVALID, "there are at most %d zones", ZONES_MAX);
    servers = json_array();
    (void)json_array_append_new(zones, json_pack("{s:s, s:o}", "name", name, "servers", servers));
    return servers_read(equals + 1, servers, err);
}

static int zones_read(const char *text, json_t *zones, struct err *err)
{
    cleanup_free char *copy = xstrdup(text);
    char *rest = NULL;
    int r = 0;

    for (char *word = strtok_r(copy, " \t", &rest); r == 0 && word;
         word = strtok_r(NULL, " \t", &rest))
        r = zone_read(word, zones, err);
    return r;
}

int net_zones_check(const char *text, struct err *err)
{
    cleanup_json json_t *zones = json_array();

    return zones_read(text, zones, err);
}

/* Reads the URL of the proxy from a file that only the daemon's user can read. */
static int file_read(const char *path, struct net_proxy *ret, struct err *err)
{
    cleanup_with(buf_done) struct buf text = BUF_INIT(FILE_MAX);
    cleanup_close int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    struct stat st;
    ssize_t n;

    if (fd < 0 || fstat(fd, &st) < 0)
        return err_sys(err, -errno, "open '%s'", path);
    if (!S_ISREG(st.st_mode) || (st.st_uid != geteuid() && st.st_uid != 0) ||
        (st.st_mode & (S_IRWXG | S_IRWXO))) {
        (void)err_set(err, ERR_INVALID, "'%s' can be read by others than the daemon's user", path);
        return err_remedy(err, "make it a file of that user with mode 0600");
    }
    if (buf_reserve(&text, FILE_MAX) < 0)
        return err_sys(err, -ENOMEM, "read '%s'", path);
    n = read_full(fd, text.data, FILE_MAX);
    if (n < 0)
        return err_sys(err, (int)n, "read '%s'", path);
    text.data[n] = '\0';
    text.data[strcspn(text.data, "\r\n")] = '\0';
    return net_proxy_parse(text.data, ret, err) < 0 ? err_wrap(err, "'%s'", path) : 0;
}

/* Finds the proxy; without one *ret is NULL. */
static int proxy_read(const struct config *config, char **ret, struct err *err)
{
    struct net_proxy proxy;
    int r;

    *ret = NULL;
    if (*config->net_proxy && *config->net_proxy_file)
        return err_set(err, ERR_INVALID, "net.proxy and net.proxy-file cannot both be set");
    if (!*config->net_proxy && !*config->net_proxy_file)
        return 0;
    if (*config->net_proxy)
        r = net_proxy_parse(config->net_proxy, &proxy, err);
    else
        r = file_read(config->net_proxy_file, &proxy, err);
    if (r < 0)
        return err_wrap(err, "%s", *config->net_proxy ? "net.proxy" : "net.proxy-file");
    *ret = net_proxy_format(&proxy);
    return 0;
}

int net_upstream_read(const struct config *config, json_t **ret, struct err *err)
{
    cleanup_json json_t *json = json_object();
    cleanup_free char *proxy = NULL;
    json_t *direct = json_array(), *zones = json_array();
    int r;

    (void)json_object_set_new(json, "direct", direct);
    (void)json_object_set_new(json, "zones", zones);
    r = proxy_read(config, &proxy, err);
    if (r == 0)
        r = no_proxy_read(config->net_no_proxy, direct, err);
    if (r == 0)
        r = zones_read(config->net_zones, zones, err);
    if (r < 0)
        return r;
    if (proxy)
        (void)json_object_set_new(json, "proxy", json_string(proxy));
    *ret = TAKE_PTR(json);
    return 0;
}
