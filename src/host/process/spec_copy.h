/* A process_spec of one's own. */
#pragma once

struct process_spec;

/* All that it points to lies in the same piece of memory: the caller frees that. */
struct process_spec *spec_copy(const struct process_spec *spec);
