"""Operations during which a daemon dies: each has its preconditions, its action, a check of whether it has
happened, and the expected state afterwards."""
import os
import signal

from deaths.boxes import LIST, Box, eventually, host_pids

# After these fault points an operation has happened, although no client got an answer.
HAPPENED = {
    "create.done", "fork.recorded", "snapshot.taken", "snapshot.recorded", "prune.removed", "prune.recorded",
    "rollback.recorded", "rollback.killed", "rollback.rooted", "rollback.done", "tree_cleaner.closed",
    "tree_cleaner.dropped", "pause.recorded", "resume.recorded", "resume.thawed", "stop.recorded", "stop.ended",
    "start.done", "destroy.recorded", "destroy.ended", "destroy.emptied", "destroy.forgotten", "import.made",
    "commit.made", "commit.tidied", "loss.ended", "loss.recorded", "close.rested", "close.parting",
    "close.parted", "template.removed", "share.recorded", "owner.recorded", "token.created",
    "token.removed",
}


class Operation:
    """An operation on one sandbox of the world, which must be in the state `needs`."""

    needs = "active"
    in_background = False  # the daemon dies after it has answered

    def __init__(self, box=None):
        self.box = box

    def __repr__(self):
        return f"{type(self).__name__}({self.box or ''})"

    def is_possible(self, world):
        """Whether it is possible now."""
        return self.box.state == self.needs

    def prepare(self, world):
        world.bring(self.box, self.needs)

    def act(self, world):
        raise NotImplementedError

    def happened(self, world):
        """Whether it has happened, after a restart; raises an AssertionError for a mix."""
        raise NotImplementedError

    def apply(self, world, reply):
        """Updates the expected state after it has happened."""

    def told(self, world):
        return world.told().get(self.box.id)


class Create(Operation):
    def __init__(self, box=None, limit=0, template="box"):
        super().__init__(box)
        self.limit = limit
        self.template = template

    def is_possible(self, world):
        return len(world.boxes) < 12

    def prepare(self, world):
        pass

    def act(self, world):
        self.name = world.new_name()
        return world.daemon.call("SandboxService/Create", name=self.name, template=self.template,
                                 maxSnapshots=self.limit, labels={"client": world.prefix})

    def happened(self, world):
        return any(told.get("name") == self.name for told in world.told().values())

    def apply(self, world, reply):
        told = reply["sandbox"] if reply else next(
            told for told in world.told().values() if told.get("name") == self.name)
        self.box = Box(told["id"], world.pristine, name=self.name, limit=self.limit)
        world.boxes[self.box.id] = self.box


class Destroy(Operation):
    needs = None

    def __init__(self, box, state="active"):
        super().__init__(box)
        self.state = state

    def is_possible(self, world):
        return len(world.boxes) > 5

    def prepare(self, world):
        world.bring(self.box, self.state)

    def act(self, world):
        return world.daemon.call("SandboxService/Destroy", sandboxId=self.box.id)

    def happened(self, world):
        return self.told(world) is None

    def apply(self, world, reply):
        if self.box.counter:
            world.over(self.box)
        del world.boxes[self.box.id]
        self.box = None


class Change(Operation):
    """Changes the state of a sandbox."""

    call = becomes = None

    def act(self, world):
        return world.daemon.call(f"SandboxService/{self.call}", sandboxId=self.box.id)

    def happened(self, world):
        state = self.told(world)["state"]
        assert state in (self.needs, self.becomes), f"{self.box} is {state}"
        return state == self.becomes

    def apply(self, world, reply):
        self.box.state = self.becomes
        if self.becomes == "stopped" and self.box.counter:
            world.over(self.box)


class Pause(Change):
    call, needs, becomes = "Pause", "active", "paused"


class Resume(Change):
    call, needs, becomes = "Resume", "paused", "active"


class Stop(Change):
    call, needs, becomes = "Stop", "active", "stopped"


class StopPaused(Change):
    call, needs, becomes = "Stop", "paused", "stopped"


class Start(Change):
    call, needs, becomes = "Start", "stopped", "active"


class Lose(Change):
    """Kills the holt-init of a sandbox."""

    becomes = "stopped"
    in_background = True

    def is_possible(self, world):
        return False

    def act(self, world):
        os.kill(world.leaks.init_of(self.box.id), signal.SIGKILL)


