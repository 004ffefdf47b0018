// SPDX-License-Identifier: Apache-2.0
#include "base/cleanup.h"
#include "base/err.h"
#include "check.h"
#include "host/core/limits.h"
#include "host/owner/ceiling.h"
#include "host/owner/owner_internal.h"

static struct err err;

static void parse(struct ceilings *ceilings, const char *name, const char *text)
{
    enum ceiling which;

    CHECK(ceiling_find(name, &which));
    CHECK(ceiling_parse(ceilings, which, text, &err) == 0, "(%s)", err.msg);
}

static void texts_are_read_back(void)
{
    static const char *const values[][3] = {
        { "sandboxes", "20", "20" },
        { "sandboxes", "none", "none" },
        { "memory", "8G", "8G" },
        { "memory", "0", "0" },
        { "memory", "1536M", "1536M" },
        { "cpus", "1.5", "1.500" },
        { "cpus", "4", "4" },
        { "disk", "20GiB", "20G" },
        { "pids", "4096", "4096" },
        { "ttl", "1h30m", "90m" },
        { "ttl", "1500ms", "1500ms" },
        { "ttl", "none", "none" },
        { "runtimes", "native,gvisor", "native,gvisor" },
        { "runtimes", "all", "all" },
        { "runtime-min", "gvisor", "gvisor" },
        { "runtime-min", "none", "none" },
        { "network", "allow", "allow" },
        { "network", "none", "none" },
    };
    char text[CEILING_TEXT_SIZE];

    for (size_t i = 0; i < ARRAY_SIZE(values); i++) {
        struct ceilings ceilings = { .runtimes = "" };
        enum ceiling which;

        parse(&ceilings, values[i][0], values[i][1]);
        CHECK(ceiling_find(values[i][0], &which) && ceilings.is_set[which]);
        ceiling_format(&ceilings, which, text);
        CHECK_TEXT(text, values[i][2]);
        parse(&ceilings, values[i][0], text);
    }
}

static void bad_values_are_refused(void)
{
    static const char *const values[][2] = {
        { "sandboxes", "-1" },    { "sandboxes", "" },   { "memory", "8X" },
        { "cpus", "x" },          { "disk", "lots" },    { "pids", "1.5" },
        { "ttl", "0" },           { "ttl", "soon" },     { "runtimes", "" },
        { "runtimes", "a,,b" },   { "runtimes", "a," },  { "network", "x" },
        { "runtimes", "../etc" }, { "runtime-min", "" }, { "runtime-min", "gvisr" },
    };
    struct ceilings ceilings = { .runtimes = "" };
    enum ceiling which;

    for (size_t i = 0; i < ARRAY_SIZE(values); i++) {
        CHECK(ceiling_find(values[i][0], &which));
        CHECK(ceiling_parse(&ceilings, which, values[i][1], &err) < 0, "(%s = %s was accepted)",
              values[i][0], values[i][1]);
        CHECK(err.kind == ERR_INVALID && !ceilings.is_set[which]);
    }
    CHECK(!ceiling_find("swap", &which));
}

static void settings_of_owners_are_found(void)
{
    cleanup_with(owner_settings_done) struct owner_settings settings = { .items = NULL };
    cleanup_with(owner_settings_done) struct owner_settings other = { .items = NULL };

    CHECK(owner_settings_set(&settings, "ann.sandboxes", "3", &err) == 0);
    CHECK(owner_settings_set(&settings, "*.memory", "1G", &err) == 0);
    CHECK(owner_settings_set(&settings, "a.b.pids", "9", &err) == 0);
    CHECK(ceiling_number(owner_settings_find(&settings, "a.b"), CEILING_PIDS) == 9);
    CHECK(!owner_settings_find(&settings, "bob"));
    CHECK(owner_settings_set(&settings, "ann.colour", "3", &err) < 0);
    CHECK(owner_settings_set(&settings, "sandboxes", "3", &err) < 0);
    CHECK(owner_settings_set(&settings, "a b.sandboxes", "3", &err) < 0);
    CHECK(owner_settings_set(&settings, "ann.sandboxes", "many", &err) < 0);
    owner_settings_copy(&settings, &other);
    CHECK(owner_settings_equal(&settings, &other));
    CHECK(owner_settings_set(&other, "ann.sandboxes", "4", &err) == 0);
    CHECK(!owner_settings_equal(&settings, &other));
}

