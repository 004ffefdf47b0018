"""The series of bench/turns for other programs."""

from common import SPAWN, Series
from turns_places import BTRFS_SNAPSHOT, tool

CHANGED_KIB = 10 * 1024
FEW, SOME = 3, 10  # runs of operations that take seconds, or a large part of one


def dd(path):
    return f"dd if=/dev/zero of={path} bs=1M count={CHANGED_KIB // 1024} 2>/dev/null"


def spawn(command, before=None, after=None):
    """Measures a single program if possible, else a script."""
    words = [SPAWN]
    if before:
        words += ["-b", before]
    if after:
        words += ["-a", after]
    return [*words, "COUNT", *(["/bin/sh", "-c", command] if isinstance(command, str) else command)]


def bare_series(quota, plain, big):
    """The cost in the kernel, on copies of the filesystem of the daemon."""
    def bare(group, name, btrfs, *options):
        return Series(group, name, [BTRFS_SNAPSHOT, *options, "COUNT", str(btrfs.place)])

    changed = ("-c", str(CHANGED_KIB))
    return [
        bare("snapshot, nothing changed", "bare ioctl", quota),
        bare("snapshot, nothing changed", "bare ioctl, no quota", plain),
        bare("snapshot", "bare ioctl", quota, *changed),
        bare("snapshot", "bare ioctl, no quota", plain, *changed),
        bare("snapshot", "bare ioctl, no quota, 1 GiB tree", big, *changed),
        bare("fork", "bare ioctl", quota, "-m", "1"),
        Series("fork x 100", "bare ioctl x 100",
               [BTRFS_SNAPSHOT, "-m", "100", "COUNT", str(quota.place)], count=SOME, warm=1),
    ]


def btrfs_series(plain, big):
    btrfs = tool("btrfs")
    found = []
    for name, place in (("btrfs command", plain.place), ("btrfs command, 1 GiB tree", big.place)):
        live, one = f"{place}/live", f"{place}/one-%d"
        snapshot = [btrfs, "subvolume", "snapshot", "-r", live, one]
        found += [
            Series("snapshot, nothing changed", name, spawn(snapshot)),
            Series("snapshot", name, spawn(snapshot, before=dd(f"{live}/changed"))),
            Series("rollback", f"{name}, files only", spawn(
                f"{btrfs} subvolume delete {live} >&2 && "
                f"{btrfs} subvolume snapshot {place}/base {live} >&2",
                before=dd(f"{live}/changed"))),
            Series("fork", name, spawn([btrfs, "subvolume", "snapshot", live, one],
                                       after=f"{btrfs} subvolume delete {one} >&2")),
        ]
    return found


def copy_series(work, big, xfs):
    """Copies of the whole tree, and of a layer with only the changes."""
    cp, rm = tool("cp"), "rm -rf"
    layer = work / "layer"
    layer.mkdir()
    found = [
        Series("snapshot", "cp -a, only the 10 MiB",
               spawn([cp, "-a", str(layer), str(work / "copy-%d")], before=dd(f"{layer}/changed"),
                     after=f"{rm} {work}/copy-%d")),
    ]
    for name, filesystem in (("btrfs", big), ("xfs", xfs)):
        if not filesystem:
            continue
        live, one = filesystem.place / "live", filesystem.place / "copy-%d"
        if name == "xfs":
            found.append(Series("snapshot", "cp -a, xfs, 1 GiB tree",
                                spawn([cp, "-a", "--reflink=never", str(live), str(one)],
                                      after=f"{rm} {one}"), count=FEW, warm=0))
        name = f"cp -a --reflink, {name}, 1 GiB tree"
        copy = [cp, "-a", "--reflink=always", str(live), str(one)]
        # A fork is the same copy.
        found.append(Series("snapshot", name,
                            spawn(copy, before=dd(f"{live}/changed"), after=f"{rm} {one}"),
                            count=FEW, warm=0, beside=[Series("fork", name, [])]))
    return found


def docker_series(docker):
    program = docker.docker
    sleep = "/bin/sleep 100000"
    found = []

    def add(group, what, command, before=None, after=None):
        script = isinstance(command, str)
        found.append(Series(group, f"docker {what}", spawn(
            command if script else [program, *command], before, after), env=docker.env, count=SOME, warm=1))

    def change(container):
        return f"{program} exec {container} {dd('/workspace/changed')} >&2"

    for name, what in (("small", "small image"), ("big", "1 GiB image")):
        start = f"{docker.RUN} --name {name}-%d {name} {sleep}"
        remove = f"{program} rm -f {name}-%d"
        add("create", f"run, {what}", start.split(), after=remove)
        add("destroy", f"rm, {what}", ["rm", "-f", f"{name}-%d"], before=f"{program} {start}")
        add("snapshot", f"commit, {what}", ["commit", name, f"{name}-one-%d"],
            before=change(name), after=f"{program} rmi {name}-one-%d")
        add("rollback", f"rm, run, {what}",
            f"{remove} >&2 && {program} {docker.RUN} --name {name}-%d {name}-base {sleep} >&2",
            before=f"{program} {start} && {change(name + '-%d')}", after=remove)
    add("pause", "pause", ["pause", "small"], after=f"{program} unpause small")
    add("resume", "unpause", ["unpause", "small"], before=f"{program} pause small")
    add("stop", "stop", ["stop", "-t", "0", "small"], after=f"{program} start small")
    add("start", "start", ["start", "small"], before=f"{program} stop -t 0 small")
    return found


def zfs_series(zfs):
    """Uses a small tree, because zfs-fuse would need minutes for the big one."""
    def dataset(name):
        return f"{zfs.POOL}/{name}"

    def add(group, what, command, before=None, after=None):
        return Series(group, f"zfs {what}, 64 MiB tree", spawn([zfs.zfs, *command], before, after),
                      count=SOME, warm=1)

    live = zfs.place("live") / "changed"
    # zfs-fuse reports a clone as busy for some time after it was mounted.
    clone = ("clone", "-o", "mountpoint=none", f"{dataset('live')}@base")
    return [
        add("snapshot, nothing changed", "snapshot", ["snapshot", f"{dataset('live')}@%d"]),
        add("snapshot", "snapshot", ["snapshot", f"{dataset('live')}@%d"], before=dd(live)),
        add("rollback", "rollback, files only", ["rollback", f"{dataset('back')}@base"],
            before=dd(zfs.place("back") / "changed")),
        add("fork", "clone, not mounted", [*clone, dataset("fork-%d")],
            after=f"{zfs.zfs} destroy {dataset('fork-%d')}"),
        add("destroy", "destroy", ["destroy", dataset("fork-%d")],
            before=f"{zfs.zfs} {' '.join(clone)} {dataset('fork-%d')}"),
    ]