class Snapshot(Operation):
    """A turn, or a named snapshot. `limit` is the number of turns that the sandbox keeps."""

    def __init__(self, box, name=None, state="active"):
        super().__init__(box)
        self.given = name
        self.needs = state

    def is_possible(self, world):
        return super().is_possible(world) and len(self.box.snapshots) < 8

    def act(self, world):
        self.before = dict(self.box.snapshots)
        self.name = self.given and world.new_name() or f"turn-{self.box.turns + 1:04}"
        if self.given:
            return world.daemon.call("SnapshotService/Create", sandboxId=self.box.id, name=self.name)
        return world.daemon.call("SnapshotService/TurnComplete", sandboxId=self.box.id)

    def found(self, world):
        reply = world.daemon.call("SnapshotService/List", sandboxId=self.box.id)
        return [snapshot["name"] for snapshot in reply.get("snapshots", [])]

    def happened(self, world):
        found = set(self.found(world))
        assert found <= set(self.before) | {self.name}, f"{found} but there were {self.before.keys()}"
        return self.name in found

    def apply(self, world, reply):
        assert not reply or reply["snapshot"]["name"] == self.name, reply
        self.box.snapshots[self.name] = self.box.files
        if not self.given:
            self.box.turns += 1
            self.prune(world, reply)

    def prune(self, world, reply):
        """The oldest turns are pruned, or after the next turn if the daemon died meanwhile."""
        turns = sorted(name for name in self.box.snapshots if name.startswith("turn-"))
        extra = turns[:-self.box.limit] if self.box.limit else []
        left = set() if reply else set(self.found(world))
        for name in extra:
            if name not in left:
                del self.box.snapshots[name]


class RemoveSnapshot(Operation):
    def is_possible(self, world):
        return super().is_possible(world) and len(self.box.snapshots) > 3

    def prepare(self, world):
        super().prepare(world)
        world.do(Snapshot(self.box))

    def act(self, world):
        self.name = sorted(self.box.snapshots)[0]
        return world.daemon.call("SnapshotService/Remove", sandboxId=self.box.id, snapshot=self.name)

    def happened(self, world):
        reply = world.daemon.call("SnapshotService/List", sandboxId=self.box.id)
        return self.name not in [snapshot["name"] for snapshot in reply.get("snapshots", [])]

    def apply(self, world, reply):
        del self.box.snapshots[self.name]


class Rollback(Operation):
    def __init__(self, box, state="active", prunes=False, in_background=False):
        super().__init__(box)
        self.needs = state
        self.prunes = prunes
        self.in_background = in_background

    def is_possible(self, world):
        return super().is_possible(world) and len(self.box.snapshots) > 0

    def prepare(self, world):
        world.bring(self.box, "active")
        world.do(Snapshot(self.box))
        self.box.fill(world.daemon, world.new_name())
        world.do(Snapshot(self.box))
        self.box.fill(world.daemon, world.new_name())
        world.bring(self.box, self.needs)

    def act(self, world):
        names = list(self.box.snapshots)  # oldest first
        self.target = names[-2] if len(names) > 1 else names[-1]
        self.newer = names[names.index(self.target) + 1:]
        return world.daemon.call("SnapshotService/Rollback", sandboxId=self.box.id, snapshot=self.target,
                                 pruneNewer=self.prunes)

    def happened(self, world):
        state = self.told(world)["state"]
        assert state == self.needs, f"{self.box} is {state}"
        if state == "stopped":
            world.daemon.call("SandboxService/Start", sandboxId=self.box.id)
        files = world.daemon.execute(self.box.id, LIST)
        if state == "stopped":
            world.daemon.call("SandboxService/Stop", sandboxId=self.box.id)
        assert files in (self.box.files, self.box.snapshots[self.target]), f"a mix in {self.box}:\n{files}"
        # The files may be equal before and after.
        return files != self.box.files or bool(self.box.counter and not self.box.counter.is_alive())

    def apply(self, world, reply):
        self.box.files = self.box.snapshots[self.target]
        if self.box.counter:
            world.over(self.box)
        if not self.prunes:
            return
        left = set()
        if not reply:
            found = world.daemon.call("SnapshotService/List", sandboxId=self.box.id)
            left = {snapshot["name"] for snapshot in found.get("snapshots", [])}
        for name in self.newer:
            if name not in left:
                del self.box.snapshots[name]


class Fork(Operation):
    def __init__(self, box, count=1, state="active", from_snapshot=False):
        super().__init__(box)
        self.count = count
        self.needs = state
        self.from_snapshot = from_snapshot

    def is_possible(self, world):
        return super().is_possible(world) and len(world.boxes) < 10

    def prepare(self, world):
        super().prepare(world)
        if self.from_snapshot and not self.box.snapshots:
            world.do(Snapshot(self.box))

    def act(self, world):
        self.source = list(self.box.snapshots)[-1] if self.from_snapshot and self.box.snapshots else ""
        return world.daemon.call("SandboxService/Fork", sandboxId=self.box.id, count=self.count,
                                 **{"from": self.source})

    def new(self, world):
        return [identity for identity in world.told() if identity not in world.boxes]

    def happened(self, world):
        made = len(self.new(world))
        assert made in (0, self.count), f"{made} of {self.count} forks are there"
        return made > 0

    def apply(self, world, reply):
        made = [told["id"] for told in reply["sandboxes"]] if reply else self.new(world)
        files = self.box.snapshots[self.source] if self.source else self.box.files
        for identity in made:
            world.boxes[identity] = Box(identity, files, limit=self.box.limit)