static void charge_of(const char *owner, uint64_t memory, struct owner_charge *ret)
{
    const struct sandbox_limits limits = { .memory_bytes = memory, .cpu_millis = 500, .pids = 10 };

    owner_charge_fill(owner, &limits, 1 << 20, ret);
}

DEFINE_CLEANUP(owner_table_free, struct owner_table *);

static void nothing_exceeds_a_ceiling(void)
{
    cleanup_with(owner_table_free_slot) struct owner_table *table = owner_table_new();
    struct ceilings set = { .runtimes = "" };
    struct owner_charge ann, bob;
    struct owner_info info;

    parse(&set, "sandboxes", "3");
    parse(&set, "memory", "100M");
    owner_table_set(table, "ann", &set);
    charge_of("ann", 30 << 20, &ann);
    charge_of("bob", 900 << 20, &bob);
    CHECK(owner_table_add(table, &ann, 2, &err) == 0);
    CHECK(owner_table_add(table, &ann, 2, &err) < 0 && err.kind == ERR_EXHAUSTED);
    CHECK_TEXT(err.msg, "owner 'ann' has 2 of 3 sandboxes and asks for 2 more (ceiling "
                        "owner.sandboxes)");
    CHECK(owner_table_add(table, &ann, 1, &err) == 0);
    CHECK(owner_table_add(table, &ann, 1, &err) < 0 && err.cause == CAUSE_CEILING_REACHED);
    CHECK_TEXT(err.msg, "owner 'ann' has 3 of 3 sandboxes (ceiling owner.sandboxes)");
    CHECK(owner_table_add(table, &bob, 50, &err) == 0);
    owner_table_subtract(table, &ann);
    charge_of("ann", 41 << 20, &ann);
    CHECK(owner_table_add(table, &ann, 1, &err) < 0);
    CHECK_TEXT(err.msg, "owner 'ann' has 60M of 100M memory and asks for 41M more (ceiling "
                        "owner.memory)");
    owner_table_get(table, "ann", &info);
    CHECK(info.used[CEILING_SANDBOXES] == 2 && info.used[CEILING_MEMORY] == 60 << 20);
    CHECK(info.used[CEILING_CPUS] == 1000 && info.used[CEILING_PIDS] == 20);
    CHECK(info.used[CEILING_DISK] == 2 << 20);
}

static void a_huge_amount_does_not_wrap(void)
{
    cleanup_with(owner_table_free_slot) struct owner_table *table = owner_table_new();
    struct ceilings set = { .runtimes = "" };
    struct owner_charge charge;

    parse(&set, "memory", "16G");
    owner_table_set(table, "ann", &set);
    charge_of("ann", SANDBOX_MEMORY_MAX, &charge);
    CHECK(owner_table_add(table, &charge, 256, &err) < 0 && err.kind == ERR_EXHAUSTED);
    charge.amounts[CEILING_MEMORY] = (UINT64_MAX >> 8) + 1; /* times 256 it is 0 */
    CHECK(owner_table_add(table, &charge, 256, &err) < 0 && err.kind == ERR_EXHAUSTED);
    charge.amounts[CEILING_MEMORY] = 1;
    charge.amounts[CEILING_DISK] = UINT64_MAX;
    CHECK(owner_table_add(table, &charge, 2, &err) == 0);
    owner_table_subtract(table, &charge);
    owner_table_subtract(table, &charge);
    charge.amounts[CEILING_MEMORY] = SANDBOX_MEMORY_MAX;
    CHECK(owner_table_add(table, &charge, 1, &err) < 0 && err.kind == ERR_EXHAUSTED);
}

