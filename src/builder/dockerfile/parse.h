/* Dockerfiles: a pure parser from text to instructions. The text is not trusted. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct err;

enum {
    DOCKERFILE_BYTES_MAX = 1 << 20,
    INSTRUCTIONS_MAX = 1024,
    INSTRUCTION_FLAGS_MAX = 16,
    HEREDOCS_MAX = 16,
};

/* A document below an instruction: <<EOF. */
struct heredoc {
    char *name;
    char *text;    /* complete lines */
    bool is_plain; /* its name is quoted: variables are not expanded */
};

struct instruction {
    unsigned line;                      /* of its first line, from 1 */
    char keyword[16];                   /* in capital letters */
    char *flags[INSTRUCTION_FLAGS_MAX]; /* "--name" or "--name=value" */
    size_t flag_count;
    char *text; /* without keyword and flags; continued lines are joined */
    struct heredoc heredocs[HEREDOCS_MAX];
    size_t heredoc_count;
};

struct dockerfile {
    struct instruction *items;
    size_t count;
    char escape; /* '\\' or '`' */
};

/* Parses a text; errors name the line. */
int dockerfile_parse(const char *text, size_t len, struct dockerfile *ret, struct err *err);
void dockerfile_done(struct dockerfile *file);
