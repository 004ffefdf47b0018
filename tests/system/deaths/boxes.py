"""The expected state of every sandbox, and checks against it."""
import hashlib
import os
import stat
import time

PATIENCE_SECONDS = 300  # a bound for polling, not a speed limit
TREES = ("workspace", "data")

# Lists files in the sandbox as listing() does from outside.
LIST = """cd / && find workspace data ! -name 'count*' | sort >/tmp/list && xargs stat -c '%f %n' </tmp/list &&
    find workspace data -type f ! -name 'count*' | sort | xargs -r md5sum"""

# Counts in a file for ever; the file is replaced by rename, so that it always contains a number.
COUNT = """i=0; while :; do i=$((i + 1)); echo $i >/workspace/count.new
    mv /workspace/count.new /workspace/count; sleep 0.05; done"""
BEGIN = 'sh -c "$1" "$0" >/dev/null 2>&1 </dev/null & echo $!'

# Changes a file, removes one, replaces one by a directory, and adds modes, a link and a large file.
FILL = """cd /workspace && mkdir -p d/e && echo "$1" >d/e/name && echo "$1" >>/data/changed &&
    rm -f /data/removed && rm -rf /data/replaced && mkdir /data/replaced &&
    echo "$1" >/data/replaced/file && ln -sf d/e/name link && chmod 640 d/e/name &&
    dd if=/dev/urandom of=big bs=1024 count=96 2>/dev/null"""


def eventually(what, claim):
    """Waits until a claim returns None instead of the reason why it does not hold."""
    end = time.monotonic() + PATIENCE_SECONDS
    while (why := claim()) is not None:
        assert time.monotonic() < end, f"{what}: {why}"
        time.sleep(0.02)


def start_time(pid):
    """The start time of a process on the host, or None if it does not exist."""
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii") as file:
            fields = file.read().rsplit(")", 1)[1].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return None if fields[0] in "ZX" else int(fields[19])


def listing(root):
    """Lists the files below a directory of the host as LIST does it inside."""
    names = []
    for tree in TREES:
        for at, directories, files in os.walk(os.path.join(root, tree)):
            names += [os.path.join(at, name) for name in directories + files]
        names.append(os.path.join(root, tree))
    kept = sorted(os.path.relpath(path, root) for path in names
                  if not os.path.basename(path).startswith("count"))
    lines, digests = "", ""
    for name in kept:
        mode = os.lstat(os.path.join(root, name)).st_mode
        lines += f"{mode:x} {name}\n"
        if stat.S_ISREG(mode):
            with open(os.path.join(root, name), "rb") as file:
                digests += f"{hashlib.md5(file.read()).hexdigest()}  {name}\n"
    return lines + digests


def host_pids(mark):
    """Processes on the host that have this word in their command line: (pid, pid inside)."""
    found = []
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            with open(f"/proc/{entry}/cmdline", "rb") as file:
                if mark.encode() not in file.read().split(b"\0"):
                    continue
            with open(f"/proc/{entry}/status", encoding="ascii") as file:
                inside = [line.split()[-1] for line in file if line.startswith("NSpid:")]
        except (FileNotFoundError, ProcessLookupError):
            continue
        found += [(int(entry), number) for number in inside]
    return found


def host_pid(mark, inner):
    """The one of them with this pid inside; waits while it is about to exec and has no command line."""
    found = []

    def look():
        found[:] = [pid for pid, number in host_pids(mark) if number == inner]
        return None if found else "has no process"

    eventually(mark, look)
    return found[0]


class Counter:
    """A counting process in a sandbox, seen from the host."""

    def __init__(self, daemon, box):
        mark = f"counter-of-{box.id}"
        inner = daemon.execute(box.id, BEGIN, mark, COUNT).strip()
        self.pid = host_pid(mark, inner)
        self.began = start_time(self.pid)

    def is_alive(self):
        return self.began is not None and start_time(self.pid) == self.began

    def root(self):
        return f"/proc/{self.pid}/root"

    def value(self):
        try:
            with open(f"{self.root()}/workspace/count", encoding="ascii") as file:
                return int(file.read())
        except FileNotFoundError:
            return 0  # not yet one


class Box:
    """The acknowledged state of one sandbox."""

    def __init__(self, identity, files, **known):
        self.id = identity
        self.name = known.get("name", "")
        self.state = "active"
        self.files = files
        self.turns = 0
        self.limit = known.get("limit", 0)
        self.snapshots = {}  # name: files
        self.counter = None

    def __repr__(self):
        return f"{self.name or self.id}({self.state})"

    def fill(self, daemon, word):
        daemon.execute(self.id, FILL, "fill", word)
        self.files = daemon.execute(self.id, LIST)

    def count(self, daemon):
        """Starts a counter in the sandbox unless one runs."""
        if self.state == "active" and self.counter is None:
            self.counter = Counter(daemon, self)

    def check_files(self, daemon):
        """Checks the files from inside or, if nothing can run there, from outside."""
        if self.state == "active":
            found = daemon.execute(self.id, LIST)
        elif self.state == "paused" and self.counter:
            found = listing(self.counter.root())
        else:
            return
        assert found == self.files, f"files of {self} are\n{found}not\n{self.files}"

    def check_snapshots(self, daemon):
        found = daemon.call("SnapshotService/List", sandboxId=self.id).get("snapshots", [])
        names = sorted(snapshot["name"] for snapshot in found)
        assert names == sorted(self.snapshots), f"snapshots of {self}: {names}, not {self.snapshots.keys()}"

    def check_told(self, told):
        """Checks an entry of a list."""
        assert told["state"] == self.state, f"{self} is {told['state']}: {told.get('reason')}"
        assert told.get("name", "") == self.name, told
        assert int(told.get("turns", 0)) == self.turns, f"{self} has {told.get('turns')} turns, not {self.turns}"
        assert int(told.get("snapshots", 0)) == len(self.snapshots), f"{self}: {told} {self.snapshots.keys()}"
        assert self.state != "active" or not told.get("reason"), told
