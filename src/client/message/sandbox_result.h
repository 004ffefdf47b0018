/* Results that are sandboxes, for calls that are no methods. */
#pragma once

struct holt_error;
struct msg_sandbox;

/* Fills a struct holt_sandbox, made by result_new, in from a message (NULL: the reply lacks it). */
int sandbox_result_fill(void *result, const struct msg_sandbox *message, struct holt_error *error);
