/* The sandbox that a path of the control API names. */
#pragma once

struct e2b_request;
struct err;

/* Finds what the path's first parameter names, into request->sandbox; one that is being made or is
 * going is not there. ERR_NOT_FOUND. */
int e2b_ref_find(struct e2b_request *request, struct err *err);
