/* holt-image's end of image/control.h. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

struct err;

/* Sends one message made by json_pack; holt-image exits if holtd has gone. */
void talk_send(json_t *message);

/* Asks for a blob. Returns -1 if holtd has it already, else the file for it. */
int talk_want(const char *digest, uint64_t size);

/* Asks for the content of a blob that is to be sent; -1: there is none. */
int talk_send_of(const char *digest);

/* Tells that a blob is complete. Returns false if it must be fetched again. */
bool talk_got(const char *digest);
