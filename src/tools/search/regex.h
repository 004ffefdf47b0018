/* A pattern that lines are searched for: a regular expression of PCRE2, as grep -P has them, or a
 * text. Shared by threads, each of which has a regex_thread of its own. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct buf;
struct regex;
struct regex_thread;

struct regex_options {
    bool is_text; /* the pattern means itself */
    bool ignore_case;
};

/* NULL when it is no pattern; then `why` says so, for a model. */
struct regex *regex_new(const char *pattern, size_t len, const struct regex_options *options,
                        struct buf *why);
void regex_free(struct regex *regex);

/* The pattern names a newline, so it can match no line. */
bool regex_has_newline(const struct regex *regex);

struct regex_thread *regex_thread_new(const struct regex *regex);
void regex_thread_free(struct regex_thread *thread);

/* Lines that are going to be searched: start is where one begins, and end behind a newline or the
 * last. */
void regex_begin(const struct regex *regex, struct regex_thread *thread, const char *start,
                 const char *end);

/* Finds the first of them with a match. start may be where a later one begins: 1 with the place and
 * length of the match, 0 for none, below 0 (-E2BIG) when the pattern takes too many steps on a
 * line, which then begins at *ret_place. */
int regex_find(const struct regex *regex, struct regex_thread *thread, const char *start,
               const char *end, const char **ret_place, size_t *ret_len);
