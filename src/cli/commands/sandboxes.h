/* Sandboxes that a command has found or changed one by one, and their output. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct holt_sandbox;
struct output_options;

struct sandbox_set {
    struct holt_sandbox **items;
    size_t count;
};

/* Takes the sandbox. */
void sandbox_set_add(struct sandbox_set *set, struct holt_sandbox *sandbox);
void sandbox_set_done(struct sandbox_set *set);

/* Prints their ids, the JSON of each as one list, or a table. If is_one, the JSON is an object.
 * Returns the exit status. */
int sandbox_set_print(const struct sandbox_set *set, const struct output_options *output,
                      bool is_one);
