"""A daemon with sandboxes, which dies in the middle of operations."""
import atexit
import copy
import os
import random
import signal
import subprocess
import time

from deaths.boxes import LIST, eventually
from deaths.daemon import Daemon, Gone
from deaths.leaks import Leaks
from deaths.operations import (HAPPENED, Close, Commit, Create, Destroy, Execute, Fork, Pause, RemoveSnapshot,
                               Resume, Rollback, Snapshot, Start, Stop, StopPaused, Write)

POOL = 1
DEATH_SECONDS = 60  # how long to wait for one that comes later; only steps that are not reached take it
APPLETS = ("sh", "cat", "cp", "cut", "dd", "echo", "find", "ln", "ls", "md5sum", "mkdir", "mv", "rm", "sleep",
           "sort", "stat", "chmod", "xargs", "true", "head", "tr")

NEVER = (Execute, Close)  # whatever the step, the sandboxes are as they were

WAYS = {
    ("active", "paused"): [Pause], ("paused", "active"): [Resume],
    ("active", "stopped"): [Stop], ("paused", "stopped"): [StopPaused],
    ("stopped", "active"): [Start], ("stopped", "paused"): [Start, Pause],
}


def make_tree(path):
    """Makes a root to import: busybox, and files to change, remove and replace."""
    os.makedirs(f"{path}/bin")
    os.makedirs(f"{path}/data")
    os.makedirs(f"{path}/tmp")
    subprocess.run(["cp", "/bin/busybox", f"{path}/bin/busybox"], check=True)
    for name in APPLETS:
        os.symlink("busybox", f"{path}/bin/{name}")
    for name in ("changed", "removed", "replaced", "kept"):
        with open(f"{path}/data/{name}", "w", encoding="ascii") as file:
            file.write(name)


