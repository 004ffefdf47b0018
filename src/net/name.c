// SPDX-License-Identifier: Apache-2.0
#include "net/name.h"

#include <string.h>

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Resolvers read a name whose last label is a number as an IPv4 address ("127.1", "0x7f.1"). */
static bool label_is_number(const char *label)
{
    if (label[0] == '0' && label[1] == 'x')
        return label[2 + strspn(label + 2, "0123456789abcdef")] == '\0';
    for (; *label; label++) {
        if (!is_digit(*label))
            return false;
    }
    return true;
}

static bool is_name_byte(char c)
{
    return (c >= 'a' && c <= 'z') || is_digit(c) || c == '-' || c == '_';
}

/* Copies the bytes in lower case; NULL or the reason why one cannot be in a name. */
static const char *bytes_copy(const char *text, size_t len, char ret[NET_NAME_SIZE])
{
    for (size_t i = 0; i < len; i++) {
        char c = text[i];

        if (c >= 'A' && c <= 'Z')
            c = (char)(c - 'A' + 'a');
        if ((unsigned char)c >= 0x80)
            return "a name has letters outside ASCII; write it with xn-- (punycode)";
        if ((unsigned char)c < ' ' || c == 0x7f)
            return "a name has a control character";
        if (c == '*')
            return "* stands only at the start, for all labels in front: *.example.com";
        if (!is_name_byte(c) && c != '.')
            return "a name has a character other than letters, digits, '-', '_' and '.'";
        ret[i] = c;
    }
    ret[len] = '\0';
    return NULL;
}

static const char *labels_check(const char *name)
{
    const char *label = name, *last = name;

    for (;;) {
        size_t len = strcspn(label, ".");

        if (len == 0)
            return "a name has an empty label";
        if (len > NET_LABEL_MAX)
            return "a label of a name is longer than 63 bytes";
        if (label[0] == '-' || label[len - 1] == '-')
            return "a label of a name starts or ends with '-'";
        last = label;
        if (label[len] == '\0')
            break;
        label += len + 1;
    }
    return label_is_number(last) ? "an address is written as four decimal numbers or as IPv6, in "
                                   "no other notation"
                                 : NULL;
}

const char *net_name_normalize(const char *text, size_t len, char ret[NET_NAME_SIZE])
{
    const char *reason;

    if (len > 0 && text[len - 1] == '.')
        len--;
    if (len == 0)
        return "a name is empty";
    if (len > NET_NAME_MAX)
        return "a name is longer than 253 bytes";
    reason = bytes_copy(text, len, ret);
    return reason ? reason : labels_check(ret);
}

const char *net_pattern_normalize(const char *text, size_t len, char ret[NET_NAME_SIZE])
{
    char name[NET_NAME_SIZE];
    const char *reason;
    size_t name_len;

    if (len == 1 && text[0] == '*') {
        memcpy(ret, "*", 2);
        return NULL;
    }
    if (len < 2 || text[0] != '*' || text[1] != '.')
        return net_name_normalize(text, len, ret);
    reason = net_name_normalize(text + 2, len - 2, name);
    if (reason)
        return reason;
    name_len = strlen(name);
    if (name_len + 2 > NET_NAME_MAX)
        return "a name is longer than 253 bytes";
    ret[0] = '*';
    ret[1] = '.';
    memcpy(ret + 2, name, name_len + 1);
    return NULL;
}

bool net_pattern_matches(const char *pattern, const char *name)
{
    size_t pattern_len = strlen(pattern), name_len = strlen(name);

    if (strcmp(pattern, "*") == 0)
        return true;
    if (pattern[0] != '*')
        return strcmp(pattern, name) == 0;
    /* "*.b" against "a.b": the tail ".b" must match, and something must stand in front of it. */
    return name_len > pattern_len - 1 &&
           strcmp(name + name_len - (pattern_len - 1), pattern + 1) == 0;
}
