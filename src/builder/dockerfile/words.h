/* Words of a Dockerfile's instructions: quotes, variables, and the JSON form. */
#pragma once

#include <jansson.h>

struct err;

enum { WORDS_MAX = 1024 };

/* Where variables come from: objects of strings, the first that has one wins. */
struct scope {
    const json_t *env, *args; /* either may be NULL */
    char escape;
};

/* Returns the quote that is open after a character, if `quote` was before it; 0: none. */
char word_quote(char quote, char c);

/* Splits a text at blanks outside of quotes, without changing the words. The caller frees *ret. */
int words_split(const char *text, char escape, char ***ret, struct err *err);
void words_free(char ***words);

/* Returns a copy of a word without quotes and with the values of its variables: $NAME, ${NAME},
 * ${NAME:-word}, ${NAME:+word}. */
int word_expand(const char *word, const struct scope *scope, char **ret, struct err *err);

/* Splits and expands. */
int words_expand(const char *text, const struct scope *scope, char ***ret, struct err *err);

/* Returns the array of a text such as ["a", "b"]; NULL if it is none, which means the shell form.
 */
json_t *words_json(const char *text);
