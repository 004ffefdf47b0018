// SPDX-License-Identifier: Apache-2.0
/* edit_file and multi_edit: one replacement in a file, or several. */
#include "tools/edit/edit.h"

void tool_edit_file(const struct tool_values *values, struct tool_reply *reply)
{
    const struct tool_edit edit = {
        .old_text = values->at[EDIT_OLD].text,
        .new_text = values->at[EDIT_NEW].text,
        .all = values->at[EDIT_ALL].number,
    };

    edit_run(&values->at[EDIT_PATH].text, &edit, 1, reply);
}

void tool_multi_edit(const struct tool_values *values, struct tool_reply *reply)
{
    const struct tool_value *edits = &values->at[MULTI_EDIT_EDITS];

    if (edits->count == 0)
        tool_refuse(reply, "There are no edits. Give at least one.");
    else
        edit_run(&values->at[MULTI_EDIT_PATH].text, edits->edits, edits->count, reply);
}
