/* The FUSE protocol as the kernel speaks it: <linux/fuse.h>, and what came after version 7.38,
 * which is that of Debian's header. A kernel without a feature does not offer its flag. */
#pragma once

#include <linux/fuse.h>
#include <stdint.h>
#include <sys/ioctl.h>

/* FUSE_INIT. `unused` of fuse_init_out begins with the depth of the stack of file systems. */
#define ABI_PASSTHROUGH (1ULL << 37)
enum {
    ABI_MINOR = 44,
    ABI_MINOR_EPOCH = 44,     /* the first that knows ABI_NOTIFY_INC_EPOCH */
    ABI_STACK_DEPTH = 2,      /* of this file system: below are an overlay and a disk */
    ABI_NOTIFY_INC_EPOCH = 8, /* makes the kernel look up every cached name again; no payload */
};

/* FUSE_OPEN and FUSE_CREATE: the kernel reads and writes the backing file by itself. Its number is
 * in `padding` of fuse_open_out. */
#define ABI_FOPEN_PASSTHROUGH (1U << 7)

struct abi_backing_map {
    int32_t fd;
    uint32_t flags;
    uint64_t padding;
};

#define ABI_DEV_CLONE _IOR(229, 0, uint32_t)
#define ABI_BACKING_OPEN _IOW(229, 1, struct abi_backing_map)
#define ABI_BACKING_CLOSE _IOW(229, 2, uint32_t)
