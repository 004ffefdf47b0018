/* Frames between holtd and holt-init.
 *
 * Both sides send frames over one byte stream (a unix socket, or a pair of pipes). All numbers are
 * little-endian. A frame consists of, in this order and without padding:
 *
 * - u32 size: bytes of payload
 * - u16 type: enum frame_type
 * - u16 fds: attached descriptors (SCM_RIGHTS on its first byte; unix sockets only)
 * - u32 process: the process or connection that it is about; 0: the sandbox itself
 * - the payload, see wire/message.h
 *
 * A receiver passes the largest payload that it accepts to the parser and drops the connection for
 * anything larger, for an unknown type, and for a malformed payload (but a malformed spawn is
 * answered with FAILED): both ends are built from the same tree, so such bytes are an attack.
 *
 * Flow control: every byte of a process's stdout, stderr and stdin has an offset, from 0. The
 * guest keeps output until the daemon acknowledges the offset after it (FRAME_ACK), reads a
 * process's pipe only while its buffer has room, and after a reconnect sends again from the last
 * acknowledged offset. The daemon sends at most FRAME_WINDOW bytes of input ahead of
 * FRAME_INPUT_ACK. Nothing is ever dropped: a full buffer blocks the writer (back-pressure).
 *
 * Connections to ports of the sandbox have numbers of their own, which the daemon chooses; two
 * that exist at the same time differ modulo FRAME_CONNECTIONS_MAX. CONNECT is answered by
 * CONNECTED or CONN_END. Then both sides send bytes with offsets, from 0, at most
 * FRAME_CONN_WINDOW ahead of what the other has acknowledged, and CONN_EOF after the last byte;
 * one direction may end long before the other. CONN_END is the last frame of each side: the guest
 * sends it when both directions have ended or the connection is broken, the daemon when it has
 * learnt of that or closes the connection. Once both have sent it the number is free. Connections
 * do not outlive the byte stream. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf;

enum {
    FRAME_HEADER_SIZE = 12,
    FRAME_DATA_MAX = 32 * 1024,       /* stream bytes in one frame */
    FRAME_FROM_GUEST_MAX = 64 * 1024, /* largest payload that the daemon accepts */
    FRAME_FROM_DAEMON_MAX =
        2 * 1024 * 1024, /* largest payload that the guest accepts: a spawn may have a large argv */
    FRAME_WINDOW = 1024 * 1024, /* unacknowledged bytes of one stream */
    FRAME_FDS_MAX = 20,
    CELL_FDS = 3,
    SIGNAL_TREE = 1 << 8, /* added to the number of SIGNAL between two holt-inits: for a process
                             and everything that it has started */
    FRAME_CONN_WINDOW = 128 * 1024, /* per direction of a connection */
    FRAME_CONNECTIONS_MAX = 512,
    WIRE_VERSION = 6,
};

enum frame_type {
    FRAME_NONE,

    /* daemon to guest */
    FRAME_BOOT,   /* message_boot: once, first; answered by READY */
    FRAME_ROOT,   /* message_root with one descriptor per mount; answered by ROOTED or FAILED */
    FRAME_LISTEN, /* one descriptor: a listening socket that outlives this connection and becomes
                     non-blocking */
    FRAME_HELLO,  /* u32 version: first frame of every later connection; answered by STATE..., READY
                   */
    FRAME_SPAWN,  /* message_spawn with its cgroup as descriptor, if any; answered by STARTED or
                     FAILED */
    FRAME_INPUT,  /* u64 offset, bytes */
    FRAME_INPUT_EOF,       /* u64 offset: closes stdin at this offset */
    FRAME_ACK,             /* u8 stream, u64 offset */
    FRAME_SIGNAL,          /* u32 signal */
    FRAME_RESIZE,          /* u16 rows, u16 columns; about the sandbox itself: message_size with
                              descriptors, which an older guest ignores */
    FRAME_FORGET,          /* the daemon knows the end of the process; its record may be freed */
    FRAME_SHELL_RUN,       /* message_shell_run: one command of an idle shell */
    FRAME_SHELL_INTERRUPT, /* u64 command: interrupts it and keeps the shell if possible */
    FRAME_FILES, /* empty, with a cgroup and a socket: starts a file worker, which sends HELLO over
                    the socket (wire/file.h); with a program as third descriptor: a tool worker, for
                    which an older guest closes the socket */

