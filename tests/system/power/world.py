"""A daemon on a disk that loses power, clients that work with it, and what they were promised."""
import hashlib
import json
import os
import random
import subprocess
import threading

from deaths.daemon import Daemon, Gone, Refused
from power.disk import eventually, read

APPLETS = ("sh", "cat", "echo", "dd", "sync", "true", "sleep")
BOXES_MAX = 4  # of one client
CLIENTS = 3


def make_tree(path):
    """Makes a root to import: busybox alone."""
    os.makedirs(f"{path}/bin")
    subprocess.run(["cp", "/bin/busybox", f"{path}/bin/busybox"], check=True)
    for name in APPLETS:
        os.symlink("busybox", f"{path}/bin/{name}")


class Box:
    """A sandbox that was acknowledged."""

    def __init__(self, id_):
        self.id = id_
        self.turns = {}  # what /n has in each acknowledged turn
        self.live = None  # what /n has now, if that is certain after a cut
        self.busy = None  # the operation that has no answer yet


class World:
    def __init__(self, build, directory, disk, storage):
        self.disk = disk
        self.directory = directory
        self.tree = f"{directory}/tree"
        self.small = f"{directory}/small"
        self.storage = storage
        make_tree(self.tree)
        os.makedirs(self.small)
        with open(f"{self.small}/file", "w", encoding="ascii") as file:
            file.write("small")
        self.daemon = Daemon(build, directory, ["--storage", storage, "--pool-size", "1", "--log", "warn"])
        self.lock = threading.Lock()
        self.is_cut = False
        self.numbers = 0
        self.boxes = {}
        self.gone = set()  # acknowledged as destroyed
        self.tokens, self.volumes, self.templates = {}, {}, {"box"}
        self.removed = set()  # volumes
        self.maybe = set()  # names of sandboxes, volumes and templates without an answer
        self.maybe_forks = 0
        self.lines = []  # of the audit log: (event, sandbox)
        self.acknowledged = 0

    # --- the power -----------------------------------------------------------------------------

    def power_on(self, seed, percent):
        self.disk.power_on(seed, percent)
        self.is_cut = False
        self.daemon.start()

    def cut(self):
        with self.lock:
            self.is_cut = True
        self.disk.cut()

    def darkness(self):
        """Ends everything that would have ended with the power."""
        self.daemon.end()
        groups = [path for path, _, _ in os.walk("/sys/fs/cgroup") if f"/{self.label()}" in path]
        for path in groups:
            if path.endswith(self.label()) and os.path.exists(f"{path}/cgroup.kill"):
                with open(f"{path}/cgroup.kill", "w", encoding="ascii") as file:
                    file.write("1")
        eventually(lambda: not any(read(f"{path}/cgroup.procs") for path in groups), "all processes have ended")
        for path in sorted(groups, key=len, reverse=True):
            eventually(lambda at=path: remove(at), f"{path} is gone")
        eventually(lambda: self.disk.mount not in subprocess.run(
            ["losetup", "-a"], capture_output=True, text=True, check=True).stdout, "no loop device is left")
        self.disk.clear()

    def label(self):
        """Returns the name of the daemon's control groups: FNV-1a of its state directory."""
        value = 2166136261
        for byte in os.path.realpath(self.daemon.state).encode():
            value = (value ^ byte) * 16777619 & 0xffffffff
        return f"holt-{value:08x}"

    # --- clients -------------------------------------------------------------------------------

    def new_number(self):
        with self.lock:
            self.numbers += 1
            return self.numbers

    def promised(self, apply, *lines):
        """Notes an answer, unless it may have come after the cut. Returns whether it did not."""
        with self.lock:
            if self.is_cut:
                return False
            apply()
            self.lines += lines
            self.acknowledged += 1
            return True

    def work(self, seed):
        """What one client does until the power is cut."""
        rng = random.Random(seed)
        mine = []
        steps = (self.create, self.turn, self.turn, self.turn, self.rollback, self.fork, self.destroy,
                 self.destroy, self.make_token, self.make_volume, self.remove_volume, self.make_template)
        try:
            while not self.is_cut:
                if not mine:
                    self.create(rng, mine)
                else:
                    rng.choice(steps)(rng, mine)
        except Gone:
            assert self.is_cut, "the daemon died"
        except Refused as error:
            assert self.is_cut, f"refused: {error}"

    def create(self, rng, mine):
        if len(mine) >= BOXES_MAX:
            return
        name = f"box{self.new_number()}"
        with self.lock:
            self.maybe.add(name)
        id_ = self.daemon.call("SandboxService/Create", template="box", name=name)["sandbox"]["id"]
        box = Box(id_)
        if self.promised(lambda: self.boxes.update({id_: box}), ("create", id_)):
            mine.append(box)

    def turn(self, rng, mine):
        box = rng.choice(mine)
        box.busy, box.live = "turn", None
        text = f"n{self.new_number()}"
        self.daemon.execute(box.id, f"echo {text} >/n; dd if=/dev/urandom of=/data bs=16k count={rng.randint(1, 8)} "
                            f"2>/dev/null; {rng.choice(('true', 'sync', 'true'))}")
        name = self.daemon.call("SnapshotService/TurnComplete", sandboxId=box.id)["snapshot"]["name"]
        self.promised(lambda: self.done(box, turn=(name, text)), ("turn", box.id))

    def rollback(self, rng, mine):
        box = rng.choice(mine)
        if not box.turns:
            return
        name = rng.choice(list(box.turns))
        box.busy, box.live = "rollback", None
        self.daemon.call("SnapshotService/Rollback", sandboxId=box.id, snapshot=name)
        self.promised(lambda: self.done(box, live=box.turns[name]), ("rollback", box.id))

    def fork(self, rng, mine):
        box = rng.choice(mine)
        if len(mine) >= BOXES_MAX or not box.turns:
            return
        name = rng.choice(list(box.turns))
        with self.lock:
            self.maybe_forks += 1
        reply = self.daemon.call("SandboxService/Fork", sandboxId=box.id, **{"from": name})
        new = Box(reply["sandboxes"][0]["id"])
        new.live = box.turns[name]

        def apply():
            self.boxes[new.id] = new
            self.maybe_forks -= 1

        if self.promised(apply, ("fork", new.id)):
            mine.append(new)

    def destroy(self, rng, mine):
        if len(mine) < 2:
            return
        box = mine.pop(rng.randrange(len(mine)))
        box.busy = "destroy"
        self.daemon.call("SandboxService/Destroy", sandboxId=box.id)

        def apply():
            del self.boxes[box.id]
            self.gone.add(box.id)

        self.promised(apply, ("destroy", box.id))

    def make_token(self, rng, mine):
        id_ = self.daemon.call("TokenService/Create", label=f"token{self.new_number()}")["token"]["id"]
        self.promised(lambda: self.tokens.update({id_: True}), ("token-create", None))

    def make_volume(self, rng, mine):
        if len(self.volumes) > 20:
            return
        name = f"volume{self.new_number()}"
        with self.lock:
            self.maybe.add(name)
        id_ = self.daemon.call("VolumeService/Create", name=name)["volume"]["id"]
        self.promised(lambda: self.volumes.update({id_: name}), ("volume-create", None))

    def remove_volume(self, rng, mine):
        with self.lock:
            if len(self.volumes) < 3:
                return
            id_ = rng.choice(sorted(self.volumes))
            self.maybe.add(self.volumes.pop(id_))  # another client may not take it too
        self.daemon.call("VolumeService/Remove", volume=id_)
        self.promised(lambda: self.removed.add(id_), ("volume-remove", None))

    def make_template(self, rng, mine):
        if len(self.templates) > 12:
            return
        name = f"template{self.new_number()}"
        with self.lock:
            self.maybe.add(name)
        self.daemon.stream("TemplateService/Import", name=name, path=self.small)
        self.promised(lambda: self.templates.add(name))

    @staticmethod
    def done(box, turn=None, live=None):
        box.busy = None
        box.live = live if live else turn[1]
        if turn:
            box.turns[turn[0]] = turn[1]

    # --- after a cut ---------------------------------------------------------------------------

    def verify(self, rng):
        """Checks every promise, and takes over what has happened without an answer."""
        listed = {told["id"]: told for told in self.daemon.call("SandboxService/List").get("sandboxes", [])}
        self.verify_sandboxes(listed, rng)
        self.verify_unknown(listed)
        told = {each["id"] for each in self.daemon.call("TokenService/List").get("tokens", [])}
        assert set(self.tokens) <= told, f"tokens are lost: {set(self.tokens) - told}"
        self.verify_volumes()
        self.verify_templates(rng)
        self.verify_audit()
        self.maybe, self.maybe_forks = set(), 0

    def verify_sandboxes(self, listed, rng):
        back = self.gone & set(listed)
        assert not back, f"destroyed sandboxes are back: {back}"
        for box in list(self.boxes.values()):
            if box.busy == "destroy" and box.id not in listed:
                del self.boxes[box.id]
                continue
            assert box.id in listed, f"sandbox {box.id} is lost (turns {box.turns})"
            told = listed[box.id]
            assert told["state"] in ("stopped", "active"), f"{box.id} is {told['state']}: {told.get('reason')}"
            reply = self.daemon.call("SnapshotService/List", sandboxId=box.id)
            names = {each["name"] for each in reply.get("snapshots", [])}
            missing = set(box.turns) - names
            assert not missing, f"sandbox {box.id} has lost {missing}, has {names}"
        for box in rng.sample(sorted(self.boxes.values(), key=lambda each: each.id), min(3, len(self.boxes))):
            self.verify_files(box)
        for box in self.boxes.values():
            box.busy = None

    def verify_files(self, box):
        self.ensure_active(box.id)
        if box.live and not box.busy:
            found = self.daemon.execute(box.id, "cat /n").strip()
            assert found == box.live, f"the files of {box.id} have {found}, not {box.live}"
        if box.turns:
            name = max(box.turns)
            self.daemon.call("SnapshotService/Rollback", sandboxId=box.id, snapshot=name)
            found = self.daemon.execute(box.id, "cat /n").strip()
            assert found == box.turns[name], f"{name} of {box.id} has {found}, not {box.turns[name]}"
            box.live = box.turns[name]
            self.lines.append(("rollback", box.id))
        box.busy = None

    def ensure_active(self, id_):
        told = self.daemon.call("SandboxService/Get", sandboxId=id_)["sandbox"]
        if told["state"] == "stopped":
            self.daemon.call("SandboxService/Start", sandboxId=id_)

    def verify_unknown(self, listed):
        """What is there without an answer must be whole, and must have been asked for."""
        forks = 0
        for id_ in set(listed) - set(self.boxes):
            told = listed[id_]
            name = told.get("name", "")
            forks += not name
            assert not name or name in self.maybe, f"{id_} ({name}) was never asked for"
            assert told["state"] in ("stopped", "active"), f"{id_} is half made: {told}"
            self.ensure_active(id_)
            self.daemon.execute(id_, "true")
            self.daemon.call("SandboxService/Destroy", sandboxId=id_)
            self.gone.add(id_)
        assert forks <= self.maybe_forks, f"{forks} forks that nobody asked for"

    def verify_volumes(self):
        reply = self.daemon.call("VolumeService/List")
        told = {each["id"]: each["name"] for each in reply.get("volumes", [])}
        assert not reply.get("unrecorded"), f"volumes without a record: {reply['unrecorded']}"
        back = self.removed & set(told)
        assert not back, f"removed volumes are back: {back}"
        missing = set(self.volumes) - set(told)
        assert not missing, f"volumes are lost: {missing}"
        for id_ in set(told) - set(self.volumes):
            assert told[id_] in self.maybe, f"volume {told[id_]} was never asked for"
            self.volumes[id_] = told[id_]
        if self.volumes:
            id_ = sorted(self.volumes)[-1]
            box = self.daemon.call("SandboxService/Create", template="box",
                                   volumes=[{"volume": id_, "path": "/mnt"}])["sandbox"]["id"]
            self.daemon.execute(box, "echo x >/mnt/x && cat /mnt/x")
            self.daemon.call("SandboxService/Destroy", sandboxId=box)
            self.gone.add(box)

    def verify_templates(self, rng):
        told = {each["name"] for each in self.daemon.call("TemplateService/List").get("templates", [])}
        missing = self.templates - told
        assert not missing, f"templates are lost: {missing}"
        for name in sorted(told - self.templates - {"host"}):
            assert name in self.maybe, f"template {name} was never asked for"
            self.templates.add(name)
        for name in rng.sample(sorted(self.templates - {"box"}), min(1, len(self.templates) - 1)):
            path = f"{self.daemon.state}/templates/{name}/rootfs/file"
            assert read(path) == "small", f"{path} has {read(path)!r}"

    def verify_audit(self):
        """The chain is whole, and has a line for every answer."""
        found, before = {}, "0" * 64
        with open(f"{self.daemon.state}/audit.jsonl", encoding="utf-8") as file:
            for number, line in enumerate(file, 1):
                line = line.rstrip("\n")
                record = json.loads(line)
                assert record["prev"] == before, f"line {number} of the audit log does not follow the one before"
                before = record["hash"]
                text = line[:line.rindex(',"hash":"')] + "}"
                assert hashlib.sha256(text.encode()).hexdigest() == before, f"line {number} has another hash"
                key = (record["event"], record.get("sandbox"))
                found[key] = found.get(key, 0) + 1
        wanted = {}
        for line in self.lines:
            wanted[line] = wanted.get(line, 0) + 1
        for line, count in wanted.items():
            assert found.get(line, 0) >= count, f"the audit log has {found.get(line, 0)} of {count} lines {line}"

    def trim(self, most):
        """Removes sandboxes, so that their number does not grow with the rounds."""
        for box in list(self.boxes.values())[:max(0, len(self.boxes) - most)]:
            self.daemon.call("SandboxService/Destroy", sandboxId=box.id)
            del self.boxes[box.id]
            self.gone.add(box.id)


def remove(path):
    try:
        os.rmdir(path)
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return True
