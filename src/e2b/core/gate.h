/* Whether a request of E2B's may go on, and with which sandbox. */
#pragma once

struct e2b_request;
struct err;

/* Looks at who calls. Finds the sandbox of envd and ports and wakes it if it wants that. 0, or the
 * HTTP status to refuse with, and err; MHD_HTTP_BAD_GATEWAY: the sandbox is not there. */
unsigned e2b_gate_check(struct e2b_request *request, struct err *err);
