/* A pattern for lines: a PCRE2 regular expression with the semantics of grep -P, or a plain string.
 * Threads share it; each has its own regex_thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct buf;
struct regex;
struct regex_thread;

struct regex_options {
    bool is_text; /* the pattern is a plain string */
    bool ignore_case;
};

/* Compiles a pattern; returns NULL and an error message for the model in *why if it is invalid. */
struct regex *regex_new(const char *pattern, size_t len, const struct regex_options *options,
                        struct buf *why);
void regex_free(struct regex *regex);

/* Returns whether the pattern contains a newline, so that it can match no line. */
bool regex_has_newline(const struct regex *regex);

struct regex_thread *regex_thread_new(const struct regex *regex);
void regex_thread_free(struct regex_thread *thread);

/* Prepares a search of lines: start is the start of a line, end is behind a newline or the end of
 * the file. */
void regex_begin(const struct regex *regex, struct regex_thread *thread, const char *start,
                 const char *end);

/* Finds the first match; start may be the start of a later line than in regex_begin. Returns 1 with
 * the position and length of the match, 0 for none, or -E2BIG when the pattern takes too many steps
 * on the line that starts at *ret_place. */
int regex_find(const struct regex *regex, struct regex_thread *thread, const char *start,
               const char *end, const char **ret_place, size_t *ret_len);
