/* Masks: what rules hide of a version of a codebase, as the upper one of two layers of an overlay.
 *
 * A mask has a whiteout for each path that is hidden, and the directories above these. The owners
 * of both layers are users of the host, whom nobody in a sandbox can be: not even root there has
 * rights beyond the mode bits of others, and these must not include writing.
 *
 * A mask is for rules that know no levels but none and read (view_levels), and for files whose mode
 * bits mean the same to everybody. It is made once for a version and a list of rules, and kept. */
#pragma once

#include <stdint.h>

#include "base/cleanup.h"
#include "store/import/digest.h"

struct err;
struct host;
struct view_rules;

enum { MASK_NAME_SIZE = DIGEST_HEX_LEN + 16, MASK_REFUSAL_SIZE = 200 };

/* Fills an empty directory. Returns 0, 1 if the kernel cannot enforce the rules on these files
 * (*refusal says why), or -errno. */
int mask_fill(int version_fd, const struct view_rules *rules, int to_fd,
              char refusal[static MASK_REFUSAL_SIZE]);

/* Names the mask for a version and rules. Returns 0 or -errno. */
int mask_name(uint32_t version, const struct view_rules *rules, char ret[static MASK_NAME_SIZE]);

struct mask {
    int fd;      /* its top directory; negative: there cannot be one */
    int lock_fd; /* keeps all masks of the codebase */
    char name[MASK_NAME_SIZE];
    char refusal[MASK_REFUSAL_SIZE]; /* why there cannot be one */
};

/* Opens a mask, which is made if there is none. No mask of the codebase is removed before
 * mask_done; those that a sandbox has recorded (host/view/permission.h) are kept after it. */
int mask_open(struct host *host, const char *codebase, uint32_t version,
              const struct view_rules *rules, struct mask *ret, struct err *err);
void mask_done(struct mask *mask);
