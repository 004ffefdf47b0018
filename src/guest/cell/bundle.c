// SPDX-License-Identifier: Apache-2.0
#include "guest/cell/bundle.h"

#include <ctype.h>
#include <errno.h>
#include <linux/capability.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"

enum { NAMES_MAX = 1024, HOST_NAME_MAX_BYTES = 64 };

/* The capabilities that Docker leaves to a container; see kernel/caps.h. */
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

/* The daemon chooses host names of letters, digits, '-', '.' and '_' only. */
static bool is_plain(const char *text)
{
    for (; *text; text++)
        if (!isalnum((unsigned char)*text) && !strchr("-._", *text))
            return false;
    return true;
}

int bundle_write(uint64_t capabilities, bool has_tmp, char *text, size_t size)
{
    static const char tmp[] = ",{\"destination\":\"/tmp\",\"type\":\"bind\",\"source\":\"/tmp\"}";
    char names[NAMES_MAX], host[HOST_NAME_MAX_BYTES + 1] = "";
    int len;

    names_write(capabilities, names);
    if (gethostname(host, sizeof(host) - 1) < 0)
        return -errno;
    len = snprintf(text, size,
                   "{\"ociVersion\":\"1.0.0\",\"hostname\":\"%s\",\"root\":{\"path\":\"/tree\"},"
                   "\"process\":{\"user\":{\"uid\":0,\"gid\":0},\"cwd\":\"/\",\"env\":[],"
                   "\"args\":[\"/dev/.holt/holt-init\",\"inner\"],"
                   "\"capabilities\":{\"bounding\":[%s],\"effective\":[%s],\"permitted\":[%s],"
                   "\"inheritable\":[]}},"
                   "\"mounts\":["
                   "{\"destination\":\"/proc\",\"type\":\"proc\"},"
                   "{\"destination\":\"/sys\",\"type\":\"sysfs\",\"options\":[\"ro\"]},"
                   "{\"destination\":\"/dev\",\"type\":\"tmpfs\"},"
                   "{\"destination\":\"/dev/pts\",\"type\":\"devpts\"},"
                   "{\"destination\":\"/dev/shm\",\"type\":\"tmpfs\",\"options\":[\"mode=1777\"]},"
                   "{\"destination\":\"/dev/.holt\",\"type\":\"bind\",\"source\":\"/init\","
                   "\"options\":[\"ro\"]}%s],"
                   "\"linux\":{\"namespaces\":[{\"type\":\"pid\"},{\"type\":\"ipc\"},"
                   "{\"type\":\"uts\"},{\"type\":\"mount\"}]}}\n",
                   is_plain(host) ? host : "sandbox", names, names, names, has_tmp ? tmp : "");
    return len < (int)size ? 0 : -ENOBUFS;
}
