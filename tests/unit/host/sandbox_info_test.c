// SPDX-License-Identifier: Apache-2.0
#include "base/cleanup.h"
#include "check.h"
#include "host/sandbox/info.h"

static void every_state_has_a_name_that_reads_back(void)
{
    for (unsigned i = 0; i < SANDBOX_STATES; i++) {
        enum sandbox_state state = SANDBOX_STATES;

        CHECK(sandbox_state_parse(sandbox_state_name(i), &state) && state == i);
    }
    CHECK_TEXT(sandbox_state_name(SANDBOX_CREATING), "creating");
    CHECK_TEXT(sandbox_state_name(SANDBOX_ROLLING_BACK), "rolling-back");
    CHECK_TEXT(sandbox_state_name(SANDBOX_FAILED), "failed");
    CHECK_TEXT(sandbox_state_name(SANDBOX_STATES), "unknown");
}

static void actions_and_kinds_have_names_that_read_back(void)
{
    enum sandbox_action action = ACTION_KILL;
    enum snapshot_kind kind = SNAPSHOT_TURN;

    CHECK_TEXT(sandbox_action_name(ACTION_KILL), "kill");
    CHECK(sandbox_action_parse("pause", &action) && action == ACTION_PAUSE);
    CHECK(sandbox_action_parse("kill", &action) && action == ACTION_KILL);
    CHECK_TEXT(snapshot_kind_name(SNAPSHOT_TURN), "turn");
    CHECK_TEXT(snapshot_kind_name(SNAPSHOT_TOOL), "tool");
    CHECK(snapshot_kind_parse("named", &kind) && kind == SNAPSHOT_NAMED);
}

static void other_words_are_no_names(void)
{
    static const char *const words[] = {
        "", "unknown", "Active", "active ", "rolling_back", "act"
    };
    enum sandbox_state state = SANDBOX_PAUSED;
    enum sandbox_action action = ACTION_PAUSE;
    enum snapshot_kind kind = SNAPSHOT_TOOL;

    for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
        CHECK(!sandbox_state_parse(words[i], &state) && state == SANDBOX_PAUSED);
        CHECK(!sandbox_action_parse(words[i], &action) && action == ACTION_PAUSE);
        CHECK(!snapshot_kind_parse(words[i], &kind) && kind == SNAPSHOT_TOOL);
    }
}

static void a_copy_has_labels_of_its_own(void)
{
    struct label label = { "key", "value" };
    struct sandbox_info info = { .id = "s1", .labels = &label, .label_count = 1 }, copy;

    sandbox_info_copy(&info, &copy);
    CHECK(copy.labels != info.labels && copy.label_count == 1);
    CHECK_TEXT(copy.labels[0].value, "value");
    CHECK_TEXT(copy.id, "s1");
    sandbox_info_done(&copy);
    CHECK(!copy.labels && copy.label_count == 0);
    sandbox_info_done(&copy);
}

int main(void)
{
    RUN(every_state_has_a_name_that_reads_back);
    RUN(actions_and_kinds_have_names_that_read_back);
    RUN(other_words_are_no_names);
    RUN(a_copy_has_labels_of_its_own);
    return 0;
}
