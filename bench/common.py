"""Shared code of the benchmarks: a private daemon, interleaved series, results."""

import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

TREE = Path(__file__).resolve().parent.parent
BUILD = TREE / os.environ.get("HOLT_BUILD_DIR", "build")
ONLY = os.environ.get("BENCH_ONLY", "")
PAUSE_MS = os.environ.get("BENCH_PAUSE_MS", "10")
SPAWN = str(BUILD / "bench" / "spawn")
OWN_NAMESPACE = "HOLT_BENCH_NAMESPACE"
STARTED = time.monotonic()


def note(text):
    print(f"bench: {time.monotonic() - STARTED:4.0f} s: {text}", file=sys.stderr, flush=True)


def make_rootfs(root):
    """Creates a root with busybox and a `true` and `echo` without libc, readable for all mapped uids."""
    for name in ("bin", "dev", "etc", "proc", "sys", "tmp", "workspace"):
        (root / name).mkdir(parents=True)
    shutil.copy(shutil.which("busybox"), root / "bin" / "busybox")
    for applet in ("sh", "sleep", "cat", "ls", "dd", "cp"):
        (root / "bin" / applet).symlink_to("busybox")
    for name in ("true", "echo"):
        shutil.copy(BUILD / "bench" / "true", root / "bin" / name)


class Daemon:
    """A private holtd with its state in a temporary directory."""

    def __init__(self, directory, pool_size, *options):
        directory.mkdir()
        self.host = f"unix://{directory}/run/holt.sock"
        self.env = {**os.environ, "HOLT_HOST": self.host}
        self.log_path = directory / "holtd.log"
        self.log = open(self.log_path, "wb")
        ready, ready_w = os.pipe()
        # A new session: at Ctrl-C, stop() ends it after its clients.
        self.process = subprocess.Popen(
            [str(BUILD / "holtd"), "--state", str(directory / "state"),
             "--run", str(directory / "run"), "--listen", "none", "--stop-all",
             "--pool-size", str(pool_size), "--ready-fd", str(ready_w), *options],
            pass_fds=[ready_w], stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log,
            start_new_session=True)
        os.close(ready_w)
        with os.fdopen(ready, "rb") as pipe:
            if pipe.readline() != b"ready\n":
                self.stop()
                raise RuntimeError("holtd did not start:\n" + self.last_words())

    def last_words(self):
        return "".join(self.log_path.read_text(errors="replace").splitlines(True)[-20:])

    def holt(self, *words):
        subprocess.run([str(BUILD / "holt"), *words], env=self.env, check=True,
                       stdout=subprocess.DEVNULL)

    def stop(self):
        if self.process.poll() is not None:
            print(f"bench: holtd ended by itself with status {self.process.returncode}:\n" +
                  self.last_words(), file=sys.stderr)
        else:
            stop_process(self.process)
        self.log.close()


def stop_process(process):
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(60)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def cpu_ticks():
    """Returns (stolen, total) ticks of all CPUs so far."""
    fields = [int(field) for field in Path("/proc/stat").read_text().split("\n")[0].split()[1:9]]
    return fields[7], sum(fields)


def tree_of(pid):
    """Returns the descendants of pid, nearest first."""
    children = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = int(stat.read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
        children.setdefault(parent, []).append(int(stat.parent.name))
    found = list(children.get(pid, []))
    for each in found:
        found += children.get(each, [])
    return found


class Series:
    """One line of the table: a command that prints samples, run in every round.

    Further columns that the command prints belong to the series in `beside`, which are never run
    separately."""

    def __init__(self, group, name, argv, column=0, env=None, count=None, warm=3, beside=()):
        self.group, self.name, self.argv, self.column, self.env = group, name, argv, column, env
        self.count, self.warm, self.beside = count, warm, beside
        self.samples = []
        self.stolen = self.ticks = 0
        self.seconds = 0  # including time that is not measured
        self.failure = None

    def every(self):
        return [self, *self.beside]

    def run(self, count):
        argv = [str(count) if word == "COUNT" else word for word in self.argv]
        time.sleep(0.05)  # lets background work of the previous series finish
        before, started = cpu_ticks(), time.monotonic()
        done = subprocess.run(argv, env=self.env, stdin=subprocess.DEVNULL, capture_output=True,
                              text=True)
        after = cpu_ticks()
        self.seconds += time.monotonic() - started
        words = [line.split() for line in done.stdout.splitlines()]
        for each in self.every():
            each.stolen += after[0] - before[0]
            each.ticks += after[1] - before[1]
            if done.returncode != 0:
                each.failure = (done.stderr.strip() or
                                f"exit status {done.returncode}").splitlines()[-1]
            else:
                each.samples += [float(line[each.column]) for line in words]

    def forget(self):
        for each in self.every():
            each.samples.clear()

    def result(self):
        ordered = sorted(self.samples)

        def rank(part):
            return round(ordered[min(len(ordered) - 1, int(len(ordered) * part))], 1)

        return {
            "group": self.group, "name": self.name, "n": len(ordered),
            "p50_us": round(statistics.median(ordered), 1), "p99_us": rank(0.99),
            "min_us": round(ordered[0], 1), "mean_us": round(statistics.fmean(ordered), 1),
            "steal_pct": round(100 * self.stolen / self.ticks, 2) if self.ticks else 0,
        }


class Failed(Series):
    """A peer that cannot run on this machine, listed as FAILED."""

    def __init__(self, name, error):
        super().__init__("peer", name, [])
        self.failure = str(error).splitlines()[-1]


def measure(series, count, rounds):
    """Runs the series in interleaved rounds, so that a disturbance affects all of them."""
    for turn in range(rounds):
        for each in series:
            wanted = min(each.count or count, count)
            part = wanted // rounds + (turn < wanted % rounds)
            if each.failure or part == 0:
                continue
            if turn == 0 and each.warm:
                each.run(each.warm)  # warm caches, not counted
                each.forget()
            if not each.failure:
                each.run(part)
        print(f"\rround {turn + 1} of {rounds}", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)


def conclude(path, series, extra=()):
    """Writes the results as JSON lines; returns them and the failed series."""
    single = [one for each in series for one in each.every()]
    results = [each.result() for each in single if each.samples and not each.failure] + list(extra)
    with open(path, "w") as out:
        for result in results:
            out.write(json.dumps(result) + "\n")
    return results, [each for each in single if each.failure]


def print_failed(failed):
    for each in failed:
        print(f"FAILED  {each.group}, {each.name}: {each.failure}")
    return 1 if failed else 0


def own_mounts():
    """Enters a private mount namespace, so that no mount is left on the machine."""
    if os.geteuid() == 0 and OWN_NAMESPACE not in os.environ:
        os.environ[OWN_NAMESPACE] = "1"
        os.execvp("unshare", ["unshare", "--mount", "--propagation", "private", sys.executable,
                              *sys.argv])


def run_as_root(bench):
    """Calls bench(work) with a directory that is removed afterwards, also at Ctrl-C or SIGTERM."""
    if os.geteuid() != 0:
        sys.exit("bench: must be run as root")
    load = os.getloadavg()[0]
    if load > 0.5:
        print(f"bench: the machine is busy (load {load:.1f}); the figures will be noisy",
              file=sys.stderr)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    work = Path(tempfile.mkdtemp(prefix="holt-bench."))
    work.chmod(0o755)  # mapped users need access to the root filesystem
    try:
        return bench(work)
    except KeyboardInterrupt:
        return 130
    finally:
        subprocess.run(["rm", "-rf", str(work)], stderr=subprocess.DEVNULL)
