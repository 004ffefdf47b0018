/* Random bytes of the kernel. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Fills the whole buffer: 0 or -errno. Waits only while the kernel has not yet gathered any
 * randomness after boot. */
int random_bytes(void *ret, size_t len);

/* Writes `bytes` random bytes as hexadecimal digits and a NUL to `ret`, which holds
 * HEX_SIZE(bytes), at most 64 bytes: 0 or -errno. */
int random_hex(char *ret, size_t bytes);

/* Returns a random number for names of temporary files and delays, where a weak one only costs
 * another attempt: never fails. */
uint64_t random_u64(void);
