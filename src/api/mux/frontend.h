/* GET /holt.v1/stream as a front end: the WebSocket handshake, then the multiplexed stream. */
#pragma once

#include "http/frontend.h"

/* Has no context. */
extern const struct frontend_ops mux_frontend;
