// SPDX-License-Identifier: Apache-2.0
#include "net/path.h"

#include <stdio.h>
#include <string.h>

#include "net/rule.h"

enum { REQUEST_PATH_MAX = 8192 };
enum path_case { EXACT_CASE, ANY_CASE };

const char *net_glob_check(const char *glob)
{
    if (strlen(glob) > NET_PATH_MAX)
        return "the path is longer than 128 bytes";
    for (const char *at = glob; *at; at++) {
        if (*at <= ' ' || *at > '~' || strchr("\"\\<>^`{|}?#%", *at))
            return "the path has a character that a path cannot have; leave out the query";
    }
    if (strstr(glob, "//") || strstr(glob, "/./") || strstr(glob, "/../"))
        return "the path has an empty segment, '.' or '..'";
    return NULL;
}

static int hex_value(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c = (char)(c | 0x20);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Decodes escapes of printable characters; false if the path can be read in two ways. */
static bool path_decode(const char *path, char ret[REQUEST_PATH_MAX])
{
    size_t len = 0;

    for (; *path && *path != '?' && *path != '#'; path++) {
        int c = (unsigned char)*path;

        if (c == '%') {
            int high = hex_value(path[1]), low = high < 0 ? -1 : hex_value(path[2]);

            if (low < 0)
                return false;
            c = high * 16 + low;
            if (c == '/' || c == '%' || c == '?' || c == '#')
                return false;
            path += 2;
        }
        if (c < ' ' || c == 0x7f || c == '\\' || len + 1 == REQUEST_PATH_MAX)
            return false;
        ret[len++] = (char)c;
    }
    ret[len] = '\0';
    return ret[0] == '/';
}

/* Whether no segment is empty (but the last), "." or "..", also with parameters behind ';'. */
static bool path_is_plain(const char *path)
{
    while (*path == '/') {
        size_t len = strcspn(path + 1, "/");
        size_t name = strcspn(path + 1, "/;");

        if (len == 0 && path[1] == '/')
            return false;
        if ((name == 1 && path[1] == '.') || (name == 2 && path[1] == '.' && path[2] == '.'))
            return false;
        path += 1 + len;
    }
    return true;
}

static char lower(char c)
{
    if (c >= 'A' && c <= 'Z')
        return (char)(c | 0x20);
    return c;
}

/* Matches with one place to return to for each kind of star, so the time is bounded by the product
 * of the lengths. */
static bool glob_matches(const char *glob, const char *text, enum path_case how)
{
    const char *star = NULL, *star_text = NULL, *deep = NULL, *deep_text = NULL;

    for (;;) {
        if (glob[0] == '*' && glob[1] == '*') {
            deep = glob + 2;
            deep_text = text;
            glob = deep;
            star = NULL;
        } else if (glob[0] == '*') {
            star = glob + 1;
            star_text = text;
            glob = star;
        } else if (*text && (how == EXACT_CASE ? *glob == *text : lower(*glob) == lower(*text))) {
            glob++;
            text++;
        } else if (*text == '\0' && *glob == '\0') {
            return true;
        } else if (star && *star_text && *star_text != '/') {
            text = ++star_text;
            glob = star;
        } else if (deep && *deep_text) {
            text = ++deep_text;
            glob = deep;
            star = NULL;
        } else {
            return false;
        }
    }
}

/* Leaves out the parameters behind ';', as some servers do. */
static void parameters_drop(char *path)
{
    char *to = path;

    for (const char *from = path; *from;) {
        if (*from == ';')
            from += strcspn(from, "/");
        else
            *to++ = *from++;
    }
    *to = '\0';
}

bool net_glob_allows(const char *glob, const char *path)
{
    char decoded[REQUEST_PATH_MAX];

    return path_decode(path, decoded) && path_is_plain(decoded) &&
           glob_matches(glob, decoded, EXACT_CASE);
}

/* A path that a server may read as a denied one is denied. */
bool net_glob_denies(const char *glob, const char *path)
{
    char decoded[REQUEST_PATH_MAX];

    if (!path_decode(path, decoded) || !path_is_plain(decoded) ||
        glob_matches(glob, decoded, ANY_CASE))
        return true;
    parameters_drop(decoded);
    return glob_matches(glob, decoded, ANY_CASE);
}
