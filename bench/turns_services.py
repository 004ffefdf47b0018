"""The peers of bench/turns that are daemons: private instances of dockerd and zfs-fuse."""

import os
import subprocess
import time
from pathlib import Path

from common import stop_process
from turns_places import XFS, Filesystem, copy_small, run, tool

SERVICE_SECONDS = 30


class Service:
    """A program that runs until stop(), and is killed with this process."""

    def __init__(self, work, name, argv, answers):
        self.log_path = work / f"{name}.log"
        with open(self.log_path, "wb") as log:
            self.process = subprocess.Popen(
                [tool("setpriv"), "--pdeathsig", "KILL", *map(str, argv)], stdin=subprocess.DEVNULL,
                stdout=log, stderr=log, start_new_session=True)
        end = time.monotonic() + SERVICE_SECONDS
        while not answers():
            if self.process.poll() is not None or time.monotonic() > end:
                stop_process(self.process)
                raise RuntimeError(f"{name} does not run here: {self.last_words()}")
            time.sleep(0.1)

    def last_words(self):
        return (self.log_path.read_text(errors="replace").splitlines() or ["no word"])[-1]


def succeeds(*argv, env=None):
    return subprocess.run([str(word) for word in argv], env=env, stdin=subprocess.DEVNULL,
                          capture_output=True).returncode == 0


class Docker:
    """A dockerd without networks, on a filesystem in a file; its containers sleep."""

    RUN = "run -d --network none"

    def __init__(self, work, roots):
        self.filesystem = Filesystem(work, "docker", XFS, "xfs")
        self.directory = self.filesystem.place
        socket = f"unix://{self.directory}/sock"
        self.docker = tool("docker")
        self.env = {**os.environ, "DOCKER_HOST": socket}
        self.had_groups = self.groups()
        self.service = Service(
            self.directory, "dockerd",
            [tool("dockerd"), "--data-root", self.directory / "data", "--exec-root",
             self.directory / "exec", "--pidfile", self.directory / "pid", "-H", socket,
             "--iptables=false", "--bridge=none"],
            lambda: succeeds(self.docker, "version", env=self.env))
        try:
            for name, root in roots.items():
                self.load(name, root)
        except BaseException:
            self.stop()
            raise

    def load(self, name, root):
        """Creates an image of the tree and a container of it with the same name."""
        tar = subprocess.Popen(["tar", "-C", str(root), "-c", "."], stdout=subprocess.PIPE)
        run(self.docker, "import", "-", name, stdin=tar.stdout, env=self.env)
        tar.stdout.close()
        tar.wait()
        run(self.docker, *self.RUN.split(), "--name", name, name, "/bin/sleep", "100000",
            env=self.env)
        run(self.docker, "commit", name, f"{name}-base", env=self.env)

    @staticmethod
    def groups():
        return {str(path) for pattern in ("*/docker", "docker")
                for path in Path("/sys/fs/cgroup").glob(pattern)}

    def stop(self):
        names = subprocess.run([self.docker, "ps", "-aq"], env=self.env, capture_output=True,
                               text=True).stdout.split()
        if names:
            subprocess.run([self.docker, "rm", "-f", *names], env=self.env, capture_output=True)
        stop_process(self.service.process)
        self.filesystem.stop()
        for group in self.groups() - self.had_groups:
            try:
                os.rmdir(group)
            except OSError as error:
                print(f"bench: {group} is left: {error}")


class Zfs:
    """zfs-fuse with a pool in a file. The mount namespace of bench/turns hides its socket and cache
    from an instance of the machine, because their paths are fixed."""

    POOL = "holtbench"

    def __init__(self, work, tree):
        self.directory = work / "zfs"
        self.directory.mkdir()
        for name in ("/run/zfs", "/var/lib/zfs", "/run/lock/zfs"):
            os.makedirs(name, exist_ok=True)
            run("mount", "-t", "tmpfs", "-o", "mode=700", "zfs", name)
        self.zfs, self.zpool = tool("zfs"), tool("zpool")
        self.service = Service(self.directory, "zfs-fuse",
                               [tool("zfs-fuse"), "--no-daemon", "--no-kstat-mount"],
                               lambda: succeeds(self.zpool, "list"))
        try:
            self.fill(tree)
        except BaseException:
            self.stop()
            raise

    def fill(self, tree):
        image = self.directory / "pool.img"
        with open(image, "wb") as file:
            file.truncate(8 << 30)
        run(self.zpool, "create", "-m", self.directory / "mnt", self.POOL, image)
        for name in ("live", "back"):
            run(self.zfs, "create", f"{self.POOL}/{name}")
            copy_small(tree, self.place(name))
            run(self.zfs, "snapshot", f"{self.POOL}/{name}@base")

    def place(self, name):
        return self.directory / "mnt" / name

    def stop(self):
        subprocess.run([self.zfs, "umount", "-a"], capture_output=True)
        subprocess.run([self.zpool, "destroy", "-f", self.POOL], capture_output=True)
        stop_process(self.service.process)
