/* Calls with JSON in and out, for commands that make one or a few of them. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

struct holt;
struct holt_error;

/* Takes the request; NULL stands for one with an argument that is not UTF-8. 0, with the reply for
 * the caller to drop (ret_reply may be NULL), or -1. */
int call_try(struct holt *holt, const char *method, json_t *request, json_t **ret_reply,
             struct holt_error *error);

/* The same with a connection of its own and a report of what went wrong: the exit status. */
int call_once(const char *method, json_t *request, json_t **ret_reply);

/* A call that answers with a stream. Takes the request. each gets every message and returns 0 to go
 * on, or the exit status to end with. 0 at the good end, -1 with error set, or an exit status after
 * a report. */
typedef int (*call_fn)(const json_t *message, void *context);
int call_stream(const char *method, json_t *request, call_fn each, void *context,
                struct holt_error *error);

/* Reports that the daemon has sent what no daemon should: the exit status. */
int report_unreadable(const char *why);

/* An object of the reply, which must be there, or NULL after a report. */
const json_t *call_object(const json_t *reply, const char *name);

/* A list of the reply: false after a report. *ret is NULL where it is absent, which is empty. */
bool call_list(const json_t *reply, const char *name, const json_t **ret);

/* Makes a call and prints the name of the object that it answers with: the exit status. */
int call_and_print(const char *method, json_t *request, const char *object);

/* Writes the value, or [] for NULL, as indented JSON: the exit status. */
int print_json(const json_t *value);

/* Writes one text of each object in the list, one a line: the exit status. */
int print_texts(const json_t *list, const char *name);

/* A text of an object; "" where it is absent or something else. */
const char *call_text(const json_t *object, const char *name);

/* A number of an object; 0 where it is absent or something else. */
uint64_t call_number(const json_t *object, const char *name);