static void a_lowered_ceiling_refuses_only_more(void)
{
    cleanup_with(owner_table_free_slot) struct owner_table *table = owner_table_new();
    struct ceilings set = { .runtimes = "" };
    struct owner_charge old, less, more;

    charge_of("ann", 50 << 20, &old);
    charge_of("ann", 40 << 20, &less);
    charge_of("ann", 60 << 20, &more);
    owner_table_count_in(table, &old);
    parse(&set, "memory", "10M");
    owner_table_set(table, "ann", &set);
    CHECK(owner_table_change(table, &old, &more, &err) < 0);
    CHECK(owner_table_change(table, &old, &less, &err) == 0);
    CHECK(owner_table_add(table, &less, 1, &err) < 0);
    owner_table_subtract(table, &less);
}

static void a_command_wins_over_the_file(void)
{
    cleanup_with(owner_settings_done) struct owner_settings settings = { .items = NULL };
    cleanup_with(owner_table_free_slot) struct owner_table *table = owner_table_new();
    struct ceilings set = { .runtimes = "" };
    struct owner_info info;

    CHECK(owner_settings_set(&settings, "*.sandboxes", "5", &err) == 0);
    CHECK(owner_settings_set(&settings, "*.pids", "100", &err) == 0);
    CHECK(owner_settings_set(&settings, "ann.sandboxes", "6", &err) == 0);
    owner_table_configure(table, &settings);
    owner_table_get(table, "ann", &info);
    CHECK(ceiling_number(&info.ceilings, CEILING_SANDBOXES) == 6);
    CHECK(info.sources[CEILING_SANDBOXES] == SOURCE_FILE);
    CHECK(info.sources[CEILING_PIDS] == SOURCE_DEFAULT && info.sources[CEILING_TTL] == SOURCE_NONE);
    parse(&set, "sandboxes", "none");
    owner_table_set(table, "ann", &set);
    owner_table_get(table, "ann", &info);
    CHECK(ceiling_number(&info.ceilings, CEILING_SANDBOXES) == CEILING_UNLIMITED);
    CHECK(info.sources[CEILING_SANDBOXES] == SOURCE_COMMAND);
    owner_table_set(table, "ann", NULL);
    owner_table_get(table, "ann", &info);
    CHECK(ceiling_number(&info.ceilings, CEILING_SANDBOXES) == 6);
    owner_table_get(table, OWNER_ROOT, &info);
    CHECK(ceiling_number(&info.ceilings, CEILING_SANDBOXES) == CEILING_UNLIMITED);
}

static void what_is_not_asked_for_fits(void)
{
    struct ceilings ceilings = { .runtimes = "" };
    struct sandbox_limits asked = { .memory_bytes = 5 << 20 };
    struct sandbox_limits limits = { .memory_bytes = 5 << 20, .pids = 1024 };
    uint64_t ttl_ms;

    parse(&ceilings, "memory", "4M");
    parse(&ceilings, "pids", "100");
    parse(&ceilings, "cpus", "0.5");
    parse(&ceilings, "ttl", "1h");
    ceilings_fill_limits(&ceilings, &asked, &limits);
    CHECK(limits.memory_bytes == 5 << 20 && limits.pids == 100 && limits.cpu_millis == 500);
    CHECK(ceilings_limit_ttl(&ceilings, "ann", 0, &ttl_ms, &err) == 0 && ttl_ms == 3600000);
    CHECK(ceilings_limit_ttl(&ceilings, "ann", 60000, &ttl_ms, &err) == 0 && ttl_ms == 60000);
    CHECK(ceilings_limit_ttl(&ceilings, "ann", 7200000, &ttl_ms, &err) < 0);
    CHECK_TEXT(err.msg, "a sandbox of owner 'ann' lives at most 1h, not 2h (ceiling owner.ttl)");
}

int main(void)
{
    RUN(texts_are_read_back);
    RUN(bad_values_are_refused);
    RUN(settings_of_owners_are_found);
    RUN(nothing_exceeds_a_ceiling);
    RUN(a_huge_amount_does_not_wrap);
    RUN(a_lowered_ceiling_refuses_only_more);
    RUN(a_command_wins_over_the_file);
    RUN(what_is_not_asked_for_fits);
    return 0;
}
