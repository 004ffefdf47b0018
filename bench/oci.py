"""Containers of crun and runc, for several benchmarks."""

import json
from pathlib import Path

UNIFIED_CONTROLLERS = Path("/sys/fs/cgroup/unified/cgroup.controllers")


def oci_bundle(bundle, root, command):
    """Writes the output of `crun spec`, reduced to what a throw-away container needs."""
    namespaces = [{"type": t} for t in ("pid", "network", "ipc", "uts", "mount", "cgroup", "user")]
    ids = [{"containerID": 0, "hostID": 100000, "size": 65536}]
    flags = ["nosuid", "noexec", "nodev"]
    config = {
        "ociVersion": "1.0.0",
        "process": {
            "terminal": False,
            "user": {"uid": 0, "gid": 0},
            "args": command,
            "env": ["PATH=/bin"],
            "cwd": "/",
            "noNewPrivileges": True,
        },
        "root": {"path": str(root), "readonly": False},
        "mounts": [
            {"destination": "/proc", "type": "proc", "source": "proc"},
            {"destination": "/dev", "type": "tmpfs", "source": "tmpfs",
             "options": ["nosuid", "strictatime", "mode=755", "size=65536k"]},
            {"destination": "/tmp", "type": "tmpfs", "source": "tmpfs", "options": flags},
        ],
        "linux": {"namespaces": namespaces, "uidMappings": ids, "gidMappings": ids},
    }
    bundle.mkdir()
    (bundle / "config.json").write_text(json.dumps(config))
    return str(bundle)


def for_crun(argv):
    """Hides unified controllers beside v1 from crun, which refuses such hosts."""
    if not UNIFIED_CONTROLLERS.exists():
        return argv
    script = f'mount --bind /dev/null {UNIFIED_CONTROLLERS} && exec "$@"'
    return ["unshare", "-m", "sh", "-c", script, "sh", *argv]
