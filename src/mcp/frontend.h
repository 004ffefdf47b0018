/* The Model Context Protocol as a front end of the HTTP server ("streamable HTTP" at /mcp). A POST
 * carries a message; the reply is JSON, or a stream of events if the client asks for progress. GET
 * is refused, as the protocol permits: Holt sends nothing that was not requested. DELETE ends a
 * session. */
#pragma once

#include "http/frontend.h"

/* The context is a struct mcp_sessions (mcp/session.h). */
extern const struct frontend_ops mcp_frontend;
