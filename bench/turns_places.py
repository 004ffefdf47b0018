"""The trees of bench/turns: a big one, kept between runs, and filesystems in files."""

import os
import shutil
import subprocess
from pathlib import Path

from common import BUILD, make_rootfs

FILES = 50_000
FILES_A_DIR = 100
TREE_BYTES = 1 << 30
SMALL_DIRS = 30  # for slow filesystems: 3,000 files, 64 MiB
BTRFS, XFS = ("mkfs.btrfs", "--quiet"), ("mkfs.xfs", "-q")
BTRFS_SNAPSHOT = str(BUILD / "bench" / "btrfs_snapshot")


def tool(name):
    found = shutil.which(name, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")
    if not found:
        raise RuntimeError(f"{name} is not installed (tools/setup bench)")
    return found


def run(*argv, **options):
    """Runs a command that must succeed; an error contains its last line of output."""
    done = subprocess.run([str(word) for word in argv], stdin=options.pop("stdin", subprocess.DEVNULL),
                          capture_output=True, text=True, **options)
    if done.returncode != 0:
        words = (done.stderr.strip() or done.stdout.strip() or "no word").splitlines()
        raise RuntimeError(f"{argv[0]} {argv[1] if len(argv) > 1 else ''}: {words[-1]}")
    return done.stdout.strip()


def big_tree():
    """Creates, once, the root filesystem with 50,000 files of 1 GiB in total."""
    tree = BUILD / "bench-cache" / f"tree-{FILES}-{TREE_BYTES >> 20}"
    if tree.exists():
        return tree
    new = Path(f"{tree}.new")
    shutil.rmtree(new, ignore_errors=True)
    new.mkdir(parents=True)
    make_rootfs(new)
    size = TREE_BYTES // FILES
    bytes_ = os.urandom(size + FILES)  # every file is a different window of it
    for number in range(FILES):
        directory = new / "data" / f"{number // FILES_A_DIR:03}"
        if number % FILES_A_DIR == 0:
            directory.mkdir(parents=True)
        (directory / f"{number % FILES_A_DIR:02}").write_bytes(bytes_[number:number + size])
    new.rename(tree)
    return tree


def copy_small(tree, into):
    """Creates a tree that is small enough for slow filesystems."""
    (into / "data").mkdir(parents=True)
    for number in range(SMALL_DIRS):
        run("cp", "-a", tree / "data" / f"{number:03}", into / "data")


def mount_image(work, name, mkfs, filesystem):
    """Creates a filesystem in a sparse file, with the size and options that the daemon uses. Mount and
    device disappear with the last process of this mount namespace."""
    image, place = work / f"{name}.img", work / name
    free = os.statvfs(work)
    with open(image, "wb") as file:
        file.truncate(min(free.f_bavail * free.f_frsize // 5 * 4, 256 << 30))
    run(tool(mkfs[0]), *mkfs[1:], image)
    place.mkdir()
    device = run("losetup", "--find", "--show", "--direct-io=on", image)
    try:
        run("mount", "-t", filesystem, "-o", "noatime", device, place)
    finally:
        run("losetup", "--detach", device)  # takes effect after the unmount
    return place


class Filesystem:
    def __init__(self, work, name, mkfs, kind):
        self.place = mount_image(work, name, mkfs, kind)

    def stop(self):
        run("umount", "--lazy", self.place)


class Btrfs(Filesystem):
    """Creates a copy of the volume image of the daemon, optionally with a tree or without quota."""

    def __init__(self, work, name, has_quota, tree=None):
        super().__init__(work, name, BTRFS, "btrfs")
        if has_quota:
            run(BTRFS_SNAPSHOT, "-q", self.place)
        run(tool("btrfs"), "subvolume", "create", self.place / "live")
        if tree:
            run("cp", "-a", f"{tree}/.", self.place / "live")
        run(tool("btrfs"), "subvolume", "snapshot", "-r", self.place / "live", self.place / "base")
        run("sync", "-f", self.place)


class Xfs(Filesystem):
    def __init__(self, work, name, tree):
        super().__init__(work, name, XFS, "xfs")
        run("cp", "-a", tree, self.place / "live")
        run("sync", "-f", self.place)
