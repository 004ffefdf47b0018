"""Checks for leaks of a daemon, on the host and in its registry."""
import os
import sqlite3
import subprocess

from deaths.boxes import eventually


def label_of(state):
    """The name of all its cgroups: FNV-1a of its state directory."""
    value = 2166136261
    for byte in os.path.realpath(state).encode():
        value = (value ^ byte) * 16777619 & 0xffffffff
    return f"holt-{value:08x}"


def groups(label):
    """The cgroups of that name in every hierarchy."""
    found = subprocess.run(["find", "/sys/fs/cgroup", "-mindepth", "1", "-type", "d", "-name", label],
                           capture_output=True, text=True, check=False)
    return found.stdout.split()


def directories(path):
    try:
        return sorted(entry.name for entry in os.scandir(path) if entry.is_dir(follow_symlinks=False))
    except FileNotFoundError:
        return []


def read(*path):
    try:
        with open(os.path.join(*path), encoding="ascii") as file:
            return file.read()
    except (FileNotFoundError, OSError):
        return ""


def parent_of(pid):
    text = read("/proc", pid, "stat")
    return int(text.rsplit(")", 1)[1].split()[1]) if text else None


def remove_leftovers(state):
    """Ends the processes of a daemon and its sandboxes after a failed test."""
    for place in sorted(groups(label_of(state)), key=lambda place: "unified" not in place):
        if os.path.exists(f"{place}/cgroup.kill"):
            with open(f"{place}/cgroup.kill", "w", encoding="ascii") as file:
                file.write("1")
        found = subprocess.run(["find", place, "-depth", "-type", "d"], capture_output=True, text=True, check=False)
        for directory in found.stdout.split():
            eventually("left behind", lambda path=directory: remove_group(path))


def remove_group(path):
    try:
        os.rmdir(path)
    except OSError as error:
        return str(error) if os.path.exists(path) else None
    return None


class Leaks:
    def __init__(self, daemon, pool):
        self.daemon = daemon
        self.pool = pool  # so many warm machines may be there too
        self.label = label_of(daemon.state)
        places = groups(self.label)
        self.unified = next(place for place in places if os.path.exists(place + "/cgroup.events"))
        self.others = [place for place in places if place != self.unified]

    def records(self):
        """All sandboxes of the registry, whose integrity is checked too."""
        with sqlite3.connect(f"file:{self.daemon.state}/holt.db?mode=ro", uri=True) as database:
            verdict = database.execute("PRAGMA integrity_check").fetchall()
            assert verdict == [("ok",)], verdict
            assert not database.execute("PRAGMA foreign_key_check").fetchall()
            rows = database.execute("SELECT id, state, machine, limits_group, uid_slot, generation"
                                    " FROM sandboxes").fetchall()
            kept = database.execute("SELECT sandbox, name FROM snapshots").fetchall()
        database.close()
        return rows, kept

    def volumes(self):
        """The volume directory, which may be in an image that only the daemon has mounted."""
        base = f"/proc/{self.daemon.pid()}/fd"
        for number in os.listdir(base):
            try:
                if os.readlink(f"{base}/{number}").endswith("/volumes"):
                    return f"{base}/{number}/."
            except FileNotFoundError:
                continue
        raise AssertionError("holtd has no volume directory")

    def volume_names(self):
        return directories(self.volumes())

    def deleted_trees(self):
        """The trees that btrfs still has to clean up: None if there are none."""
        listed = subprocess.run(["btrfs", "subvolume", "list", "-d", self.volumes()], capture_output=True, text=True,
                                check=False)
        return listed.stdout or None

    def init_of(self, sandbox):
        """The pid of a sandbox's holt-init on the host."""
        machine = next(row[2] for row in self.records()[0] if row[0] == sandbox)
        return int(read(self.unified, machine, "init/cgroup.procs"))

    def wrong_groups(self, rows):
        machines = sorted(row[2] for row in rows if row[1] in ("active", "paused"))
        found = [name for name in directories(self.unified) if name != "seats"]
        spare = [name for name in found if name not in machines]
        if len(spare) > self.pool or not set(machines) <= set(found):
            return f"groups {found}, machines {machines}"
        for machine in machines:
            for child in directories(f"{self.unified}/{machine}"):
                if "populated 0" in read(self.unified, machine, child, "cgroup.events"):
                    return f"group {machine}/{child} is empty"
            inits = read(self.unified, machine, "init/cgroup.procs").split()
            if len(inits) != 1:
                return f"{machine} has {len(inits)} processes of Holt"
        return None

    def wrong_zygotes(self, rows):
        kept = {row[3] for row in rows if row[1] in ("active", "paused")}
        zygotes = read(self.unified, "seats/init/cgroup.procs").split()
        strange = [pid for pid in zygotes if parent_of(pid) not in (self.daemon.pid(), None)]
        if strange:
            return f"zygotes of another daemon: {strange}"
        for place in self.others:
            names = set(directories(place))
            if not kept - names == set():
                return f"{kept - names} are missing in {place}"
            for name in names:
                if not read(place, name, "cgroup.procs"):
                    return f"{place}/{name} is empty"
            if len(names - kept) > len(zygotes) + self.pool:
                return f"{names - kept} in {place}, but {len(zygotes)} zygotes"
        return None

    def wrong_files(self, rows, kept):
        machines = sorted(row[2] + ".sock" for row in rows if row[1] in ("active", "paused"))
        sockets = sorted(os.listdir(f"{self.daemon.state}/guests"))
        if sockets != machines:
            return f"sockets {sockets}, machines {machines}"
        volumes = self.volumes()
        ids = sorted(row[0] for row in rows)
        found = [name for name in directories(volumes) if not name.startswith(".gone-")]
        if found != ids:
            return f"volumes {found}, sandboxes {ids}"
        for row in rows:
            live = [name for name in directories(f"{volumes}/{row[0]}") if name.startswith("live-")]
            if live != [f"live-{row[5]}"]:
                return f"{row[0]} has {live}, not live-{row[5]}"
            snapshots = directories(f"{volumes}/{row[0]}/snapshots")
            if snapshots != sorted(name for sandbox, name in kept if sandbox == row[0]):
                return f"{row[0]} has {snapshots} in storage, {kept} in the registry"
        if half := [name for name in directories(f"{self.daemon.state}/templates") if name[0] == "."]:
            return f"half-made templates {half}"
        return None

    def loop_devices(self):
        listed = subprocess.run(["losetup", "-l", "-n", "-O", "BACK-FILE"], capture_output=True, text=True,
                                check=False)
        return listed.stdout.count(self.daemon.state + "/")

    def wrong_host(self, rows):
        slots = [row[4] for row in rows if row[1] in ("active", "paused")]
        if len(set(slots)) != len(slots):
            return f"ranges of user ids are shared: {slots}"
        if (count := self.loop_devices()) > 1:
            return f"{count} loop devices"
        table = read("/proc/self/mountinfo")
        if self.daemon.state in table or self.label in table:
            return "a mount of the daemon"
        return None

    def wrong(self):
        rows, kept = self.records()
        odd = [row[:2] for row in rows if row[1] not in ("active", "paused", "stopped")]
        if odd:
            return f"in the registry: {odd}"
        return (self.wrong_groups(rows) or self.wrong_zygotes(rows) or self.wrong_files(rows, kept)
                or self.wrong_host(rows))

    def check(self):
        eventually("left behind", self.wrong)

    def check_nothing(self):
        """Checks for leaks after the daemon has stopped without sandboxes."""
        eventually("left behind", lambda: groups(self.label) or None)
        eventually("left behind", lambda: "a loop device" if self.loop_devices() else None)
