/* Cuts the body of a client stream into messages and hands them to the service as they come. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "api/service.h"

struct err;
struct upload_intake;

/* Nothing is begun before the first message is here. */
struct upload_intake *upload_intake_new(upload_fn *begin, const struct call *call);

/* Takes the next bytes, and as much time as the service needs for them. False when they were not
 * looked at, because something has failed; upload_intake_finish says what. */
bool upload_intake_take(struct upload_intake *intake, const char *data, size_t len);

/* The body has ended: the service's answer, or what went wrong on the way. */
int upload_intake_finish(struct upload_intake *intake, json_t **ret_reply, struct err *err);

/* The body had the first message and nothing else; the rest comes another way. The upload is the
 * caller's then. */
int upload_intake_begun(struct upload_intake *intake, struct upload **ret, struct err *err);

/* Accepts NULL. */
void upload_intake_free(struct upload_intake *intake);
