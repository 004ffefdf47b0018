/* Bytes as lower-case hexadecimal digits, and back. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#define HEX_SIZE(bytes) (2 * (bytes) + 1) /* what hex_encode writes for so many bytes */

/* Writes two digits per byte and a terminating NUL to `ret`, which holds HEX_SIZE(len). */
void hex_encode(const void *bytes, size_t len, char *ret);

/* Reads exactly 2 * len lower-case digits and a NUL; false where the text is anything else, and
 * then `ret` is undefined. */
bool hex_decode(const char *text, void *ret, size_t len);

/* Returns whether the text consists of exactly `digits` lower-case hexadecimal digits. */
bool hex_is_text(const char *text, size_t digits);
