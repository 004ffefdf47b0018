// SPDX-License-Identifier: Apache-2.0
#include <errno.h>

#include "base/cleanup.h"
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

static void every_kind_has_its_row(void)
{
    static const struct {
        enum err_kind kind;
        const char *code;
        unsigned http_status;
        int exit_status;
        bool is_retryable;
    } wanted[] = {
        { ERR_NONE, "unknown", 500, 125, false },
        { ERR_INVALID, "invalid_argument", 400, 2, false },
        { ERR_NOT_FOUND, "not_found", 404, 3, false },
        { ERR_EXISTS, "already_exists", 409, 4, false },
        { ERR_DENIED, "permission_denied", 403, 5, false },
        { ERR_UNAUTHENTICATED, "unauthenticated", 401, 6, false },
        { ERR_EXHAUSTED, "resource_exhausted", 429, 7, false },
        { ERR_BUSY, "failed_precondition", 400, 8, false },
        { ERR_UNSUPPORTED, "unimplemented", 501, 9, false },
        { ERR_UNAVAILABLE, "unavailable", 503, 10, true },
        { ERR_DEADLINE, "deadline_exceeded", 504, 11, true },
        { ERR_CANCELED, "canceled", 499, 12, true },
        { ERR_INTERNAL, "internal", 500, 125, false },
    };

    CHECK(ARRAY_SIZE(wanted) == ERR_KINDS);
    for (size_t i = 0; i < ARRAY_SIZE(wanted); i++) {
        const struct err_kind_row *row = err_kind_row(wanted[i].kind);

        CHECK_TEXT(row->code, wanted[i].code);
        CHECK(row->http_status == wanted[i].http_status, "(%s)", row->code);
        CHECK(row->exit_status == wanted[i].exit_status, "(%s)", row->code);
        CHECK(row->is_retryable == wanted[i].is_retryable, "(%s)", row->code);
        CHECK(row->name && err_kind_name(wanted[i].kind) == row->name);
        CHECK(err_kind_of_code(row->code) == wanted[i].kind);
    }
    CHECK_TEXT(err_kind_name(ERR_KINDS), "unknown");
    CHECK(err_kind_row(ERR_KINDS) == err_kind_row(ERR_NONE));
    CHECK(err_kind_of_code("out_of_range") == ERR_NONE);
}

static void every_cause_has_a_name_and_a_kind(void)
{
    CHECK(!err_cause_name(CAUSE_NONE) && !err_cause_name(ERR_CAUSES));
    for (int cause = CAUSE_NONE + 1; cause < ERR_CAUSES; cause++) {
        struct err err = { 0 };

        CHECK(err_refuse(&err, (enum err_cause)cause, "no") < 0);
        CHECK(err.kind != ERR_NONE && err_cause_name(err.cause), "(cause %d)", cause);
        CHECK(!err_remedy_of(&err) || strlen(err_remedy_of(&err)) < sizeof(err.remedy));
    }
}

static void a_remedy_is_of_the_error_its_cause_or_its_kind(void)
{
    struct err err = { 0 };

    (void)err_set(&err, ERR_NOT_FOUND, "no 'x'");
    CHECK(!err_remedy_of(&err));
    (void)err_set(&err, ERR_UNAUTHENTICATED, "who");
    CHECK(strstr(err_remedy_of(&err), "HOLT_TOKEN"));
    CHECK(err_refuse(&err, CAUSE_SESSION_PAUSED, "paused") == -EBUSY);
    CHECK(strstr(err_remedy_of(&err), "holt resume"));
    CHECK(err_remedy(&err, "wake %s", "it") == -EBUSY);
    CHECK_TEXT(err_remedy_of(&err), "wake it");
    CHECK(err_wrap(&err, "exec") == -EBUSY);
    CHECK_TEXT(err_remedy_of(&err), "wake it");
    (void)err_sys(&err, -EIO, "read");
    CHECK(!strstr(err_remedy_of(&err), "wake"), "(of the error before)");
}

static void a_cause_knows_better_than_its_kind_whether_to_try_again(void)
{
    struct err err = { 0 };

    (void)err_set(&err, ERR_BUSY, "no");
    CHECK(!err_is_retryable(&err));
    (void)err_refuse(&err, CAUSE_ROLLBACK_IN_PROGRESS, "no");
    CHECK(err.kind == ERR_BUSY && err_is_retryable(&err));
    (void)err_refuse(&err, CAUSE_MAX_SESSIONS_REACHED, "no");
    CHECK(err.kind == ERR_EXHAUSTED && err_is_retryable(&err));
    (void)err_refuse(&err, CAUSE_QUOTA_EXCEEDED, "no");
    CHECK(err.kind == ERR_EXHAUSTED && !err_is_retryable(&err));
    (void)err_refuse(&err, CAUSE_SHUTTING_DOWN, "no");
    CHECK(err.kind == ERR_UNAVAILABLE && err_is_retryable(&err));
}

static void a_message_is_one_line_whatever_it_quotes(void)
{
    struct err err = { 0 };

    (void)err_set(&err, ERR_INVALID, "no '%s'", "a\nb\033[1m\x7f\xc3\xa9");
    CHECK_TEXT(err.msg, "no 'a?b?[1m?\xc3\xa9'");
    (void)err_sys(&err, -ENOENT, "open %s", "x\ty");
    CHECK_TEXT(err.msg, "open x?y: No such file or directory");
    (void)err_wrap(&err, "in %s", "\r");
    CHECK_TEXT(err.msg, "in ?: open x?y: No such file or directory");
}

int main(void)
{
    RUN(a_refusal_carries_kind_errno_and_message);
    RUN(a_failed_call_keeps_its_errno_and_says_the_reason);
    RUN(a_failed_call_without_errno_is_an_io_error);
    RUN(a_long_noun_does_not_push_out_the_reason);
    RUN(wrapping_puts_context_in_front);
    RUN(a_message_is_cut_never_overrun);
    RUN(every_kind_has_its_row);
    RUN(every_cause_has_a_name_and_a_kind);
    RUN(a_remedy_is_of_the_error_its_cause_or_its_kind);
    RUN(a_cause_knows_better_than_its_kind_whether_to_try_again);
    RUN(a_message_is_one_line_whatever_it_quotes);
    return 0;
}