class World:
    def __init__(self, build, directory, flags=()):
        self.directory = directory
        self.tree = f"{directory}/tree"
        make_tree(self.tree)
        self.build = build
        self.daemon = Daemon(build, directory, ["--pool-size", str(POOL), "--log", "warn", *flags])
        self.boxes = {}
        self.names = 0
        self.deaths = 0
        self.reached = set()
        self.prefix = "a"
        self.pending = None  # the operation without an answer
        self.daemon.start()
        atexit.register(self.daemon.end)
        self.daemon.stream("TemplateService/Import", name="box", path=self.tree)
        self.leaks = Leaks(self.daemon, POOL)
        self.pristine = self.look("box")

    def look(self, template):
        """Returns the files of a new sandbox."""
        told = self.daemon.call("SandboxService/Create", template=template)["sandbox"]
        files = self.daemon.execute(told["id"], LIST)
        self.daemon.call("SandboxService/Destroy", sandboxId=told["id"])
        return files

    def new_name(self):
        self.names += 1
        return f"{self.prefix}{self.names}"

    def told(self):
        """Returns the list of our sandboxes by id. Forks have the labels of their original."""
        reply = self.daemon.call("SandboxService/List", labels={"client": self.prefix})
        return {told["id"]: told for told in reply.get("sandboxes", [])}

    # --- without a death -----------------------------------------------------------------------

    def do(self, operation):
        operation.apply(self, operation.act(self))
        return operation

    def over(self, box):
        """Checks that the counter of a sandbox has ended."""
        counter, box.counter = box.counter, None
        eventually(f"the counter of {box}", lambda: "still runs" if counter.is_alive() else None)

    def bring(self, box, state):
        """Brings a sandbox into a state, with a counter in it unless it is stopped."""
        for step in WAYS.get((box.state, state), []):
            if step is Pause:
                box.count(self.daemon)
            self.do(step(box))
        box.count(self.daemon)

    def add(self, state="active", turns=0, limit=0, template="box"):
        box = self.do(Create(limit=limit, template=template)).box
        for _ in range(turns):
            box.fill(self.daemon, self.new_name())
            self.do(Snapshot(box))
        box.fill(self.daemon, self.new_name())
        self.bring(box, state)
        return box

    def limited(self):
        """Makes a sandbox that keeps two turns, and has them."""
        return self.add("active", turns=2, limit=2)

    def populate(self):
        self.add("active")
        self.add("active", turns=3)
        self.add("paused", turns=1)
        self.add("stopped", turns=2)

    # --- what must be true ---------------------------------------------------------------------

    def verify(self):
        """Checks that everything acknowledged exists, and nothing else."""
        counts = {box: box.counter.value() for box in self.boxes.values() if box.counter}
        told = self.told()
        assert set(told) == set(self.boxes), f"listed are {set(told)}, known {self.boxes}"
        for box in self.boxes.values():
            box.check_told(told[box.id])
            box.check_files(self.daemon)
            box.check_snapshots(self.daemon)
        for box, count in counts.items():
            assert box.counter.is_alive(), f"the process in {box} has ended"
            if box.state == "paused":
                assert box.counter.value() == count, f"the process in {box} still runs"
            else:
                eventually(f"the counter of {box}", lambda b=box, c=count: None if b.counter.value() > c else c)
        self.leaks.check()
        self.check_audit()

    def check_audit(self):
        ran = subprocess.run([f"{self.build}/holt", "audit", "--verify"], capture_output=True, text=True,
                             env=dict(os.environ, HOLT_HOST=f"unix://{self.daemon.socket}"), check=False)
        assert ran.returncode == 0, ran.stderr + ran.stdout

    def prove(self, box):
        """Checks that every operation works on a sandbox."""
        state = box.state
        self.bring(box, "active")
        box.check_files(self.daemon)
        self.do(Snapshot(box))
        box.fill(self.daemon, self.new_name())
        fork = Fork(box)
        before = set(self.boxes)
        self.do(fork)
        for identity in set(self.boxes) - before:
            self.boxes[identity].check_files(self.daemon)
            self.do(Destroy(self.boxes[identity]))
        self.do(Snapshot(box))
        self.do(Rollback(box))
        box.check_files(self.daemon)
        for name in list(box.snapshots)[:-4]:
            self.daemon.call("SnapshotService/Remove", sandboxId=box.id, snapshot=name)
            del box.snapshots[name]
        self.bring(box, state)

    def prove_all(self):
        """Starts or resumes the sandboxes that verify() cannot run commands in, and checks their files."""
        for box in list(self.boxes.values()):
            state = box.state
            self.bring(box, "active")
            box.check_files(self.daemon)
            if box.counter:
                value = box.counter.value()
                eventually(f"the counter of {box}",
                           lambda b=box, v=value: None if b.counter.value() > v else "stands still")
            self.bring(box, state)

    # --- deaths --------------------------------------------------------------------------------

    def restart(self, fault=None, how=signal.SIGKILL, flags=()):
        """Restarts the daemon; returns whether the next one became ready."""
        status = self.daemon.end(how)
        assert how == signal.SIGKILL or status == 0, f"holtd ended with status {status}"
        return self.daemon.start(fault, flags)

    def attempt(self, operation, fault):
        """Does an operation with a daemon that dies at a fault point; returns the reply and whether it died."""
        if not self.restart(fault):
            return None, True
        try:
            reply = operation.act(self)
        except Gone:
            assert self.daemon.died(DEATH_SECONDS), "the connection was lost but holtd lives"
            return None, True
        return reply, self.daemon.died(DEATH_SECONDS if operation.in_background else 0.01)

    def settle(self, operation, reply, died, step):
        """Checks after the restart that the operation has happened or not, as the fault point demands."""
        happened = True
        if died and reply is None:
            happened = operation.happened(self)
            if step and not isinstance(operation, NEVER):
                assert happened == (step in HAPPENED), f"{operation} at {step}: happened is {happened}"
        if happened:
            operation.apply(self, reply)

    def note(self, step):
        self.deaths += 1
        self.reached.add(step)

    def die(self, operation, step, number=1, recovering=None):
        """Kills the daemon at a step and, if `recovering`, the next one during its recovery; verifies everything.
        Returns whether the (last) step was reached."""
        operation.prepare(self)
        reply, died = self.attempt(operation, f"{step}:{number}")
        reached = died
        if died:
            self.note(step)
        if recovering:
            assert died, f"{step} was not reached by {operation}"
            reached = not self.daemon.start(recovering)
            if reached:
                self.note(recovering.split(":")[0])
        if self.daemon.process:
            self.restart(how=signal.SIGTERM)
        else:
            self.daemon.start()
        self.settle(operation, reply, died, step)
        self.verify()
        return reached

    def tidy(self):
        """Destroys forks and surplus sandboxes."""
        for box in [box for box in self.boxes.values() if not box.name]:
            self.do(Destroy(box))
        while len(self.boxes) > 6:
            self.do(Destroy(random.choice(list(self.boxes.values()))))

    # --- at random -----------------------------------------------------------------------------

    def twin(self, prefix):
        """Returns another client of the same daemon, with its own sandboxes."""
        other = copy.copy(self)
        other.prefix, other.boxes = prefix, {}
        return other

    def choose(self):
        """Chooses an operation that is possible now."""
        while True:
            box = random.choice(list(self.boxes.values()))
            kind = random.choice([Create, Destroy, Pause, Resume, Stop, Start, Snapshot, RemoveSnapshot, Rollback,
                                  Fork, Write, Write, Execute])
            operation = kind(box)
            if kind is Fork:
                operation = Fork(box, random.choice([1, 2, 3]), box.state)
            if kind in (Rollback, Snapshot) and box.state == "stopped":
                operation.needs = "stopped"
            if operation.is_possible(self):
                return operation

    def work(self):
        """Does operations until the daemon is dead."""
        while True:
            self.pending = self.choose()
            try:
                reply = self.pending.act(self)
            except Gone:
                return
            self.pending.apply(self, reply)
            self.pending = None

    def resume_after_death(self):
        if self.pending:
            self.settle(self.pending, None, True, None)
        self.pending = None
        for box in self.boxes.values():
            box.count(self.daemon)
