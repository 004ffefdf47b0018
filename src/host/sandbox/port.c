// SPDX-License-Identifier: Apache-2.0
/* Access to the ports of a sandbox. */
#include "host/port/port.h"

#include "base/err.h"
#include "host/machine/machine.h"
#include "host/sandbox/sandbox_internal.h"

int sandbox_forward(struct sandbox *sandbox, uint16_t port, const char *listen,
                    struct port_forward **ret, struct err *err)
{
    const struct port_forward_spec spec = {
        .port = port,
        .listen = listen,
        .sandbox = sandbox,
        .owner = sandbox->info.id, /* constant */
    };
    struct machine *machine = NULL;
    int r = sandbox_ref_machine(sandbox, &machine, err);

    if (r < 0)
        return r;
    r = port_forward_open(machine, &spec, ret, err);
    machine_unref(machine);
    return r;
}

int sandbox_probe(struct sandbox *sandbox, uint16_t port, const char *http_path,
                  const struct port_patience *patience, struct err *err)
{
    struct machine *machine = NULL;
    int r = sandbox_ref_machine(sandbox, &machine, err);

    if (r < 0)
        return r;
    r = port_probe(machine, port, http_path, patience, err);
    machine_unref(machine);
    return r;
}

int sandbox_find_listener(struct sandbox *sandbox, const char *process_id, uint16_t port,
                          enum port_listener *ret, struct err *err)
{
    struct machine *machine = NULL;
    int r = sandbox_ref_machine(sandbox, &machine, err);

    if (r < 0)
        return r;
    r = port_find_listener(machine, process_id, port, ret);
    machine_unref(machine);
    return r < 0 ? err_sys(err, r, "find the process that listens on port %u", port) : 0;
}

int sandbox_dial(struct sandbox *sandbox, uint16_t port, const struct port_patience *patience,
                 int *ret_fd, struct err *err)
{
    struct machine *machine = NULL;
    int r = sandbox_ref_machine(sandbox, &machine, err);

    if (r < 0)
        return r;
    r = port_dial(machine, port, patience, ret_fd, err);
    machine_unref(machine);
    return r;
}
