"""Mixed work on the daemon at $HOLT_HOST for some time: mixed.py SECONDS SEED WORKERS.

Each worker uses sandboxes of its own in random ways. At the end all of them are gone. Prints how many calls of each kind
were made; a call that fails ends the program with an error."""
import collections, random, sys, threading, time

from api import Connection, Refused, attach, call, run, start

SECONDS, SEED, WORKERS = float(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
END = time.monotonic() + SECONDS
done, failures = collections.Counter(), []


def tool(box, name, **params):
    result = call("ToolService/Execute", sandboxId=box, tool=name, params=params)
    assert not result["isError"], result


class Worker(threading.Thread):
    def __init__(self, number):
        super().__init__()
        self.rng = random.Random(SEED * 1000 + number)
        self.box, self.turns = None, []

    def run(self):
        try:
            while time.monotonic() < END and not failures:
                self.step()
            if self.box:
                self.destroy()
        except Exception as why:  # noqa: BLE001: every failure is told
            failures.append(repr(why)[:500])

    def step(self):
        if not self.box:
            self.box, self.turns = call("SandboxService/Create")["sandbox"]["id"], []
            done["create"] += 1
        name = self.rng.choice(["execute", "execute", "execute", "detach", "file", "file", "search", "turn", "turn", "rollback", "fork",
                                "shell", "forward", "power", "expire", "scratch", "look", "token", "destroy"])
        getattr(self, name)()
        done[name] += 1

    def execute(self):
        size = self.rng.choice([1, 10, 2000, 50000])
        output = run(self.box, "sh", "-c", f"seq {size}; echo x >>/workspace/log; exit 3")
        assert output.ended["exitCode"] == 3 and output.stdout.endswith(b"%d\n" % size), output.ended

    def detach(self):
        process = start(self.box, "sh", "-c", "echo begun; sleep 0.05; echo ended")["process"]["id"]
        output = attach(self.box, process, follow=True).stdout
        assert output == b"begun\nended\n", output

    def file(self):
        tool(self.box, "write_file", path=f"d/{self.rng.randrange(50)}", content="text " * self.rng.randrange(1, 5000), create_dirs=True)
        tool(self.box, "list_dir", path="d")

    def search(self):
        tool(self.box, "grep", pattern="te[x]t", path="/workspace")

    def turn(self):
        self.turns.append(call("SnapshotService/TurnComplete", sandboxId=self.box)["snapshot"]["name"])
        if len(self.turns) > 8:
            call("SnapshotService/Remove", sandboxId=self.box, snapshot=self.turns.pop(0))

    def rollback(self):
        if self.turns:
            at = self.rng.randrange(len(self.turns))
            call("SnapshotService/Rollback", sandboxId=self.box, snapshot=self.turns[at], pruneNewer=True)
            del self.turns[at + 1:]

    def fork(self):
        for each in call("SandboxService/Fork", sandboxId=self.box, count=2)["sandboxes"]:
            assert run(each["id"], "true").ended.get("exitCode", 0) == 0
            call("SandboxService/Destroy", sandboxId=each["id"])

    def shell(self):
        list(Connection().stream("ShellService/Run", sandboxId=self.box, name="s", command="cd /; x=$((x + 1)); echo $x").messages())

    def forward(self):
        connection = Connection().stream("PortService/Forward", sandboxId=self.box, port=8000)
        next(connection.messages())
        connection.sock.close()
        connection.close()

    def power(self):
        one, other = self.rng.choice([("Pause", "Resume"), ("Stop", "Start")])
        call("SandboxService/" + one, sandboxId=self.box)
        call("SandboxService/" + other, sandboxId=self.box)

    def expire(self):
        box = call("SandboxService/Create", ttlMs=200)["sandbox"]["id"]
        while True:
            try:
                call("SandboxService/Get", sandboxId=box)
            except Refused:
                return
            time.sleep(0.02)

    def scratch(self):
        list(Connection().stream("SandboxService/Run", process={"args": ["sh", "-c", "echo scratch >f"]}).messages())

    def look(self):
        call("SandboxService/List")
        call("HostService/Health")
        call("ProcessService/List", sandboxId=self.box)

    def token(self):
        call("TokenService/Remove", id=call("TokenService/Create", label="mixed", portsOf=self.box)["token"]["id"])

    def destroy(self):
        call("SandboxService/Destroy", sandboxId=self.box)
        self.box = None


workers = [Worker(number) for number in range(WORKERS)]
for each in workers:
    each.start()
for each in workers:
    each.join()
if failures:
    sys.exit(f"seed {SEED}: " + "; ".join(failures[:3]))
print(" ".join(f"{name} {count}" for name, count in sorted(done.items())))
