// SPDX-License-Identifier: Apache-2.0
#include "guest/cell/bundle.h"

#include <errno.h>
#include <linux/capability.h>
#include <stdio.h>

#include "base/cleanup.h"

enum { NAMES_MAX = 1024 };

/* The capabilities that Docker leaves to a container (see kernel/caps.h), and the one that the
 * inner holt-init needs to enter its root. */
static const struct {
    unsigned number;
    const char *name;
} known[] = {
    { CAP_CHOWN, "CAP_CHOWN" },
    { CAP_DAC_OVERRIDE, "CAP_DAC_OVERRIDE" },
    { CAP_FOWNER, "CAP_FOWNER" },
    { CAP_FSETID, "CAP_FSETID" },
    { CAP_KILL, "CAP_KILL" },
    { CAP_SETGID, "CAP_SETGID" },
    { CAP_SETUID, "CAP_SETUID" },
    { CAP_SETPCAP, "CAP_SETPCAP" },
    { CAP_NET_BIND_SERVICE, "CAP_NET_BIND_SERVICE" },
    { CAP_NET_RAW, "CAP_NET_RAW" },
    { CAP_SYS_CHROOT, "CAP_SYS_CHROOT" },
    { CAP_MKNOD, "CAP_MKNOD" },
    { CAP_AUDIT_WRITE, "CAP_AUDIT_WRITE" },
    { CAP_SETFCAP, "CAP_SETFCAP" },
    { CAP_SYS_ADMIN, "CAP_SYS_ADMIN" },
};

static void names_write(uint64_t capabilities, char names[NAMES_MAX])
{
    size_t used = 0;

    names[0] = '\0';
    for (size_t i = 0; i < ARRAY_SIZE(known); i++)
        if (capabilities >> known[i].number & 1)
            used += (size_t)snprintf(names + used, NAMES_MAX - used, "%s\"%s\"", used ? "," : "",
                                     known[i].name);
}

int bundle_write(uint64_t capabilities, char *text, size_t size)
{
    char names[NAMES_MAX];
    int len;

    names_write(capabilities | 1ULL << CAP_SYS_ADMIN, names);
    len =
        snprintf(text, size,
                 "{\"ociVersion\":\"1.0.0\",\"hostname\":\"sandbox\",\"root\":{\"path\":\"/root\"},"
                 "\"process\":{\"user\":{\"uid\":0,\"gid\":0},\"cwd\":\"/\",\"env\":[],"
                 "\"args\":[\"/dev/.holt/holt-init\",\"inner\",\"parked\"],"
                 "\"capabilities\":{\"bounding\":[%s],\"effective\":[%s],\"permitted\":[%s],"
                 "\"inheritable\":[]}},"
                 "\"mounts\":["
                 "{\"destination\":\"/proc\",\"type\":\"proc\"},"
                 "{\"destination\":\"/dev\",\"type\":\"tmpfs\"},"
                 "{\"destination\":\"/dev/pts\",\"type\":\"devpts\"},"
                 "{\"destination\":\"/dev/.holt\",\"type\":\"bind\",\"source\":\"/init\","
                 "\"options\":[\"ro\"]}],"
                 "\"linux\":{\"namespaces\":[{\"type\":\"pid\"},{\"type\":\"ipc\"},"
                 "{\"type\":\"uts\"},{\"type\":\"mount\"}]}}\n",
                 names, names, names);
    return len < (int)size ? 0 : -ENOBUFS;
}
