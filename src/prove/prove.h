/* holt-prove: attempts to get out of a sandbox, for `holt doctor --prove`.
 *
 * Each attempt is a function in the file of its idea, with a row in the table of table.c. It is
 * about a *canary*: something of the host that the guard (guard.c) has made and described as facts.
 * An attempt succeeds if it gets at the canary: it reads the token, opens the file for writing.
 * That a system call returns 0 proves nothing, because it may have reached the kernel of gVisor.
 *
 * The same function also runs outside of any sandbox, as root. It has to succeed there: this
 * control proves that the attempt works on this machine. Attempts change nothing but canaries. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { TOKEN_BYTES = 32, FACTS_BYTES_MAX = 2048, DETAIL_BYTES = 160, HANDLE_BYTES_MAX = 128 };

/* What there is to get at; numbers are 0 and texts "" where the guard could not make it. */
struct facts {
    char text[FACTS_BYTES_MAX]; /* "name=value name=value"; what the fields below point into */
    const char *token;          /* the secret in every canary */
    const char *file;           /* its path */
    const char *dir;            /* the directory of the file, for the control only */
    const char *handle;         /* of the file, in hexadecimal: struct file_handle */
    const char *socket;    /* the name of an abstract unix socket that answers with the token */
    const char *queue;     /* the name of a POSIX message queue */
    const char *address;   /* an address of the host other than loopback */
    uint64_t pid;          /* of the guard */
    uint64_t memory;       /* address of the token in the guard */
    uint64_t port;         /* TCP port on loopback that answers with the token */
    uint64_t address_port; /* the same on `address` */
    uint64_t segment;      /* key of a SysV shared memory segment */
    uint64_t key;          /* serial number of a kernel key */
    uint64_t device;       /* of a disk of the host */
    bool is_inside;        /* not the control */
};

struct result {
    bool is_reached;
    bool is_absent; /* there is nothing to attempt on this machine */
    char detail[DETAIL_BYTES];
};

typedef void attempt_fn(const struct facts *facts, struct result *ret);

struct attempt {
    const char *name;
    const char *about; /* what would be reached, with the published failure */
    attempt_fn *run;
    void (*prepare)(const struct facts *facts); /* takes the wall away for the control; or NULL */
    bool is_between;                            /* also runs from one sandbox against another */
};

extern const struct attempt attempts[];

/* Parses the facts; false if they are malformed. */
bool facts_parse(const char *text, bool is_inside, struct facts *ret);

/* Makes canaries in a directory, prints the facts, and ends when standard input does. */
int guard_run(const char *dir);

/* Swaps where/swap and a link to target until standard input ends. */
int swap_run(const char *where, const char *target);

/* Records which descriptors are open; called first of all. */
void descriptors_note(void);

/* What an attempt has found. `held` adds the name of errno. */
void reached(struct result *ret, const char *format, ...) __attribute__((format(printf, 2, 3)));
void held(struct result *ret, const char *what);
void absent(struct result *ret, const char *what);

/* Reads a descriptor, closes it, and decides by whether the token is in it. A negative one counts
 * as errno. */
void token_read(const struct facts *facts, int fd, struct result *ret, const char *what);
void token_search(const struct facts *facts, const char *data, size_t len, struct result *ret,
                  const char *what);

/* Whether the process of this id may be the guard: another one inside may have the same id. */
bool is_guard(const struct facts *facts);

/* Makes a directory to mount on, or for a node; its name is in static memory. */
const char *scratch_dir(const struct facts *facts);

/* Enters a mount namespace of its own: a control may mount there. */
void prepare_mounts(const struct facts *facts);

/* The attempts, by file. */
attempt_fn attempt_file, attempt_proc_root, attempt_handle, attempt_cwd, attempt_descriptors;
attempt_fn attempt_init_program;
attempt_fn attempt_disk, attempt_device_nodes, attempt_kernel_memory, attempt_kernel_log;
attempt_fn attempt_proc_mount, attempt_remount, attempt_overlay_mount, attempt_mount_api;
attempt_fn attempt_release_agent, attempt_cgroup_mount;
attempt_fn attempt_core_pattern, attempt_kernel_settings;
attempt_fn attempt_process_list, attempt_process_memory, attempt_ptrace_host, attempt_ptrace_init,
    attempt_signal, attempt_setns;
attempt_fn attempt_abstract_socket, attempt_shared_memory, attempt_message_queue, attempt_key;
attempt_fn attempt_loopback, attempt_host_address, attempt_metadata, attempt_raw_socket,
    attempt_packet_socket, attempt_vsock;
attempt_fn attempt_io_uring, attempt_bpf, attempt_userfaultfd, attempt_perf, attempt_module,
    attempt_kexec, attempt_reboot, attempt_swap, attempt_clock, attempt_io_ports;
attempt_fn attempt_terminal_input;

/* What takes a wall away for a control. */
void prepare_descriptor(const struct facts *facts);
void prepare_cwd(const struct facts *facts);
void prepare_remount(const struct facts *facts);
void prepare_metadata(const struct facts *facts);
