/* Messages that several services answer with, as JSON. */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "wire/holt_v1.h"

struct host;
struct host_capabilities;
struct sandbox_info;
struct snapshot_info;
struct template_info;

/* spaceUsed is there only where the storage was asked. */
json_t *sandbox_json(const struct sandbox_info *info, bool has_space);
json_t *snapshot_json(const struct snapshot_info *info);

/* Points into the info. */
struct msg_template template_message(const struct template_info *info);
json_t *capabilities_json(const struct host_capabilities *can);
