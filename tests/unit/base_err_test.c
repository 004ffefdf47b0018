// SPDX-License-Identifier: Apache-2.0
#include <errno.h>

#include "base/err.h"
#include "check.h"

static void a_refusal_carries_kind_errno_and_message(void)
{
    struct err err = { 0 };

    CHECK(err_set(&err, ERR_NOT_FOUND, "no template '%s'", "debian") == -ENOENT);
    CHECK(err.kind == ERR_NOT_FOUND && err.errnum == ENOENT);
    CHECK_TEXT(err.msg, "no template 'debian'");
}

static void a_failed_call_keeps_its_errno_and_says_the_reason(void)
{
    struct err err = { 0 };

    CHECK(err_sys(&err, -ENOENT, "open '%s'", "/x") == -ENOENT);
    CHECK(err.kind == ERR_INTERNAL, "(an ENOENT inside is not the client's not_found)");
    CHECK(err.errnum == ENOENT);
    CHECK_TEXT(err.msg, "open '/x': No such file or directory");
}

static void a_failed_call_without_errno_is_an_io_error(void)
{
    struct err err = { 0 };

    CHECK(err_sys(&err, 0, "read") == -EIO);
    CHECK_TEXT(err.msg, "read: Input/output error");
}

static void a_long_noun_does_not_push_out_the_reason(void)
{
    static const char reason[] = ": Permission denied";
    struct err err = { 0 };
    char noun[1000];

    memset(noun, 'n', sizeof(noun));
    noun[sizeof(noun) - 1] = '\0';
    CHECK(err_sys(&err, -EACCES, "open %s", noun) == -EACCES);
    CHECK(strlen(err.msg) == sizeof(err.msg) - 1);
    CHECK_TEXT(err.msg + strlen(err.msg) - strlen(reason), reason);
}

static void wrapping_puts_context_in_front(void)
{
    struct err err = { 0 };

    (void)err_set(&err, ERR_EXHAUSTED, "disk full");
    CHECK(err_wrap(&err, "import '%s'", "a") == -ENOSPC);
    CHECK(err.kind == ERR_EXHAUSTED);
    CHECK_TEXT(err.msg, "import 'a': disk full");
}

static void a_message_is_cut_never_overrun(void)
{
    struct err err = { 0 };
    char text[1000];

    memset(text, 't', sizeof(text));
    text[sizeof(text) - 1] = '\0';
    (void)err_set(&err, ERR_INVALID, "%s", text);
    CHECK(strlen(err.msg) == sizeof(err.msg) - 1);
    (void)err_wrap(&err, "%s", text);
    CHECK(strlen(err.msg) == sizeof(err.msg) - 1);
}

static void every_kind_has_a_name(void)
{
    for (int kind = ERR_NONE; kind < ERR_KINDS; kind++) {
        const char *name = err_kind_name((enum err_kind)kind);

        CHECK(name && *name && strcmp(name, "unknown") != 0, "(kind %d)", kind);
    }
    CHECK_TEXT(err_kind_name(ERR_KINDS), "unknown");
}

int main(void)
{
    RUN(a_refusal_carries_kind_errno_and_message);
    RUN(a_failed_call_keeps_its_errno_and_says_the_reason);
    RUN(a_failed_call_without_errno_is_an_io_error);
    RUN(a_long_noun_does_not_push_out_the_reason);
    RUN(wrapping_puts_context_in_front);
    RUN(a_message_is_cut_never_overrun);
    RUN(every_kind_has_a_name);
    return 0;
}
