/* Access control of E2B requests. */
#pragma once

struct e2b_request;
struct err;

/* Checks the caller's token, finds the sandbox of envd and ports, and resumes it if its metadata
 * says so. Returns 0, or an HTTP status with err set; MHD_HTTP_BAD_GATEWAY: the sandbox does not
 * exist. */
unsigned e2b_gate_check(struct e2b_request *request, struct err *err);