class Execute(Operation):
    """Whatever happens to the process, the sandbox is unchanged."""

    def act(self, world):
        return world.daemon.execute(self.box.id, "echo something >/tmp/something")

    def happened(self, world):
        return False


class Write(Operation):
    """Makes one file, completely or not. A process that was started survives the daemon."""

    SCRIPT = "echo $1 >/tmp/$1 && mv /tmp/$1 /workspace/$1 && "

    def act(self, world):
        self.name = world.new_name()
        return world.daemon.execute(self.box.id, self.SCRIPT + LIST, "write", self.name)

    def happened(self, world):
        eventually("the writer", lambda: "still runs" if host_pids(self.name) else None)
        return self.name in world.daemon.execute(self.box.id, LIST)

    def apply(self, world, reply):
        files = reply or world.daemon.execute(self.box.id, LIST)
        lost = set(self.box.files.splitlines()) - set(files.splitlines())
        assert not lost, f"{self.box} has lost {lost}"
        self.box.files = files


class Import(Operation):
    def is_possible(self, world):
        return True

    def prepare(self, world):
        pass

    def act(self, world):
        self.name = world.new_name()
        return world.daemon.stream("TemplateService/Import", name=self.name, path=world.tree)

    def happened(self, world):
        reply = world.daemon.call("TemplateService/List")
        return self.name in [template["name"] for template in reply["templates"]]

    def apply(self, world, reply):
        """Checks that a sandbox of the template has all files."""
        assert world.look(self.name) == self.files(world)
        world.daemon.call("TemplateService/Remove", name=self.name)

    def files(self, world):
        return world.pristine


class Commit(Import):
    def is_possible(self, world):
        return self.box.state == "active"

    def prepare(self, world):
        world.bring(self.box, "active")

    def act(self, world):
        self.name = world.new_name()
        return world.daemon.call("TemplateService/Commit", sandboxId=self.box.id, name=self.name)

    def files(self, world):
        return self.box.files


class RemoveTemplate(Operation):
    def prepare(self, world):
        super().prepare(world)
        self.name = world.new_name()
        world.daemon.call("TemplateService/Commit", sandboxId=self.box.id, name=self.name)

    def act(self, world):
        return world.daemon.call("TemplateService/Remove", name=self.name)

    def happened(self, world):
        reply = world.daemon.call("TemplateService/List")
        return self.name not in [template["name"] for template in reply["templates"]]


class Share(Operation):
    """Shares the template of all sandboxes with an owner."""

    def act(self, world):
        self.owner = world.new_name()
        return world.daemon.call("TemplateService/Share", name="box", owners=[self.owner])

    def happened(self, world):
        reply = world.daemon.call("TemplateService/List")
        return [t.get("sharedWith", []) for t in reply["templates"] if t["name"] == "box"] == [[self.owner]]


class SetOwner(Operation):
    """Gives an owner a ceiling."""

    def act(self, world):
        self.owner = world.new_name()
        return world.daemon.call("OwnerService/Set", owner=self.owner, settings=[{"name": "sandboxes", "value": "3"}])

    def happened(self, world):
        ceilings = world.daemon.call("OwnerService/Get", owner=self.owner)["owner"]["ceilings"]
        return ("sandboxes", "3", "command") in [(each["name"], each["value"], each["source"]) for each in ceilings]

    def apply(self, world, reply):
        world.daemon.call("OwnerService/Remove", owner=self.owner)


class CreateToken(Operation):
    """Creates a token. One whose secret reached nobody is listed, and can be removed."""

    def act(self, world):
        self.label = world.new_name()
        return world.daemon.call("TokenService/Create", label=self.label)

    def ids(self, world):
        return [each["id"] for each in world.daemon.call("TokenService/List")["tokens"] if each.get("label") == self.label]

    def happened(self, world):
        return bool(self.ids(world))

    def apply(self, world, reply):
        identity, = self.ids(world)
        world.daemon.call("TokenService/Remove", id=identity)
        assert not self.ids(world)


class RemoveToken(CreateToken):
    """Removes a token, which opens nothing afterwards."""

    def prepare(self, world):
        super().prepare(world)
        self.made = super().act(world)["token"]["id"]

    def act(self, world):
        return world.daemon.call("TokenService/Remove", id=self.made)

    def happened(self, world):
        return not self.ids(world)

    def apply(self, world, reply):
        assert not self.ids(world)


class Close(Operation):
    """The daemon is asked to stop, and dies while it does."""

    in_background = True

    def __init__(self, box, flags=()):
        super().__init__(box)
        self.flags = flags

    def act(self, world):
        os.kill(world.daemon.pid(), signal.SIGTERM)

    def happened(self, world):
        return False
