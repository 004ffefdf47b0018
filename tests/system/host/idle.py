"""Compares a daemon with many idle sandboxes with one that has none: idle.py SOCKET EMPTY_SOCKET SANDBOXES

It prints times, and "fine" if no operation takes more than twice as long. They are lower quartiles: the
upper half of the times shows what else the machine does."""
import http.client, json, socket, statistics, sys, time

ROUNDS = 40
EXECS = 5
SLOWER_MAX = 2
TRIES = 3


class Connection(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("localhost")
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(self.path)

    def call(self, method, **fields):
        self.request("POST", "/holt.v1." + method, json.dumps(fields), {"Content-Type": "application/json"})
        response = self.getresponse()
        text = response.read()
        assert response.status == 200, text
        return json.loads(text)


def timed(times, what, call, *args, **fields):
    begin = time.monotonic()
    reply = call(*args, **fields)
    times.setdefault(what, []).append((time.monotonic() - begin) * 1000)
    return reply


def one_life(daemon, times):
    sandbox = timed(times, "create", daemon.call, "SandboxService/Create")["sandbox"]["id"]

    def execute():
        process = daemon.call("ProcessService/Start", sandboxId=sandbox, process={"args": ["true"]})
        daemon.call("ProcessService/Wait", sandboxId=sandbox, processId=process["process"]["id"])

    for _ in range(EXECS):
        timed(times, "exec", execute)
    timed(times, "destroy", daemon.call, "SandboxService/Destroy", sandboxId=sandbox)
    time.sleep(0.03)  # the pool is full again


def measure(*daemons):
    all_times = [{} for _ in daemons]
    for _ in range(ROUNDS):
        for daemon, times in zip(daemons, all_times):
            one_life(daemon, times)
    return [{what: quartile(times) for what, times in each.items()} for each in all_times]


def quartile(times):
    return statistics.quantiles(times)[0]


def text_of(times):
    return ", ".join("%s %.1f ms" % item for item in times.items())


many, empty = (Connection(path) for path in sys.argv[1:3])
sandboxes = int(sys.argv[3])
before, = measure(many)
print("# with 0:", text_of(before), flush=True)
for _ in range(sandboxes):
    many.call("SandboxService/Create")
for _ in range(TRIES):
    after, control = measure(many, empty)
    slower = {what: after[what] / control[what] for what in after}
    print("# with %d:" % sandboxes, text_of(after))
    print("# beside it, another daemon with 0:", text_of(control))
    print("# slower by", ", ".join("%s %.2f" % item for item in slower.items()),
          "(than at first: create %.2f)" % (after["create"] / before["create"]), flush=True)
    if max(slower.values()) <= SLOWER_MAX:
        print("fine")
        break

lists = {}
for _ in range(9):
    listed = timed(lists, "list", many.call, "SandboxService/List")
assert len(listed["sandboxes"]) == sandboxes, len(listed["sandboxes"])
print("# list of %d: %.1f ms" % (sandboxes, quartile(lists["list"])))
