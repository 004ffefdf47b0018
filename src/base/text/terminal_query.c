// SPDX-License-Identifier: Apache-2.0
#include "base/text/terminal_query.h"

#include <stdlib.h>
#include <string.h>

enum { ENQ = 0x05, BEL = 0x07, CAN = 0x18, SUB = 0x1a, ESC = 0x1b };

/* A sequence at the start of some bytes. */
struct sequence {
    size_t len; /* 0: it is not complete */
    bool is_query;
    bool is_complete;            /* a terminal reads nothing more for it */
    enum terminal_string string; /* it is the start of a string of any length */
};

/* A control sequence: ESC [ PREFIX PARAMETERS INTERMEDIATE FINAL. */
struct control {
    char prefix;       /* one of "<=>?"; 0: none */
    char intermediate; /* the last one; 0: none */
    char final;
    int first; /* parameter */
};

static bool is_among(char byte, const char *set)
{
    return byte != '\0' && strchr(set, byte);
}

/* Window reports; other numbers move or resize it. */
static bool is_window_report(int first)
{
    return first == 11 || (first >= 13 && first <= 16) || (first >= 18 && first <= 21);
}

/* The names are those of xterm's ctlseqs. */
static bool is_control_query(const struct control *control)
{
    bool is_plain = !control->prefix && !control->intermediate;

    switch (control->final) {
    case 'c': /* DA1, DA2, DA3; ESC [ ? 6 c is the cursor of the Linux console */
        return control->prefix != '?' && !control->intermediate;
    case 'n': /* DSR, CPR */
        return control->prefix != '>' && !control->intermediate;
    case 'p': /* DECRQM */
        return control->intermediate == '$';
    case 'q': /* XTVERSION */
        return control->prefix == '>' && !control->intermediate;
    case 't':
        return is_plain && is_window_report(control->first);
    case 'u': /* kitty's keyboard flags, DECRQUPSS, DECRQTSR */
        return control->prefix == '?' || is_among(control->intermediate, "&$");
    case 'v': /* DECRQDE */
        return control->intermediate == '"';
    case 'w': /* DECRQPSR */
        return control->intermediate == '$';
    case 'x': /* DECREQTPARM */
        return is_plain;
    case 'y': /* DECRQCRA */
        return control->intermediate == '*';
    case 'm': /* XTQMODKEYS */
    case 'S': /* XTSMGRAPHICS */
        return control->prefix == '?';
    case '|': /* DECRQLP */
        return control->intermediate == '\'';
    default:
        return false;
    }
}

/* Terminals execute other control characters inside a sequence and go on with it. */
static bool ends_sequence(char byte)
{
    return byte == ESC || byte == CAN || byte == SUB || (unsigned char)byte >= 0x7f;
}

static struct sequence control_parse(const char *data, size_t len)
{
    struct control control = { .first = 0 };
    bool is_first = true;

    for (size_t i = 2; i < len; i++) {
        char byte = data[i];

        if (ends_sequence(byte))
            return (struct sequence){ .len = i };
        if (byte >= '@') {
            control.final = byte;
            return (struct sequence){ .len = i + 1,
                                      .is_query = is_control_query(&control),
                                      .is_complete = true };
        }
        if (byte >= '<')
            control.prefix = byte;
        else if (byte >= '0' && byte <= '9' && is_first && control.first < 1000)
            control.first = control.first * 10 + (byte - '0');
        else if (byte == ';' || byte == ':')
            is_first = false;
        else if (byte >= ' ' && byte <= '/')
            control.intermediate = byte;
    }
    return (struct sequence){ .len = 0 };
}

/* Returns whether an operating system command asks for something: colours (4, 5, 10 to 19, 21), the
 * pointer (22), the font (50), the clipboard (52). A parameter that is "?" makes it a request. */
static bool is_osc_query(const char *data, size_t len)
{
    unsigned number = 0;
    size_t i = 0;

    for (; i < len && data[i] >= '0' && data[i] <= '9' && number < 1000; i++)
        number = number * 10 + (unsigned)(data[i] - '0');
    if (number != 4 && number != 5 && !(number >= 10 && number <= 22) && number != 50 &&
        number != 52)
        return false;
    for (; i + 1 < len; i++)
        if (data[i] == ';' && data[i + 1] == '?' && (i + 2 == len || data[i + 2] == ';'))
            return true;
    return false;
}

/* A string that is longer than a request is shown; its length is not known yet. */
static struct sequence osc_parse(const char *data, size_t len)
{
    for (size_t i = 2; i < len; i++) {
        bool is_st = data[i] == ESC && i + 1 < len && data[i + 1] == '\\';

        if (data[i] == ESC && i + 1 == len)
            break;
        if (data[i] == BEL || is_st)
            return (struct sequence){ .len = i + (is_st ? 2 : 1),
                                      .is_query = is_osc_query(data + 2, i - 2),
                                      .is_complete = true };
        if (data[i] == ESC || data[i] == CAN || data[i] == SUB)
            return (struct sequence){ .len = i, .is_query = is_osc_query(data + 2, i - 2) };
    }
    if (len >= TERMINAL_QUERY_MAX)
        return (struct sequence){ .len = 2, .string = STRING_SHOWN };
    return (struct sequence){ .len = 0 };
}

