/* Frames between holtd and holt-init.
 *
 * Both sides send frames over one byte stream (a unix socket, or a pair of pipes). All numbers are
 * in little-endian order. A frame is, in this order and without gaps:
 *
 * - u32 size: bytes of payload
 * - u16 type: enum frame_type
 * - u16 fds: descriptors that travel with it (SCM_RIGHTS on its first byte; unix sockets only)
 * - u32 process: which process it is about, or which connection; 0: the sandbox itself
 * - the payload, see wire/message.h
 *
 * A receiver gives the parser the largest payload it accepts and drops the connection on anything
 * larger, on an unknown type, and on a payload that does not parse (but a spawn is answered
 * FAILED): both ends are built from the same tree, so such bytes are an attack.
 *
 * Flow control. Every byte of a process's stdout, stderr and stdin has an offset, from 0. The guest
 * keeps output until the daemon acknowledges the offset behind it (FRAME_ACK), reads a process's
 * pipe only while its buffer has room, and after a reconnect sends again from the last acknowledged
 * offset. The daemon sends at most FRAME_WINDOW bytes of input ahead of FRAME_INPUT_ACK. Nothing is
 * ever dropped: a full buffer stops the writer.
 *
 * Connections to ports of the sandbox have numbers of their own, which the daemon chooses; two that
 * live at the same time differ in their remainder by FRAME_CONNECTIONS_MAX. CONNECT is answered by
 * CONNECTED or CONN_END. Then both sides send bytes with offsets, from 0, at most FRAME_CONN_WINDOW
 * ahead of what the other has acknowledged, and CONN_EOF behind the last; one direction may end
 * long before the other. CONN_END is the last frame of each side: the guest sends it when both
 * directions are over or the connection is broken, the daemon when it knows of that or wants no
 * more. When both have sent it the number is free. Connections do not outlive the byte stream.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf;

enum {
    FRAME_HEADER_SIZE = 12,
    FRAME_DATA_MAX = 32 * 1024,              /* stream bytes in one frame */
    FRAME_FROM_GUEST_MAX = 64 * 1024,        /* payload the daemon accepts */
    FRAME_FROM_DAEMON_MAX = 2 * 1024 * 1024, /* payload the guest accepts: a spawn has a big argv */
    FRAME_WINDOW = 1024 * 1024,              /* unacknowledged bytes of one stream */
    FRAME_FDS_MAX = 20,
    FRAME_CONN_WINDOW = 128 * 1024, /* of one direction of a connection */
    FRAME_CONNECTIONS_MAX = 512,
    WIRE_VERSION = 6,
};

enum frame_type {
    FRAME_NONE,

    /* daemon to guest */
    FRAME_BOOT,      /* message_boot: once, first; answered by READY */
    FRAME_ROOT,      /* message_root + one descriptor per mount; answered by ROOTED or FAILED */
    FRAME_LISTEN,    /* one descriptor: a listening socket that outlives this connection; it becomes
                        non-blocking */
    FRAME_HELLO,     /* u32 version: first on every later connection; answered by STATE..., READY */
    FRAME_SPAWN,     /* message_spawn + its cgroup as descriptor, if any; STARTED or FAILED */
    FRAME_INPUT,     /* u64 offset, bytes */
    FRAME_INPUT_EOF, /* u64 offset: stdin is to be closed behind it */
    FRAME_ACK,       /* u8 stream, u64 offset */
    FRAME_SIGNAL,    /* u32 signal */
    FRAME_RESIZE,    /* u16 rows, u16 columns */
    FRAME_FORGET,    /* the end of a process is known; its record may go */
    FRAME_SHELL_RUN, /* message_shell_run: one command of a shell, which must have none */
    FRAME_SHELL_INTERRUPT, /* u64 command: to be ended, and the shell kept if that can be */
    FRAME_FILES, /* empty, with a cgroup and a socket: a file worker, which says HELLO over the
                    socket (wire/file.h); with a program behind them: a tool worker, where a guest
                    that is older closes the socket */

