// SPDX-License-Identifier: Apache-2.0
/* What a sandbox sends to its ssh-agent, and what a user stores as a key. The first byte selects
 * which of the two it is. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/err.h"
#include "ssh/agent.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct ssh_agent_session session;
    const struct ssh_agent agent = { .keys = NULL };
    struct buf out = BUF_INIT(SSH_AGENT_REPLY_MAX);
    struct ssh_agent_event event;
    struct ssh_key key;
    struct err err = { 0 };

    if (size == 0)
        return 0;
    if (data[0] % 2 == 0) {
        if (ssh_key_read(&key, (const char *)data + 1, size - 1, &err) == 0)
            ssh_key_done(&key);
        return 0;
    }
    session = (struct ssh_agent_session){ .is_bound = false };
    if (ssh_agent_answer(&agent, &session, (struct ssh_bytes){ data + 1, size - 1 }, &out, &event) <
            0 ||
        out.len < 5)
        abort(); /* every message has an answer */
    buf_done(&out);
    return 0;
}