/* DECRQSS is ESC P $ q, XTGETTCAP is ESC P + q. */
static struct sequence device_parse(const char *data, size_t len)
{
    char intermediate = '\0';

    for (size_t i = 2; i < len; i++) {
        bool is_final = data[i] >= '@' && !ends_sequence(data[i]);

        if (ends_sequence(data[i]))
            return (struct sequence){ .len = i };
        if (is_final && data[i] == 'q' && is_among(intermediate, "$+"))
            return (struct sequence){ .len = i + 1, .is_query = true, .string = STRING_HIDDEN };
        if (is_final)
            return (struct sequence){ .len = i + 1, .string = STRING_SHOWN };
        if (data[i] >= ' ' && data[i] <= '/')
            intermediate = data[i];
    }
    return (struct sequence){ .len = 0 };
}

/* A graphics command of kitty, ESC _ G KEY=VALUE,...;DATA, is a request if it has a=q. */
static struct sequence application_parse(const char *data, size_t len)
{
    size_t key = 3; /* where the current one starts */

    if (len > 2 && data[2] != 'G')
        return (struct sequence){ .len = 2, .string = STRING_SHOWN };
    for (size_t i = 3; i < len; i++) {
        bool is_end = data[i] == ';' || data[i] == ESC || data[i] == CAN || data[i] == SUB;

        if (!is_end && data[i] != ',')
            continue;
        if (i == key + 3 && memcmp(data + key, "a=q", 3) == 0)
            return (struct sequence){ .len = i, .is_query = true, .string = STRING_HIDDEN };
        if (is_end)
            return (struct sequence){ .len = 2, .string = STRING_SHOWN };
        key = i + 1;
    }
    if (len >= TERMINAL_QUERY_MAX)
        return (struct sequence){ .len = 2, .string = STRING_SHOWN };
    return (struct sequence){ .len = 0 };
}

/* Looks at TERMINAL_QUERY_MAX bytes at most, so that the result does not depend on the pieces. */
static struct sequence sequence_parse(const char *data, size_t len)
{
    if (len > TERMINAL_QUERY_MAX)
        len = TERMINAL_QUERY_MAX;
    if (len < 2)
        return (struct sequence){ .len = 0 };
    switch (data[1]) {
    case '[':
        return control_parse(data, len);
    case ']':
        return osc_parse(data, len);
    case 'P':
        return device_parse(data, len);
    case 'X':
    case '^':
        return (struct sequence){ .len = 2, .string = STRING_SHOWN };
    case '_':
        return application_parse(data, len);
    case 'Z': /* DECID */
        return (struct sequence){ .len = 2, .is_query = true };
    default:
        return (struct sequence){ .len = 1 };
    }
}

/* Returns how many of the bytes belong to the string. Its end is the ESC of ESC \\, which alone
 * does nothing. */
static size_t string_pass(struct terminal_query_filter *filter, char *data, size_t len)
{
    size_t i = 0;

    while (i < len && data[i] != ESC && data[i] != CAN && data[i] != SUB &&
           !(filter->is_osc && data[i] == BEL))
        i++;
    if (filter->string == STRING_HIDDEN)
        memset(data, '\0', i);
    if (i < len) {
        filter->string = STRING_NONE;
        filter->is_open = data[i] == ESC;
    }
    return i;
}

/* CAN ends what a terminal may still be reading; otherwise the next text would become part of it.
 */
static void hide(const struct terminal_query_filter *filter, char *data, size_t len)
{
    memset(data, '\0', len);
    if (filter->is_open)
        data[0] = CAN;
}

/* Returns how many bytes are done; 0: the sequence is not complete. */
static size_t sequence_pass(struct terminal_query_filter *filter, char *data, size_t len,
                            bool is_last)
{
    struct sequence sequence = sequence_parse(data, len);

    if (sequence.len == 0 && !is_last && len < TERMINAL_QUERY_MAX)
        return 0;
    if (sequence.len == 0)
        sequence.len = 1;
    filter->string = sequence.string;
    filter->is_osc = len > 1 && data[1] == ']';
    if (sequence.is_query)
        hide(filter, data, sequence.len);
    filter->is_open = !sequence.is_query && !sequence.is_complete;
    return sequence.len;
}

size_t terminal_query_hide(struct terminal_query_filter *filter, char *data, size_t len,
                           bool is_last)
{
    size_t i = 0;

    while (i < len) {
        size_t done;

        if (filter->string != STRING_NONE) {
            i += string_pass(filter, data + i, len - i);
            continue;
        }
        if (data[i] == ENQ)
            data[i] = '\0';
        if (data[i] != ESC) {
            i++;
            continue;
        }
        done = sequence_pass(filter, data + i, len - i, is_last);
        if (done == 0)
            break;
        i += done;
    }
    return i;
}
