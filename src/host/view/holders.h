/* Finds the processes of a machine that hold files of its codebase which the rules would refuse
 * them now: by a descriptor, whoever opened it, or by a mapping, whose file may be closed. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;
struct machine;

struct holders {
    uint32_t mapped; /* files that are mapped and not open any more */
    uint32_t ended;  /* processes */
};

/* Counts files that are only mapped; with `ends`, kills every process that holds one of the files,
 * and waits for its end. A descriptor that is on its way through a socket has no holder yet. */
int machine_find_holders(struct machine *machine, bool ends, struct holders *ret, struct err *err);
