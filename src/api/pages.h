/* Plain pages for monitors, fetched with GET: /healthz and /metrics. */
#pragma once

#include "http/frontend.h"

/* The context is the struct host. */
extern const struct frontend_ops pages_frontend;
