/* Leads the TCP connections of a network namespace to one listener.
 *
 * The program is assembled by hand and loaded with bpf(2): it has thirty instructions, and libbpf
 * would bring libelf, a compiler for BPF at build time and an object file. */
#pragma once

#include <netinet/in.h>
#include <stdint.h>

/* Attaches a program to the network namespace. It leads every TCP connection to an address other
 * than 127.0.0.0/8 and ::1 to the listener, whatever else is bound there, and refuses it once the
 * listener is closed. Datagrams pass to these addresses and to the resolver, port 53; all others
 * are refused. Returns a descriptor that keeps the program attached, or -errno. */
int sk_lookup_attach(int netns_fd, int listener_fd, struct in_addr resolver);

/* Makes a filesystem in which programs stay attached without a descriptor each. It is mounted
 * nowhere: it ends, and detaches its programs, with the last process that has the descriptor.
 * Returns that, or -errno. */
int sk_lookup_pins_open(void);

/* Keeps the program of a descriptor attached under a number. Returns 0 or -errno. */
int sk_lookup_pin(int pins_fd, uint64_t number, int link_fd);

/* Detaches the program of a number, if there is one, before it returns. */
void sk_lookup_unpin(int pins_fd, uint64_t number);

/* Returns 0 if the kernel loads such a program for this process, or -errno. */
int sk_lookup_check(void);
