/* Where the steps of an image build copy files from: the context, which is a directory of a sandbox
 * of the caller, and templates, of which a sandbox is made while the build lasts. */
#pragma once

#include <jansson.h>
#include <stdbool.h>

struct build_sources;
struct caller;
struct err;
struct file_answer;
struct file_call;
struct host;
struct sandbox;

/* The context may be NULL. The path is absolute; both are borrowed. */
struct build_sources *build_sources_new(struct host *host, const struct caller *caller,
                                        struct sandbox *context, const char *path);

/* Destroys the sandboxes that were made. Accepts NULL. */
void build_sources_free(struct build_sources *sources);

/* Makes a word stand for a template of the store. */
void build_sources_add(struct build_sources *sources, const char *word, const char *template);

/* Returns whether a word, "" for the context, stands for something. */
bool build_sources_has(const struct build_sources *sources, const char *word);

/* Appends the paths that a pattern stands for, relative to the top of the source; ERR_NOT_FOUND if
 * there is none. */
int build_source_match(struct build_sources *sources, const char *word, const char *pattern,
                       json_t *paths, struct err *err);

/* Computes a digest of the files at the paths, without their times. */
int build_source_digest(struct build_sources *sources, const char *word, const json_t *paths,
                        char ret_hex[65], struct err *err);

/* Reads a path: file_call_next gives its entries, whose paths begin with the name of the top. The
 * caller closes the call. */
int build_source_open(struct build_sources *sources, const char *word, const char *path,
                      bool *ret_is_directory, struct file_call **ret, struct err *err);
