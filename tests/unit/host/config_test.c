// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "check.h"
#include "host/core/config.h"
#include "host/core/settings.h"
#include "host/net/host_layer.h"
#include "host/sandbox/network.h"

static char file_path[] = "/tmp/holt-config-test-XXXXXX";

static void file_write(const char *text)
{
    FILE *file = fopen(file_path, "we");

    CHECK(file);
    CHECK(fputs(text, file) >= 0);
    CHECK(fclose(file) == 0);
}

static void load(const char *text, struct config *ret)
{
    struct err err = { 0 };

    file_write(text);
    CHECK(config_load(file_path, ret, &err) == 0, "(%s)", err.msg);
}

static void refuse(const char *text, const char *place, const char *reason)
{
    struct config config = { 0 };
    struct err err = { 0 };

    file_write(text);
    CHECK(config_load(file_path, &config, &err) < 0, "(%s was accepted)", text);
    CHECK(err.kind == ERR_INVALID);
    CHECK(strncmp(err.msg, file_path, strlen(file_path)) == 0, "(%s)", err.msg);
    CHECK(strstr(err.msg, place), "(%s)", err.msg);
    CHECK(strstr(err.msg, reason), "(%s)", err.msg);
}

static void defaults_are_complete(void)
{
    cleanup_with(config_done) struct config config = { 0 };

    load("", &config);
    CHECK_TEXT(config.state, "/var/lib/holt");
    CHECK_TEXT(config.run, "/run/holt");
    CHECK_TEXT(config.listen, "127.0.0.1:7070");
    CHECK_TEXT(config.runtime, "native");
    CHECK_TEXT(config.template, "host");
    CHECK_TEXT(config.log, "info");
    CHECK(config.pool_size == 4 && config.sandboxes_max == CONFIG_AUTO_COUNT);
    CHECK(config.limit_pids == 1024);
    CHECK(config.limit_memory == CONFIG_AUTO && config.quota == CONFIG_AUTO);
    CHECK(config.limit_cpus == 0 && config.limit_files == 16384 && config.limit_files_soft == 1024);
    CHECK(config.memory_reserve == CONFIG_AUTO);
    CHECK(config.template_bytes_max == UINT64_C(16) << 30 && config.template_files_max == 2000000);
}

static void a_file_sets_keys(void)
{
    cleanup_with(config_done) struct config config = { 0 };

    load("# a comment\n"
         "state = /tmp/a  # behind a value\n"
         "  listen=none\r\n"
         "run = \"/tmp/with space\"\n"
         "storage = zfs:tank/holt\n"
         "[limits]\n"
         "memory = 1.5G\n"
         "cpus = 1.5\n"
         "[pool]\n"
         "size = 0",
         &config);
    CHECK_TEXT(config.state, "/tmp/a");
    CHECK_TEXT(config.run, "/tmp/with space");
    CHECK_TEXT(config.listen, "none");
    CHECK_TEXT(config.storage, "zfs:tank/holt");
    CHECK(config.limit_memory == UINT64_C(3) << 29);
    CHECK(config.limit_cpus == 1500);
    CHECK(config.pool_size == 0);
}

static void no_limit_and_a_limit_that_depends_on_the_machine_differ(void)
{
    cleanup_with(config_done) struct config none = { 0 }, usual = { 0 };

    load("quota = 0\nlimits.memory = 0\n", &none);
    CHECK(none.quota == 0 && none.limit_memory == 0);
    load("quota = auto\nlimits.memory = auto\n", &usual);
    CHECK(usual.quota == CONFIG_AUTO && usual.limit_memory == CONFIG_AUTO);
    refuse("quota = automatic\n", ":1:", "not a valid size");
    refuse("tool.memory = auto\n", ":1:", "not a valid size");
}

static void a_bad_line_is_named_with_file_and_line(void)
{
    refuse("\n\nspeed = 9\n", ":3:", "unknown key 'speed'");
    refuse("[pool]\nsize = many\n", ":2:", "'many' is not a valid number");
    refuse("pool.size = -1\n", ":1:", "not a valid number");
    refuse("pool.size = 5000000000\n", ":1:", "too large");
    refuse("limits.memory = lots\n", ":1:", "not a valid size");
    refuse("limits.cpus = 1,5\n", ":1:", "not a valid number");
    refuse("limits.files = 63\n", ":1:", "limits.files must be at least 64");
    refuse("limits.files-soft = 0\n", ":1:", "at least 64");
    refuse("state = relative/dir\n", ":1:", "absolute");
    refuse("run = \n", ":1:", "absolute");
    refuse("listen = 7070\n", ":1:", "ADDR:PORT");
    refuse("listen = 127.0.0.1:99999\n", ":1:", "ADDR:PORT");
    refuse("storage = tape\n", ":1:", "auto, btrfs, zfs:POOL/DATASET or dir");
    refuse("storage = zfs:\n", ":1:", "auto, btrfs, zfs:POOL/DATASET or dir");
    refuse("storage = zfs:-o/x\n", ":1:", "auto, btrfs, zfs:POOL/DATASET or dir");
    refuse("log = loud\n", ":1:", "error, warn, info or debug");
    refuse("template = ../etc\n", ":1:", "not a valid name");
    refuse("just words\n", ":1:", "key = value");
    refuse("[pool\n", ":1:", "[section]");
    refuse("run = \"/tmp/x\n", ":1:", "closing quote");
    refuse("[pool]\npool.size = 1\n", ":2:", "unknown key 'pool.pool.size'");
}