    /* guest to daemon */
    FRAME_READY,     /* u32 version, u32 the highest process that it was ever told to start */
    FRAME_ROOTED,    /* empty */
    FRAME_STARTED,   /* u32 pid inside the sandbox */
    FRAME_FAILED,    /* message_failed: the spawn, boot or root that it answers did not work */
    FRAME_OUTPUT,    /* u8 stream, u64 offset, bytes */
    FRAME_INPUT_ACK, /* u64 offset: the process has taken, or will never take, what is below it */
    FRAME_EXITED,    /* message_exited: after the last byte that the process wrote before its end */
    FRAME_STATE,     /* message_state: one process, as the guest knows it */
    FRAME_SHELL_DONE, /* message_shell_done: after the last byte that the command wrote */

    /* about a connection; the first from the daemon, the second from the guest, the others both */
    FRAME_CONNECT,   /* u16 port of the sandbox's loopback */
    FRAME_CONNECTED, /* empty */
    FRAME_CONN_DATA, /* u64 offset, bytes */
    FRAME_CONN_EOF,  /* u64 offset: nothing comes behind it */
    FRAME_CONN_ACK,  /* u64 offset: what is below it has been handed on */
    FRAME_CONN_END,  /* u32 errno: why it is over; 0: nothing was lost */

    FRAME_TYPES
};

/* Every process has the first two. A shell has its terminal as stdout, and beside it what its
 * commands write; of that the guest keeps nothing between commands, nor over a reconnect. */
enum frame_stream {
    STREAM_STDOUT,
    STREAM_STDERR,
    STREAM_COUNT,
    STREAM_SHELL_STDOUT = STREAM_COUNT,
    STREAM_SHELL_STDERR,
    STREAM_ALL
};

struct frame {
    enum frame_type type;
    uint32_t process;
    uint16_t fds;
    const char *payload; /* inside the buffer it was parsed from */
    size_t size;
};

/* Whether the number in the header is that of a connection. */
static inline bool frame_is_of_connection(enum frame_type type)
{
    return type >= FRAME_CONNECT && type <= FRAME_CONN_END;
}

/* Takes the frame at the start of data: bytes it covers, 0 when more are needed, or -EPROTO. */
long frame_parse(const void *data, size_t len, size_t payload_max, struct frame *ret);

/* Appends a header whose size is filled in by frame_end; returns where the frame begins. */
size_t frame_begin(struct buf *out, enum frame_type type, uint32_t process, uint16_t fds);

/* Closes the frame begun at start: 0, or -ENOBUFS if any append failed since (the frame is undone).
 */
int frame_end(struct buf *out, size_t start, bool is_whole);

/* Fields of a payload, in order. Each writer returns whether it fitted, so that they chain with &&.
 */
bool put_u8(struct buf *out, uint8_t value);
bool put_u16(struct buf *out, uint16_t value);
bool put_u32(struct buf *out, uint32_t value);
bool put_u64(struct buf *out, uint64_t value);
bool put_bytes(struct buf *out, const void *data, size_t len); /* u32 length, bytes */
bool put_text(struct buf *out, const char *text);              /* the same, with its NUL */

/* Reads fields in order; after the first that is missing or wrong all are zero and `ok` is false.
 */
struct reader {
    const char *next;
    size_t left;
    bool ok;
};

struct reader reader_of(const struct frame *frame);
uint8_t get_u8(struct reader *reader);
uint16_t get_u16(struct reader *reader);
uint32_t get_u32(struct reader *reader);
uint64_t get_u64(struct reader *reader);
const char *get_bytes(struct reader *reader, size_t *ret_len);

/* Text without NUL inside; never NULL ("" when wrong). */
const char *get_text(struct reader *reader);

/* Whether all fields were there and nothing is left. */
bool reader_is_done(const struct reader *reader);