    /* guest to daemon */
    FRAME_READY,     /* u32 version, u32 highest process id that it was ever asked to start */
    FRAME_ROOTED,    /* empty */
    FRAME_STARTED,   /* u32 pid inside the sandbox */
    FRAME_FAILED,    /* message_failed: the spawn, boot or root that it answers failed */
    FRAME_OUTPUT,    /* u8 stream, u64 offset, bytes */
    FRAME_INPUT_ACK, /* u64 offset: the process has read, or will never read, the bytes below it */
    FRAME_EXITED,    /* message_exited: after the last byte that the process wrote before its end */
    FRAME_STATE,     /* message_state: one process, as the guest knows it */
    FRAME_SHELL_DONE, /* message_shell_done: after the last byte that the command wrote */

    /* about a connection; CONNECT from the daemon, CONNECTED from the guest, the others from both
     */
    FRAME_CONNECT,   /* u16 port on the sandbox's loopback interface */
    FRAME_CONNECTED, /* empty */
    FRAME_CONN_DATA, /* u64 offset, bytes */
    FRAME_CONN_EOF,  /* u64 offset: end of file at this offset */
    FRAME_CONN_ACK,  /* u64 offset: the bytes below it have been delivered */
    FRAME_CONN_END,  /* u32 errno: why it ended; 0: no data was lost */

    /* daemon to guest; at the end, because guests of earlier versions know the others by number */
    FRAME_AGENT, /* empty, with a unix socket: the guest binds it as SSH_AGENT_SOCKET and listens.
                    Sent only to guests of sandboxes with a key of SSH */
    FRAME_CELL,  /* message_cell with CELL_FDS descriptors (a cgroup, runsc, holt-init): starts
                    the gVisor container unless it runs; no answer. Only guests of the
                    runtime gvisor get this and the next */
    FRAME_CELL_SPAWN, /* like SPAWN, for a process in that container */
    FRAME_CELL_ENTER, /* from the outer holt-init to the inner one: a host name; the root is there,
                         see guest/cell/launch.h */

    FRAME_TYPES
};

/* Every process has the first two. A shell has its terminal as stdout, and its commands' output in
 * the other two; the guest keeps none of that between commands or across a reconnect. */
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
    const char *payload; /* points into the parsed buffer */
    size_t size;
};

/* Returns whether the number in the header is that of a connection. */
static inline bool frame_is_of_connection(enum frame_type type)
{
    return type >= FRAME_CONNECT && type <= FRAME_CONN_END;
}

/* Parses the frame at the start of data. Returns its size, 0 if more bytes are needed, or -EPROTO.
 */
long frame_parse(const void *data, size_t len, size_t payload_max, struct frame *ret);

/* Appends a header whose size frame_end fills in. Returns the start of the frame. */
size_t frame_begin(struct buf *out, enum frame_type type, uint32_t process, uint16_t fds);

/* Completes the frame at start. Returns 0, or -ENOBUFS after removing it if any append failed. */
int frame_end(struct buf *out, size_t start, bool is_whole);

/* Append the fields of a payload, in order. Each returns whether it fitted, so that they chain
 * with &&. */
bool put_u8(struct buf *out, uint8_t value);
bool put_u16(struct buf *out, uint16_t value);
bool put_u32(struct buf *out, uint32_t value);
bool put_u64(struct buf *out, uint64_t value);
bool put_bytes(struct buf *out, const void *data, size_t len); /* u32 length, bytes */
bool put_text(struct buf *out, const char *text);              /* put_bytes with the NUL */

/* Reads fields in order; after the first missing or invalid one, all are zero and `ok` is false.
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

/* Returns text without an inner NUL; never NULL ("" if invalid). */
const char *get_text(struct reader *reader);

/* Returns whether all fields were present and no bytes are left. */
bool reader_is_done(const struct reader *reader);