static void a_method_belongs_to_the_rule_behind_it(void)
{
    cleanup_with(net_layer_done) struct net_layer layer = { 0 };
    struct err err = { 0 };

    CHECK(network_config_rules("a.test GET  http://h.test/x\tb.test", &layer, false, &err) == 0,
          "(%s)", err.msg);
    CHECK(layer.allow.count == 3);
    CHECK_TEXT(layer.allow.items[1].method, "GET");
    CHECK_TEXT(layer.allow.items[1].name, "h.test");
    CHECK_TEXT(layer.allow.items[2].name, "b.test");
    refuse("net.allow = a.test GET\n", ":1", "no URL follows the method 'GET'");
}

static void proxies_and_zones_are_checked(void)
{
    cleanup_with(config_done) struct config config = { 0 };

    load("net.proxy = socks5://proxy.test:1080\n"
         "net.no-proxy = 10.0.0.0/8 *.corp.test a.test:22\n"
         "net.zones = corp.test=10.0.0.53,10.0.0.54 lab.test=fd00::53\n",
         &config);
    CHECK_TEXT(config.net_proxy, "socks5://proxy.test:1080");
    refuse("net.proxy = proxy.test:1080\n", ":1", "socks5:// or http://");
    refuse("net.proxy = http://u:p@proxy.test:1080\n", ":1", "must not have a user name");
    refuse("net.no-proxy = https://a.test\n", ":1", "is not a name or a range");
    refuse("net.zones = corp.test\n", ":1", "is not ZONE=ADDRESS");
    refuse("net.zones = corp.test=\n", ":1", "no name server");
    refuse("net.zones = corp.test=ns.test\n", ":1", "not the address of a name server");
}

/* Each list has room in a layer, but both together have not. */
static void both_lists_of_rules_share_a_limit(void)
{
    cleanup_with(config_done) struct config config = { 0 };
    char rule[64];
    struct buf text = BUF_INIT(1 << 20);
    struct err err = { 0 };

    load("", &config);
    CHECK(settings_check(&config, &err) == 0, "(%s)", err.msg);
    for (unsigned i = 0; i < NET_LAYER_BYTES_MAX * 3 / 4 / 32; i++) {
        (void)snprintf(rule, sizeof(rule), "name-%03u-0123456789.example.test ", i);
        CHECK(buf_add_str(&text, rule) == 0);
    }
    free(config.net_allow);
    config.net_allow = strdup(text.data);
    CHECK(settings_check(&config, &err) == 0, "(%s)", err.msg);
    free(config.net_deny);
    config.net_deny = strdup(text.data);
    CHECK(settings_check(&config, &err) < 0);
    CHECK(strstr(err.msg, "net.deny") && strstr(err.msg, "bytes together"), "(%s)", err.msg);
    buf_done(&text);
}

static void a_missing_file_is_an_error_only_when_named(void)
{
    struct config config = { 0 };
    struct err err = { 0 };

    CHECK(config_load("/nonexistent/holt.conf", &config, &err) < 0);
    CHECK(err.kind == ERR_NOT_FOUND);
    if (access("/etc/holt/holt.conf", F_OK) == 0)
        return;
    CHECK(config_load(NULL, &config, &err) == 0, "(%s)", err.msg);
    config_done(&config);
}

static void environment_overrides_the_file_and_flags_override_both(void)
{
    cleanup_with(config_done) struct config config = { 0 };
    char *argv[] = { (char[]){ "holtd" }, (char[]){ "--pool-size=9" },
                     (char[]){ "--template-max-files" }, (char[]){ "77" }, NULL };
    struct option_table table = config_options();
    struct err err = { 0 };
    int next = 0;

    CHECK(setenv("HOLT_POOL_SIZE", "7", 1) == 0);
    CHECK(setenv("HOLT_SANDBOXES_MAX", "8", 1) == 0);
    CHECK(setenv("HOLT_RUNTIME", "", 1) == 0);
    CHECK(setenv("HOLT_HOST", "unix:///elsewhere", 1) == 0);
    CHECK(setenv("HOLT_TOKEN", "secret", 1) == 0);
    load("pool.size = 5\nsandboxes.max = 6\nlimits.pids = 3\n", &config);
    CHECK(config.pool_size == 7 && config.sandboxes_max == 8 && config.limit_pids == 3);
    CHECK_TEXT(config.runtime, "native");

    CHECK(options_parse(&table, &config, 4, argv, &next, &err) == 0, "(%s)", err.msg);
    CHECK(config.pool_size == 9 && config.sandboxes_max == 8 && config.template_files_max == 77);
    CHECK(unsetenv("HOLT_SANDBOXES_MAX") == 0);
}

