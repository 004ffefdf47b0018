// SPDX-License-Identifier: Apache-2.0
/* Every attempt, in the order of the report. */
#include "prove/prove.h"

const struct attempt attempts[] = {
    /* files of the host */
    { "file", "read a file by its path", attempt_file, NULL, true },
    { "proc-root", "read a file through /proc/PID/root", attempt_proc_root, NULL, true },
    { "file-handle", "open a file by its handle (Docker's shocker.c)", attempt_handle, NULL,
      false },
    { "working-directory", "leave by the working directory (CVE-2024-21626)", attempt_cwd,
      prepare_cwd, false },
    { "leaked-descriptor", "use a descriptor that was left open (CVE-2024-21626)",
      attempt_descriptors, prepare_descriptor, false },
    { "init-program", "overwrite the program of process 1 (CVE-2019-5736)", attempt_init_program,
      NULL, false },

    /* devices, and memory of the kernel */
    { "disk", "make a device node and read the disk", attempt_disk, NULL, false },
    { "device-nodes", "make a node of memory, loop, kvm, fuse or tun and open it",
      attempt_device_nodes, NULL, false },
    { "kernel-memory", "read /proc/kcore", attempt_kernel_memory, NULL, false },
    { "kernel-log", "read the kernel log of the host", attempt_kernel_log, NULL, false },

    /* mounts and control groups */
    { "proc-mount", "mount a writable /proc", attempt_proc_mount, prepare_mounts, false },
    { "remount", "make a read-only mount writable (CVE-2025-31133)", attempt_remount,
      prepare_remount, false },
    { "overlay-mount", "mount an overlay in a user namespace (CVE-2023-2640)",
      attempt_overlay_mount, prepare_mounts, false },
    { "mount-api", "clone a mount tree (CVE-2022-0185)", attempt_mount_api, NULL, false },
    { "release-agent", "write release_agent of a control group (CVE-2022-0492)",
      attempt_release_agent, NULL, false },
    { "cgroup-mount", "mount control groups and write to them (CVE-2023-25809)",
      attempt_cgroup_mount, prepare_mounts, false },

    /* settings of the kernel */
    { "core-pattern", "write /proc/sys/kernel/core_pattern (CVE-2025-52881)", attempt_core_pattern,
      NULL, false },
    { "kernel-settings", "write sysrq, modprobe, uevent_helper or binfmt_misc",
      attempt_kernel_settings, NULL, false },

    /* processes */
    { "process-list", "see a process", attempt_process_list, NULL, true },
    { "process-memory", "read the memory of a process", attempt_process_memory, NULL, true },
    { "ptrace", "trace a process", attempt_ptrace_host, NULL, true },
    { "ptrace-init", "trace Holt's process 1", attempt_ptrace_init, NULL, false },
    { "signal", "send a signal to a process", attempt_signal, NULL, true },
    { "setns", "enter the namespaces of a process", attempt_setns, NULL, false },

    /* ways between processes */
    { "abstract-socket", "connect to an abstract unix socket (CVE-2020-15257)",
      attempt_abstract_socket, NULL, true },
    { "shared-memory", "attach SysV shared memory", attempt_shared_memory, NULL, true },
    { "message-queue", "open a POSIX message queue", attempt_message_queue, NULL, true },
    { "kernel-key", "read a key of the kernel's keyrings", attempt_key, NULL, false },
    { "terminal-input", "push input into a terminal (CVE-2017-5226)", attempt_terminal_input, NULL,
      false },

    /* network */
    { "loopback", "connect to a port on loopback", attempt_loopback, NULL, true },
    { "host-address", "connect to an address of the host", attempt_host_address, NULL, false },
    { "metadata", "connect to the metadata service of a cloud", attempt_metadata, prepare_metadata,
      false },
    { "raw-socket", "open a raw IP socket", attempt_raw_socket, NULL, false },
    { "packet-socket", "open a packet socket (CVE-2020-14386)", attempt_packet_socket, NULL,
      false },
    { "vsock", "open a socket to the hypervisor", attempt_vsock, NULL, false },

    /* parts of the kernel with a history */
    { "io-uring", "set up io_uring (CVE-2022-29582)", attempt_io_uring, NULL, false },
    { "bpf", "make a BPF map (CVE-2021-3490)", attempt_bpf, NULL, false },
    { "userfaultfd", "make a userfaultfd", attempt_userfaultfd, NULL, false },
    { "perf", "open a performance counter (CVE-2013-2094)", attempt_perf, NULL, false },
    { "module", "load a kernel module", attempt_module, NULL, false },
    { "kexec", "load another kernel", attempt_kexec, NULL, false },
    { "reboot", "reboot the machine", attempt_reboot, NULL, false },
    { "swap", "add swap space", attempt_swap, NULL, false },
    { "clock", "adjust the clock", attempt_clock, NULL, false },
    { "io-ports", "use ports of the hardware", attempt_io_ports, NULL, false },
    { NULL, NULL, NULL, NULL, false },
};
