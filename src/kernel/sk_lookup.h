/* Leads the TCP connections of a network namespace to one listener.
 *
 * The program is assembled by hand and loaded with bpf(2): it has thirty instructions, and libbpf
 * would bring libelf, a compiler for BPF at build time and an object file. */
#pragma once

#include <netinet/in.h>

/* Attaches a program to the network namespace. It leads every TCP connection to an address other
 * than 127.0.0.0/8 and ::1 to the listener, whatever else is bound there, and refuses it once the
 * listener is closed. Datagrams pass to these addresses and to the resolver, port 53; all others
 * are refused. Returns a descriptor that keeps the program attached, or -errno. */
int sk_lookup_attach(int netns_fd, int listener_fd, struct in_addr resolver);

/* Returns 0 if the kernel loads such a program for this process, or -errno. */
int sk_lookup_check(void);
