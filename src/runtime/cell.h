/* What the daemon knows of gVisor: where runsc is, and how to call it. */
#pragma once

struct err;

/* Threads of runsc that count against a sandbox's limit of processes. */
enum { RUNTIME_CELL_PROCESSES = 128 };

struct runtime_cell {
    int runsc_fd;
    const char *platform; /* the fastest one that this runsc has */
};

/* Opens the runsc that is installed. ERR_UNSUPPORTED if there is none. Thread-safe. */
int runtime_cell_open(struct runtime_cell *ret, struct err *err);

void runtime_cell_close(struct runtime_cell *cell);
