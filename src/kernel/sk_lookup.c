// SPDX-License-Identifier: Apache-2.0
#include "kernel/sk_lookup.h"

#include <errno.h>
#include <inttypes.h>
#include <linux/bpf.h>
#include <linux/mount.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "kernel/mount.h"

enum { DNS_PORT = 53, PIN_PATH_BYTES = 64 };

#define CONTEXT(field) ((int16_t)offsetof(struct bpf_sk_lookup, field))

static int bpf_call(enum bpf_cmd command, union bpf_attr *attr)
{
    int r = (int)syscall(SYS_bpf, command, attr, sizeof(*attr));

    return r < 0 ? -errno : r;
}

/* One slot, for the listener. A closed socket leaves it empty. */
static int map_create(void)
{
    union bpf_attr attr = {
        .map_type = BPF_MAP_TYPE_SOCKMAP, .key_size = 4, .value_size = 4, .max_entries = 1
    };

    return bpf_call(BPF_MAP_CREATE, &attr);
}

static int map_create_with(int listener_fd)
{
    cleanup_close int fd = map_create();
    union bpf_attr attr = { .map_fd = 0 };
    uint32_t key = 0;
    int r;

    if (fd < 0)
        return fd;
    attr.map_fd = (uint32_t)fd;
    attr.key = (uint64_t)(uintptr_t)&key;
    attr.value = (uint64_t)(uintptr_t)&listener_fd;
    r = bpf_call(BPF_MAP_UPDATE_ELEM, &attr);
    return r < 0 ? r : TAKE_FD(fd);
}

#define INSN(code_, dst, src, off_, imm_)                                                          \
    {                                                                                              \
        .code = (code_), .dst_reg = (dst), .src_reg = (src), .off = (off_), .imm = (imm_)          \
    }
#define LOAD(dst, field) INSN(BPF_LDX | BPF_MEM | BPF_W, dst, BPF_REG_6, CONTEXT(field), 0)
#define LOAD_AT(dst, offset) INSN(BPF_LDX | BPF_MEM | BPF_W, dst, BPF_REG_6, offset, 0)
#define MOVE(dst, src) INSN(BPF_ALU64 | BPF_MOV | BPF_X, dst, src, 0, 0)
#define SET(dst, imm_) INSN(BPF_ALU64 | BPF_MOV | BPF_K, dst, 0, 0, imm_)
#define IF_EQ(dst, imm_, off_) INSN(BPF_JMP32 | BPF_JEQ | BPF_K, dst, 0, off_, imm_)
#define IF_NE(dst, imm_, off_) INSN(BPF_JMP32 | BPF_JNE | BPF_K, dst, 0, off_, imm_)
#define GO(off_) INSN(BPF_JMP | BPF_JA, 0, 0, off_, 0)
#define CALL(helper) INSN(BPF_JMP | BPF_CALL, 0, 0, 0, helper)
#define EXIT INSN(BPF_JMP | BPF_EXIT, 0, 0, 0, 0)

