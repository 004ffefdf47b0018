"""A filesystem on a loop device on a disk (disk.c) that loses what was not flushed when its power is cut."""
import os
import signal
import subprocess
import time

SECONDS = 120  # a bound against hanging, not a speed limit
MAKE = {
    "ext4": ["mkfs.ext4", "-q", "-F", "-b", "4096", "-E", "nodiscard"],
    "xfs": ["mkfs.xfs", "-q", "-f", "-K", "-s", "size=4096"],
}


def eventually(is_true, what):
    end = time.monotonic() + SECONDS
    while not is_true():
        assert time.monotonic() < end, f"never came true: {what}"
        time.sleep(0.02)


def build(source, directory):
    """Compiles disk.c; returns the program."""
    program = f"{directory}/disk-program"
    flags = subprocess.run(["pkg-config", "--cflags", "--libs", "fuse3"], check=True, capture_output=True,
                           text=True).stdout.split()
    subprocess.run(["cc", "-O1", "-Wall", "-Wextra", "-Werror", "-D_GNU_SOURCE", "-D_FILE_OFFSET_BITS=64", source,
                    "-o", program, "-pthread", *flags], check=True)
    return program


class Disk:
    def __init__(self, program, directory, filesystem, size):
        self.program = program
        self.image = f"{directory}/image"
        self.fuse = f"{directory}/fuse"
        self.mount = f"{directory}/state"
        self.filesystem = filesystem
        self.process = self.loop = None
        for path in self.fuse, self.mount:
            os.makedirs(path)
        with open(self.image, "wb") as image:
            image.truncate(size)
        subprocess.run([*MAKE[filesystem], self.image], check=True)

    def stats(self):
        """Returns the number of flushes, and of blocks that wait for one."""
        with open(f"{self.fuse}/stats", encoding="ascii") as file:
            return [int(word) for word in file.read().split()]

    def power_on(self, seed, percent):
        """Mounts the disk. At a cut, percent of the blocks that were not flushed survive."""
        self.process = subprocess.Popen([self.program, self.image, self.fuse, str(seed), str(percent)])
        eventually(lambda: os.path.exists(f"{self.fuse}/disk"), "the disk is there")
        self.loop = subprocess.run(["losetup", "--show", "--sector-size", "4096", "-f", f"{self.fuse}/disk"],
                                   check=True, capture_output=True, text=True).stdout.strip()
        subprocess.run(["mount", "-t", self.filesystem, self.loop, self.mount], check=True)

    def cut(self):
        """Cuts the power. Everything that happens to the mounted filesystem from now on is in vain."""
        process, self.process = self.process, None
        process.send_signal(signal.SIGUSR1)
        assert process.wait(SECONDS) == 0

    def clear(self):
        """Unmounts what is left after a cut, once no process uses it."""
        if self.process:
            self.cut()
        if not self.loop:
            return
        subprocess.run(["umount", "-l", self.mount], check=False, stderr=subprocess.DEVNULL)
        subprocess.run(["losetup", "-d", self.loop], check=False, stderr=subprocess.DEVNULL)
        subprocess.run(["umount", "-l", self.fuse], check=False, stderr=subprocess.DEVNULL)
        name = os.path.basename(self.loop)
        eventually(lambda: not os.path.exists(f"/sys/block/{name}/loop/backing_file") or
                   self.fuse not in read(f"/sys/block/{name}/loop/backing_file"), f"{self.loop} is free")
        self.loop = None


def read(path):
    try:
        with open(path, encoding="ascii", errors="replace") as file:
            return file.read()
    except OSError:
        return ""
