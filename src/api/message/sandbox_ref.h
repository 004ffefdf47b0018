/* The sandbox that a request is about. */
#pragma once

#include <jansson.h>
#include <stdbool.h>

struct call;
struct err;
struct sandbox;

/* Finds what "sandboxId" names, with a reference. */
int sandbox_ref_find(const struct call *call, const json_t *request, struct sandbox **ret,
                     struct err *err);

/* For cleanup_with: drops the reference. */
void sandbox_ref_drop(struct sandbox **sandbox);
