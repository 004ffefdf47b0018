/* What the files about volumes of E2B share. */
#pragma once

#include <stdbool.h>

struct e2b_request;

/* Whether the request shows the token of the volume that its path names. */
bool e2b_volume_opens(const struct e2b_request *request);