static void a_bad_variable_is_named(void)
{
    struct config config = { 0 };
    struct err err = { 0 };

    CHECK(setenv("HOLT_POOL_SIZE", "x", 1) == 0);
    file_write("");
    CHECK(config_load(file_path, &config, &err) < 0);
    CHECK(strncmp(err.msg, "HOLT_POOL_SIZE: ", 16) == 0, "(%s)", err.msg);
    CHECK(unsetenv("HOLT_POOL_SIZE") == 0);
}

static void printed(const struct config *config, char *text, size_t size)
{
    FILE *out = fmemopen(text, size, "w");

    CHECK(out);
    config_print(config, out);
    CHECK(fclose(out) == 0);
}

static void what_is_printed_reads_back_the_same(void)
{
    cleanup_with(config_done) struct config first = { 0 }, second = { 0 };
    char once[8192] = "", twice[8192] = "";

    load("limits.cpus = 2.25\nlimits.memory = 1000\nrun = /tmp/with space\nlisten = [::1]:80\n",
         &first);
    printed(&first, once, sizeof(once));
    CHECK(strstr(once, "template.max-bytes = 16G\n"), "(%s)", once);
    CHECK(strstr(once, "limits.cpus = 2.250\n"), "(%s)", once);
    load(once, &second);
    printed(&second, twice, sizeof(twice));
    CHECK_TEXT(twice, once);
    CHECK(second.limit_cpus == 2250 && second.limit_memory == 1000);
}

static void the_time_of_tools_is_never_nothing(void)
{
    cleanup_with(config_done) struct config usual = { 0 }, none = { 0 }, zero = { 0 };
    char text[16384];

    load("", &usual);
    CHECK(usual.tool_timeout == 300000 && usual.tool_tokens == 10000 && !usual.tool_snapshots);
    load("[tool]\ntimeout = 0\nsnapshots = yes\nmemory = 1G\ncpus = 1.5\n", &zero);
    CHECK(zero.tool_timeout == 300000 && zero.tool_snapshots == 1 && zero.tool_cpus == 1500);
    load("tool.timeout = none\n", &none);
    CHECK(none.tool_timeout == CONFIG_NO_TIMEOUT);
    printed(&none, text, sizeof(text));
    CHECK(strstr(text, "\ntool.timeout = none\n") && strstr(text, "\ntool.snapshots = no\n"));
    refuse("tool.snapshots = perhaps\n", ":1", "yes or no");
    refuse("tool.timeout = soon\n", ":1", "time");
}

static void odd_files_are_refused_or_harmless(void)
{
    struct config config = { 0 };
    struct err err = { 0 };
    FILE *file = fopen(file_path, "we");

    CHECK(file && fwrite("state = /a\0b\n", 1, 13, file) == 13 && fclose(file) == 0);
    CHECK(config_load(file_path, &config, &err) < 0);
    CHECK(config_load("/tmp", &config, &err) < 0);
    refuse("= 3\n", ":1:", "unknown key");
    refuse("[]\n", ":1:", "[section]");
    refuse("[a]]\n]\n", ":2:", "key = value");
}

static void all(void)
{
    int fd = mkstemp(file_path);

    CHECK(fd >= 0 && close(fd) == 0);
    RUN(defaults_are_complete);
    RUN(a_file_sets_keys);
    RUN(no_limit_and_a_limit_that_depends_on_the_machine_differ);
    RUN(a_bad_line_is_named_with_file_and_line);
    RUN(a_method_belongs_to_the_rule_behind_it);
    RUN(both_lists_of_rules_share_a_limit);
    RUN(proxies_and_zones_are_checked);
    RUN(a_missing_file_is_an_error_only_when_named);
    RUN(environment_overrides_the_file_and_flags_override_both);
    RUN(a_bad_variable_is_named);
    RUN(what_is_printed_reads_back_the_same);
    RUN(the_time_of_tools_is_never_nothing);
    RUN(odd_files_are_refused_or_harmless);
    CHECK(unlink(file_path) == 0);
}

int main(void)
{
    RUN(all);
    return 0;
}