static int program_load(int map_fd, struct in_addr resolver)
{
    const struct bpf_insn code[] = {
        /* 0 */ MOVE(BPF_REG_6, BPF_REG_1),
        /* 1 */ LOAD(BPF_REG_2, protocol),
        /* 2 */ LOAD(BPF_REG_3, family),
        /* 3 */ IF_NE(BPF_REG_3, AF_INET, 5), /* to 9 */
        /* 4 */ LOAD(BPF_REG_4, local_ip4),
        /* 5 */ MOVE(BPF_REG_5, BPF_REG_4),
        /* 6 */ INSN(BPF_ALU64 | BPF_AND | BPF_K, BPF_REG_5, 0, 0, (int32_t)htonl(0xff000000)),
        /* 7 */ IF_EQ(BPF_REG_5, (int32_t)htonl(0x7f000000), 29), /* to pass, 37 */
        /* 8 */ GO(9),                                            /* to 18 */
        /* 9: IPv6; register 4 stays 0, which is not the resolver */
        /* 9 */ SET(BPF_REG_4, 0),
        /* 10 */ LOAD_AT(BPF_REG_5, CONTEXT(local_ip6)),
        /* 11 */ IF_NE(BPF_REG_5, 0, 6), /* to 18 */
        /* 12 */ LOAD_AT(BPF_REG_5, CONTEXT(local_ip6) + 4),
        /* 13 */ IF_NE(BPF_REG_5, 0, 4), /* to 18 */
        /* 14 */ LOAD_AT(BPF_REG_5, CONTEXT(local_ip6) + 8),
        /* 15 */ IF_NE(BPF_REG_5, 0, 2), /* to 18 */
        /* 16 */ LOAD_AT(BPF_REG_5, CONTEXT(local_ip6) + 12),
        /* 17 */ IF_EQ(BPF_REG_5, (int32_t)htonl(1), 19), /* to pass, 37 */
        /* 18 */ IF_NE(BPF_REG_2, IPPROTO_TCP, 15),       /* to 34 */
        /* 19 */ INSN(BPF_ST | BPF_MEM | BPF_W, BPF_REG_10, 0, -4, 0),
        /* 20 */ INSN(BPF_LD | BPF_DW | BPF_IMM, BPF_REG_1, BPF_PSEUDO_MAP_FD, 0, map_fd),
        /* 21 */ INSN(0, 0, 0, 0, 0),
        /* 22 */ MOVE(BPF_REG_2, BPF_REG_10),
        /* 23 */ INSN(BPF_ALU64 | BPF_ADD | BPF_K, BPF_REG_2, 0, 0, -4),
        /* 24 */ CALL(BPF_FUNC_map_lookup_elem),
        /* 25 */ INSN(BPF_JMP | BPF_JEQ | BPF_K, BPF_REG_0, 0, 13, 0), /* to drop, 39 */
        /* 26 */ MOVE(BPF_REG_7, BPF_REG_0),
        /* 27 */ MOVE(BPF_REG_1, BPF_REG_6),
        /* 28 */ MOVE(BPF_REG_2, BPF_REG_0),
        /* 29 */ SET(BPF_REG_3, 0),
        /* 30 */ CALL(BPF_FUNC_sk_assign),
        /* 31 */ MOVE(BPF_REG_8, BPF_REG_0),
        /* 32 */ MOVE(BPF_REG_1, BPF_REG_7),
        /* 33 */ GO(6),                                         /* to release, 40 */
        /* 34 */ IF_NE(BPF_REG_4, (int32_t)resolver.s_addr, 4), /* to drop, 39 */
        /* 35 */ LOAD(BPF_REG_5, local_port),
        /* 36 */ IF_NE(BPF_REG_5, DNS_PORT, 2), /* to drop, 39 */
        /* 37: pass */ SET(BPF_REG_0, SK_PASS),
        /* 38 */ EXIT,
        /* 39: drop */ GO(3), /* to 43 */
        /* 40 */ CALL(BPF_FUNC_sk_release),
        /* 41 */ SET(BPF_REG_0, SK_PASS),
        /* 42 */ IF_EQ(BPF_REG_8, 0, 1), /* to 44 */
        /* 43 */ SET(BPF_REG_0, SK_DROP),
        /* 44 */ EXIT,
    };
    union bpf_attr attr = {
        .prog_type = BPF_PROG_TYPE_SK_LOOKUP,
        .expected_attach_type = BPF_SK_LOOKUP,
        .insns = (uint64_t)(uintptr_t)code,
        .insn_cnt = ARRAY_SIZE(code),
        .license = (uint64_t)(uintptr_t) "Apache-2.0",
        .prog_name = "holt_net",
    };

    return bpf_call(BPF_PROG_LOAD, &attr);
}

int sk_lookup_attach(int netns_fd, int listener_fd, struct in_addr resolver)
{
    cleanup_close int map_fd = map_create_with(listener_fd), program_fd = -EBADF;
    union bpf_attr attr = { .link_create = { .target_fd = (uint32_t)netns_fd,
                                             .attach_type = BPF_SK_LOOKUP } };

    if (map_fd < 0)
        return map_fd;
    program_fd = program_load(map_fd, resolver);
    if (program_fd < 0)
        return program_fd;
    attr.link_create.prog_fd = (uint32_t)program_fd;
    return bpf_call(BPF_LINK_CREATE, &attr);
}

int sk_lookup_pins_open(void)
{
    static const struct mount_option mode = { "mode", "700" };

    return mount_new("bpf", &mode, 1, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC);
}

/* bpf(2) takes a directory as a descriptor from Linux 6.5 on only. */
static void pin_path(int pins_fd, uint64_t number, char *ret)
{
    (void)snprintf(ret, PIN_PATH_BYTES, "/proc/self/fd/%d/%" PRIu64, pins_fd, number);
}

int sk_lookup_pin(int pins_fd, uint64_t number, int link_fd)
{
    char path[PIN_PATH_BYTES];
    union bpf_attr attr = { .pathname = (uint64_t)(uintptr_t)path, .bpf_fd = (uint32_t)link_fd };

    pin_path(pins_fd, number, path);
    return bpf_call(BPF_OBJ_PIN, &attr);
}

/* The kernel detaches the program of a removed name later; its owner may want the next one now. */
void sk_lookup_unpin(int pins_fd, uint64_t number)
{
    char path[PIN_PATH_BYTES];
    union bpf_attr get = { .pathname = (uint64_t)(uintptr_t)path };
    union bpf_attr detach = { .link_detach = { 0 } };
    cleanup_close int link_fd = -EBADF;

    pin_path(pins_fd, number, path);
    link_fd = bpf_call(BPF_OBJ_GET, &get);
    if (link_fd < 0)
        return;
    detach.link_detach.link_fd = (uint32_t)link_fd;
    (void)bpf_call(BPF_LINK_DETACH, &detach);
    (void)unlink(path);
}

int sk_lookup_check(void)
{
    cleanup_close int map_fd = map_create(), program_fd = -EBADF;

    if (map_fd < 0)
        return map_fd;
    program_fd = program_load(map_fd, (struct in_addr){ 0 });
    return program_fd < 0 ? program_fd : 0;
}
