"""Records what every method of holt.v1 answers, or compares the answers with those recorded in tests/golden.

usage: golden.py SOCKET DIRECTORY [--update | --update-messages]

There are two parts. "calls" makes real calls of each method and keeps the whole replies. "fields" sends each method a
request that is refused at the end for a known reason (a sandbox that does not exist), and in it every field in turn
with values of every type: it keeps the code and cause of each answer. Values that differ from run to run (ids, times,
sizes) are replaced by their type. The texts of errors are kept apart in messages.json: no program may rely on them, so a
difference there is printed and fails nothing. --update-messages records only those."""
import base64, http.client, json, pathlib, re, socket, struct, sys

import contract

GOLDEN = pathlib.Path(__file__).resolve().parent / "../../golden/holt.v1"
METHODS, MESSAGES, ENUMS = contract.load()
STREAMS = {method.path for method in METHODS if method.is_stream}
MOST = 40  # differences of a file that are printed
REQUESTS = {method.path: method.request for method in METHODS}


class Connection(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("localhost", timeout=120)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(120)
        self.sock.connect(self.path)


class Daemon:
    """Answers of the daemon: a reply, or an error."""

    def __init__(self, path):
        self.path, self.connection = path, Connection(path)

    def send(self, method, body):
        """The whole answer to a body; of a stream only the first message."""
        is_stream = method in STREAMS
        connection = Connection(self.path) if is_stream else self.connection
        kind = "application/connect+json" if is_stream else "application/json"
        connection.request("POST", method, body, {"Content-Type": kind})
        response = connection.getresponse()
        if not is_stream:
            return json.loads(response.read())
        messages = self.envelopes(response, 1)
        while method.endswith("/Import") and messages and "progress" in messages[0]:
            messages = self.envelopes(response, 1)  # a busy machine tells its progress before the error
        connection.close()
        return messages[0] if messages else {}

    def stream(self, method, *requests, limit=None):
        """All messages of a stream, or so many."""
        connection = Connection(self.path)
        connection.request("POST", method, b"".join(map(envelope, requests)),
                           {"Content-Type": "application/connect+json"})
        messages = self.envelopes(connection.getresponse(), limit)
        connection.close()
        return messages

    def envelopes(self, response, limit):
        messages = []
        while limit is None or len(messages) < limit:
            flags, size = struct.unpack(">BI", response.read(5))
            message = json.loads(response.read(size))
            if flags & 2:
                return messages + [message] if message else messages
            messages.append(message)
        return messages


def envelope(message):
    text = message if isinstance(message, bytes) else json.dumps(message).encode()
    return struct.pack(">BI", 0, len(text)) + text


def error_of(answer):
    """The error in an answer, unary or of a stream, or None."""
    error = answer.get("error", answer)
    return error if isinstance(error, dict) and "code" in error and "message" in error else None


# --- values that differ from run to run -------------------------------------------------------------------------------

NUMBERS = {"durationMs", "cpuMs", "memoryPeakBytes", "spaceUsed", "ageMs", "cpuUs", "cacheBytes", "usedBytes", "storedBytes",
           "availableBytes", "usedPercent", "uptimeMs", "poolReady", "inode", "seq", "sizeBytes", "cpuMillis",
           "maxMessageBytes", "bytes", "objects", "pid", "shown"}
BY_PATH = {  # the same names are constant elsewhere
    ("stats", "memoryBytes"), ("usage", "memoryBytes"), ("stats", "pids"), ("templates", "files"), ("templates", "createdAt"),
    ("template", "files"), ("template", "createdAt"), ("verdict", "lines"), ("progress", "bytes"),
    ("progress", "files"), ("ports", "port"), ("truncated", "total"), ("runtimes", "problem"), ("storage", "state"), ("storage", "backend"),
}
TEXTS = {"reason", "description", "title"}  # that are for people
HOSTS = {"storage", "limitsFrom", "runtimes"}  # that depend on the machine


class Names:
    """Replaces what differs, and gives ids numbers in the order in which they come."""

    def __init__(self):
        self.known = {}

    def name(self, kind, text):
        number = self.known.setdefault(text, sum(1 for each in self.known.values() if each[0] == kind) + 1)
        if isinstance(number, int):
            self.known[text] = number = (kind, number)
        return f"<{kind} {number[1]}>"

    def text(self, value):
        value = re.sub(r"\bsb-[0-9a-f]{12,16}\b", lambda found: self.name("sandbox", found[0]), value)
        value = re.sub(r"\bvol[0-9a-zA-Z]{20}\b", lambda found: self.name("volume", found[0]), value)
        value = re.sub(r"\bcb[0-9a-f]{20}\b", lambda found: self.name("codebase", found[0]), value)
        value = re.sub(r"\bsec[0-9a-f]{20}\b", lambda found: self.name("secret", found[0]), value)
        value = re.sub(r"\b[0-9a-f]{8}\b", lambda found: self.name("token", found[0]), value)
        value = re.sub(r"\b[0-9a-f]{64}\b", "<code>", value)
        value = re.sub(r"\bholt_[0-9a-f]{64}\b", "<secret>", value)
        value = re.sub(r"\btool-c-1-\d{13}\b", "<snapshot>", value)
        value = re.sub(r"/tmp/holt-test\.\w+", "<directory>", value)
        value = re.sub(r"\b\d+ ms\b", "<number> ms", value)
        value = re.sub(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z",
                       lambda found: f"<time with {len(found[1] or '.') - 1} digits>", value)
        return re.sub(r"127\.0\.0\.1:\d+", "<address>", value)

    def value(self, value, key="", above=""):
        if isinstance(value, dict):
            if key == "capabilities":
                return {name: f"<{type(each).__name__}>" for name, each in value.items()}
            return {name: self.value(each, name, key or above) for name, each in value.items()}
        if key == "marks":  # as many as there were pieces of output
            return [self.value(each, "mark", key) for each in value[:1]]
        if isinstance(value, list):
            return [self.value(each, key, key) for each in value]
        if isinstance(value, bool):
            return value
        if key in NUMBERS or (above, key) in BY_PATH:
            if isinstance(value, str):
                return "<digits>" if value.isdigit() else "<text>"
            return f"<{type(value).__name__}>"
        return self.text(value) if isinstance(value, str) else value


# --- real calls ------------------------------------------------------------------------------------------------------


class Calls:
    def __init__(self, daemon):
        self.daemon, self.names, self.answers = daemon, Names(), {}

    def keep(self, label, method, request, answer):
        assert label not in self.answers, label
        self.answers[label] = {"method": method, "request": self.names.value(request), "answer": answer}

    def __call__(self, label, method, /, _merge=None, **request):
        """A unary call. _merge may change the answer before it is kept."""
        answer = self.daemon.send("/holt.v1." + method, json.dumps(request))
        self.keep(label, method, request, self.names.value(_merge(answer) if _merge else answer))
        return answer

    def stream(self, label, method, *requests, limit=None, _merge=None):
        messages = self.daemon.stream("/holt.v1." + method, *requests, limit=limit)
        answer = _merge(messages) if _merge else messages
        self.keep(label, method, list(requests), self.names.value(answer))
        return messages


def joined_output(messages):
    """Bytes of one stream come in pieces of any size."""
    together = []
    for message in messages:
        for name in ("stdout", "stderr", "data"):
            last = together[-1] if together else {}
            if set(message) <= {name, "offset"} and name in message and set(last) <= {name, "offset"} and name in last:
                last[name] = base64.b64encode(base64.b64decode(last[name]) + base64.b64decode(message[name])).decode()
                break
        else:
            together.append(dict(message))
    return together


def without_progress(messages):
    return [message for message in messages if "progress" not in message]


def without_lines(messages):
    """How many messages there are before the last one is a matter of time."""
    return [{**messages[-1], "lines": []}]


def sorted_output(messages):
    """Both streams of a process come in any order."""
    return sorted(joined_output(messages), key=lambda message: 0 if "started" in message else
                  1 if "stdout" in message else 2 if "stderr" in message else 3)


def host_calls(call):
    call("health", "HostService/Health")
    call("health, unknown field", "HostService/Health", x=1)
    call("capabilities", "HostService/Capabilities",
         _merge=lambda reply: {**reply, **{name: type(reply[name]).__name__ for name in HOSTS},
                               "runtime": {name: type(each).__name__ for name, each in reply["runtimes"][0].items()}})
    call("metrics", "HostService/Metrics", _merge=lambda reply: {"text": type(reply["text"]).__name__})
    call("templates", "TemplateService/List")
    call("all templates", "TemplateService/List", all=True)


def sandbox_calls(call):
    call("create plain", "SandboxService/Create", name="plain")
    call("create full", "SandboxService/Create", name="full", template="host", runtime="native",
         limits={"memoryBytes": "268435456", "cpuMillis": 500, "pids": 64}, quotaBytes=1 << 30,
         labels={"app": "golden", "tier/x": ""}, maxSnapshots=3, ttlMs="3600000", expireAction="stop",
         idleTimeoutMs=1800000, idleAction="pause", idempotencyKey="key-1")
    call("create joined", "SandboxService/Create", name="full", template="host", runtime="native",
         limits={"memoryBytes": "268435456", "cpuMillis": 500, "pids": 64}, quotaBytes=1 << 30,
         labels={"app": "golden", "tier/x": ""}, maxSnapshots=3, ttlMs="3600000", expireAction="stop",
         idleTimeoutMs=1800000, idleAction="pause", idempotencyKey="key-1")
    call("create with the key of another", "SandboxService/Create", name="other", idempotencyKey="key-1")
    call("create with a known name", "SandboxService/Create", name="plain")
    call("create with names of the .proto", "SandboxService/Create", name="snake", max_snapshots=2, ttl_ms=60000,
         expire_action="pause", quota_bytes="0", limits={"cpu_millis": 250, "memory_bytes": 134217728})
    call("create with nulls", "SandboxService/Create", name="nulls", template=None, runtime=None, limits=None,
         quotaBytes=None, labels=None, maxSnapshots=None, ttlMs=None, expireAction=None, idleTimeoutMs=None,
         idleAction=None, idempotencyKey=None, volumes=None)
    call("get", "SandboxService/Get", sandboxId="full")
    call("get by the name of the .proto", "SandboxService/Get", sandbox_id="plain")
    call("list by label", "SandboxService/List", labels={"app": "golden"})
    call("list all", "SandboxService/List")
    call("list none", "SandboxService/List", labels={"app": "none"})
    for change in ("Pause", "Pause", "Resume", "Stop", "Start"):
        label = change.lower() + " the sandbox"
        label += " again" if label in call.answers else ""
        call(label, "SandboxService/" + change, sandboxId="plain")
    call("stats", "SandboxService/Stats", sandboxIds=["full", "plain"])
    call("stats of nobody", "SandboxService/Stats", sandboxIds=["nobody"])
    call.stream("watch stats", "SandboxService/WatchStats", {"sandboxIds": ["full"], "intervalMs": 100}, limit=2)
    call.stream("run", "SandboxService/Run", {"sandbox": {"template": "host", "limits": {"pids": 32}}, "process": {
        "args": ["sh", "-c", "echo $WORD; exit 3"], "env": {"WORD": "hello"}, "cwd": "/", "timeoutMs": 60000}},
        _merge=joined_output)
    call.stream("run what is not there", "SandboxService/Run", {"process": {"args": ["/no/such/program"]}})
    call.stream("run as nobody known", "SandboxService/Run", {"process": {"args": ["true"], "user": "no-such-user"}})
    call("fork", "SandboxService/Fork", sandboxId="plain", count="2")
    call("fork one", "SandboxService/Fork", sandboxId="plain", **{"from": "", "count": None})
    call("fork of a snapshot that is not there", "SandboxService/Fork", sandboxId="plain", **{"from": "nothing"})
    call("update", "SandboxService/Update", sandboxId="nulls", name="changed", labels={"a": "b", "c": "d"},
         limits={"pids": 99}, maxSnapshots=4, idleTimeoutMs="60000", idleAction="stop")
    call("update again", "SandboxService/Update", sandboxId="changed", name="nulls", removeLabels=["a", "none"],
         ttlMs="0", idleTimeoutMs=0)
    call("update of nothing", "SandboxService/Update", sandboxId="nulls")
    call("update of volumes while it runs", "SandboxService/Update", sandboxId="nulls", volumes={"mounts": []})
    call("update of the quota", "SandboxService/Update", sandboxId="nulls", quotaBytes=1 << 30)
    call("update to a quota that is too small", "SandboxService/Update", sandboxId="nulls", quotaBytes=1)
    call("update to a name that is taken", "SandboxService/Update", sandboxId="nulls", name="plain")
    call("destroy", "SandboxService/Destroy", sandboxId="nulls")
    call("destroy again", "SandboxService/Destroy", sandboxId="nulls")


def agent_calls(call):
    call("agent type", "AgentService/Get", name="shell")
    call("agent type of nobody", "AgentService/Get", name="nobody")
    call("create with an agent", "SandboxService/Create", name="agent", type="shell", agent={"workspaceId": "w1"})
    call("create with no agent type", "SandboxService/Create", type="nobody")
    call("create with a server of none", "SandboxService/Create", type="shell", agent={"serve": True})
    call("destroy the agent", "SandboxService/Destroy", sandboxId="agent")


def volume_calls(call):
    call("no volumes", "VolumeService/List")
    call("volume", "VolumeService/Create", name="data")
    call("volume again", "VolumeService/Create", name="data")
    call("volumes", "VolumeService/List")
    call("create with a volume", "SandboxService/Create", name="mounted", volumes=[{"volume": "data", "path": "/data"}])
    call("create with a read-only volume", "SandboxService/Create", name="reading",
         volumes=[{"volume": "data", "path": "/data", "readOnly": True}])
    call("create with a volume that is read-only to a text", "SandboxService/Create",
         volumes=[{"volume": "data", "path": "/data", "readOnly": "yes"}])
    call("create with no such volume", "SandboxService/Create", volumes=[{"volume": "none", "path": "/data"}])
    call("create with a volume and no path", "SandboxService/Create", volumes=[{"volume": "data"}])
    call("create with what is no volume", "SandboxService/Create", volumes=["data"])
    call("create with too many volumes", "SandboxService/Create", volumes=[{"volume": "data", "path": "/data"}] * 9)
    call("remove a volume in use", "VolumeService/Remove", volume="data")
    call("destroy mounted", "SandboxService/Destroy", sandboxId="mounted")
    call("destroy reading", "SandboxService/Destroy", sandboxId="reading")
    call("remove a volume", "VolumeService/Remove", volume="data")
    call("remove no volume", "VolumeService/Remove", volume="data")
    call("adopt no volume", "VolumeService/Adopt", volume="nothing")


def secret_calls(call):
    call("no secrets", "SecretService/List")
    call("secret", "SecretService/Set", name="service", value="golden-value", hosts=["API.example.com", "*.example.org:8443"])
    call("secret in a query", "SecretService/Set", name="query", value="golden-value", hosts=["api.example.com"], query="key", env="KEY")
    call("secret without hosts", "SecretService/Set", name="none", value="golden-value")
    call("secret for an address", "SecretService/Set", name="none", value="golden-value", hosts=["127.0.0.1"])
    call("secret of a template without a place", "SecretService/Set", name="none", value="golden-value", hosts=["api.example.com"],
         header="Authorization: Bearer")
    call("secret of two lines", "SecretService/Set", name="none", value="a\nb", hosts=["api.example.com"])
    call("secret of a reserved name", "SecretService/Set", name="holt-none", value="golden-value", hosts=["api.example.com"])
    call("secrets", "SecretService/List")
    call("create with a secret that its network does not reach", "SandboxService/Create", secrets=["service"])
    call("create with no such secret", "SandboxService/Create", secrets=["none"])
    call("create with a secret", "SandboxService/Create", name="keyed", secrets=["service"], network={"mode": "open"})
    call("destroy keyed", "SandboxService/Destroy", sandboxId="keyed")
    call("rotate a secret", "SecretService/Rotate", secret="service", value="golden-value-2")
    call("rotate no secret", "SecretService/Rotate", secret="none", value="golden-value-2")
    call("remove a secret", "SecretService/Remove", secret="service")
    call("remove a secret by owner", "SecretService/Remove", secret="root/query")
    call("remove no secret", "SecretService/Remove", secret="service")


def backup_calls(call):
    call("create for backups", "SandboxService/Create", name="kept")
    call("pause deeply", "SandboxService/Pause", sandboxId="kept", deep=True)
    call("exec in a deep-paused one", "ShellService/Open", sandboxId="kept", name="main")
    call("back up a deep-paused one", "BackupService/Create", sandboxId="kept")
    call("resume a deep-paused one", "SandboxService/Resume", sandboxId="kept")
    call("resume on no host", "SandboxService/Resume", sandboxId="sb-0123456789abcdef")
    call("no backups", "BackupService/List")
    backup = call("back up", "BackupService/Create", sandboxId="kept")["backup"]["name"]
    call("back up no snapshot", "BackupService/Create", sandboxId="kept", snapshot="none")
    call("backups", "BackupService/List", sandboxId="kept")
    call("restore", "BackupService/Restore", name=backup, sandboxName="restored")
    call("restore again", "BackupService/Restore", name=backup, sandboxName="restored")
    call("restore no backup", "BackupService/Restore", name="none")
    call("remove a backup", "BackupService/Remove", name=backup)
    call("remove no backup", "BackupService/Remove", name=backup)
    call("collect backups", "BackupService/Collect")
    call("destroy kept", "SandboxService/Destroy", sandboxId="kept")
    call("destroy restored", "SandboxService/Destroy", sandboxId="restored")


def permission_calls(call):
    call("permissions of a sandbox without rules", "PermissionService/List", sandboxId="coding")
    call("permissions without a codebase", "PermissionService/List", sandboxId="plain")
    call("rules for a sandbox that runs without", "PermissionService/Set", sandboxId="coding", preset="read-only")
    call("create with permissions", "SandboxService/Create", name="careful", codebase={"codebase": "app"},
         permissions={"preset": "agent-safe", "rules": ["/src/**=write", "file:/Makefile=view@7"]})
    call("create with no such preset", "SandboxService/Create", codebase={"codebase": "app"}, permissions={"preset": "safe"})
    call("create with a bad permission", "SandboxService/Create", codebase={"codebase": "app"}, permissions={"rules": ["/a[=read"]})
    call("create with permissions without a codebase", "SandboxService/Create", permissions={"preset": "read-only"})
    call("create with an engine that cannot enforce the permissions", "SandboxService/Create", codebase={"codebase": "app"},
         permissions={"preset": "agent-safe", "view": "kernel"})
    call("create with an engine alone", "SandboxService/Create", codebase={"codebase": "app"}, permissions={"view": "fuse"})
    call("create with an engine", "SandboxService/Create", name="sealed", codebase={"codebase": "app"},
         permissions={"preset": "read-only", "view": "kernel"})
    call("change what the kernel enforces", "PermissionService/Add", sandboxId="sealed", rules=["/src/**=write"])
    call("destroy what the kernel protects", "SandboxService/Destroy", sandboxId="sealed")
    call("permissions", "PermissionService/List", sandboxId="careful")
    call("get a sandbox with permissions", "SandboxService/Get", sandboxId="careful")
    call("why", "PermissionService/Why", sandboxId="careful", path="/workspace/a/.env")
    call("why relative", "PermissionService/Why", sandboxId="careful", path="src/main.c")
    call("why outside", "PermissionService/Why", sandboxId="careful", path="/etc/passwd")
    call("test a read", "PermissionService/Test", sandboxId="careful", path="README", operation="read")
    call("test a write", "PermissionService/Test", sandboxId="careful", path="README", operation="write")
    call("test what is hidden", "PermissionService/Test", sandboxId="careful", path=".env", operation="stat")
    call("test a rename", "PermissionService/Test", sandboxId="careful", path="src/a", operation="rename", to="src/.env")
    call("test a rename without a target", "PermissionService/Test", sandboxId="careful", path="src/a", operation="rename")
    call("test no operation", "PermissionService/Test", sandboxId="careful", path="a", operation="look")
    call("add permissions", "PermissionService/Add", sandboxId="careful", rules=["vendor/=read@20"])
    call("add a bad permission", "PermissionService/Add", sandboxId="careful", rules=["/a=rw"])
    call("remove permissions", "PermissionService/Remove", sandboxId="careful", rules=["/vendor=read@20"])
    call("remove no permission", "PermissionService/Remove", sandboxId="careful", rules=["/vendor=read@20"])
    call("set permissions", "PermissionService/Set", sandboxId="careful", preset="development", revoke=True)
    call("fork with permissions", "SandboxService/Fork", sandboxId="careful", name="freer", permissions={"preset": "full-access"})
    call("tree", "PermissionService/Tree", sandboxId="careful")
    call("tree of nothing", "PermissionService/Tree", sandboxId="careful", path="none")
    call("destroy the fork", "SandboxService/Destroy", sandboxId="freer")
    call("destroy the careful one", "SandboxService/Destroy", sandboxId="careful")


def codebase_calls(call, run):
    call("no codebases", "CodebaseService/List")
    call("volume for a codebase", "VolumeService/Create", name="sources")
    call("codebase", "CodebaseService/Add", name="app", source="sources")
    call("codebase again", "CodebaseService/Add", name="app", source="sources")
    call("codebase of nothing", "CodebaseService/Add", name="other", source="none")
    call("codebase of no directory", "CodebaseService/Add", name="other", source="/no/such/path")
    call("codebases", "CodebaseService/List")
    call("create with a codebase", "SandboxService/Create", name="coding", codebase={"codebase": "app"})
    call("create with no such codebase", "SandboxService/Create", codebase={"codebase": "none"})
    call("create with a codebase at no path", "SandboxService/Create", codebase={"codebase": "app", "path": "x"})
    call("commit nothing", "CodebaseService/Commit", sandboxId="coding")
    run("coding", "echo new >/workspace/new")
    call("changes of a codebase", "SnapshotService/Diff", sandboxId="coding", codebase=True)
    call("changes since a snapshot", "SnapshotService/Diff", sandboxId="coding", codebase=True, **{"from": "x"})
    call("commit a codebase", "CodebaseService/Commit", sandboxId="coding", message="a file")
    call("log of a codebase", "CodebaseService/Log", codebase="app")
    call("apply a codebase of a volume", "CodebaseService/Apply", codebase="app")
    call("apply to no directory", "CodebaseService/Apply", codebase="app", directory="/no/such/path")
    call("apply to a directory of others", "CodebaseService/Apply", codebase="app", directory="/etc", version=0)
    call("branch of a codebase of a volume", "CodebaseService/Branch", codebase="app", branch="work")
    call("branch in a directory of no repository", "CodebaseService/Branch", codebase="app", branch="work", directory="/etc")
    call("get a sandbox with a codebase", "SandboxService/Get", sandboxId="coding")
    call("create another with the codebase", "SandboxService/Create", name="merging", codebase={"codebase": "app"})
    run("merging", "echo other >/workspace/new")
    call("merge with conflicts", "CodebaseService/Merge", sandboxId="coding", fromSandboxId="merging")
    call("merge", "CodebaseService/Merge", sandboxId="coding", fromSandboxId="merging", side="theirs")
    call("merge with itself", "CodebaseService/Merge", sandboxId="coding", fromSandboxId="coding")
    call("commit once more", "CodebaseService/Commit", sandboxId="coding")
    run("merging", "echo third >/workspace/new")
    call("rebase with conflicts", "CodebaseService/Rebase", sandboxId="merging")
    call("rebase", "CodebaseService/Rebase", sandboxId="merging", side="ours")
    call("rebase without a codebase", "CodebaseService/Rebase", sandboxId="plain")
    call("discard a path", "CodebaseService/Discard", sandboxId="merging", path="/workspace/new")
    call("discard a path elsewhere", "CodebaseService/Discard", sandboxId="merging", path="/etc")
    call("destroy merging", "SandboxService/Destroy", sandboxId="merging")
    call("discard changes", "CodebaseService/Discard", sandboxId="coding")
    permission_calls(call)
    call("discard without a codebase", "CodebaseService/Discard", sandboxId="plain")
    call("remove a codebase in use", "CodebaseService/Remove", codebase="app")
    call("destroy coding", "SandboxService/Destroy", sandboxId="coding")
    call("remove a codebase", "CodebaseService/Remove", codebase="app")
    call("log of no codebase", "CodebaseService/Log", codebase="app")
    call("remove the volume of a codebase", "VolumeService/Remove", volume="sources")


def snapshot_calls(call, run):
    run("echo one >/workspace/a; printf 'x\\0y' >/workspace/binary; mkdir /workspace/d; ln -s a /workspace/link")
    call("turn", "SnapshotService/TurnComplete", sandboxId="plain")
    run("echo two >>/workspace/a; mv /workspace/binary /workspace/moved; rm /workspace/link; echo n >/workspace/n;"
        " touch /workspace/$(printf 'bad\\377')")
    call("snapshot", "SnapshotService/Create", sandboxId="plain", name="mark")
    call("snapshot of a tool", "SnapshotService/Create", sandboxId="plain", name="tool-1", kind="tool")
    call("snapshot again", "SnapshotService/Create", sandboxId="plain", name="mark")
    call("snapshot template", "SnapshotService/Create", sandboxId="plain", name="template")
    call("snapshot turn", "SnapshotService/Create", sandboxId="plain", name="t", kind="turn")
    call("snapshots", "SnapshotService/List", sandboxId="plain")
    call("snapshots of nobody", "SnapshotService/List", sandboxId="nobody")
    for label, options in {"": {}, " with lines": {"lines": True}, " with patches": {"patch": True, "lines": False}}.items():
        call.stream("diff" + label, "SnapshotService/Diff",
                    {"sandboxId": "plain", "from": "turn-0001", "to": "mark", **options})
    call.stream("diff with the template", "SnapshotService/Diff", {"sandboxId": "plain", "from": "template"})
    call.stream("diff with nothing", "SnapshotService/Diff", {"sandboxId": "plain", "from": "nothing"})
    call("fork of a snapshot", "SandboxService/Fork", sandboxId="plain", **{"from": "mark"})
    call("fork of the template", "SandboxService/Fork", sandboxId="plain", **{"from": "template"})
    call("rollback", "SnapshotService/Rollback", sandboxId="plain", snapshot="turn-0001")
    call("rollback and prune", "SnapshotService/Rollback", sandboxId="plain", snapshot="turn-0001", pruneNewer=True)
    call("rollback to nothing", "SnapshotService/Rollback", sandboxId="plain", snapshot="nothing")
    call("remove a snapshot that is gone", "SnapshotService/Remove", sandboxId="plain", snapshot="mark")
    call("remove a snapshot", "SnapshotService/Remove", sandboxId="plain", snapshot="turn-0001")


def process_calls(call):
    shell = lambda script: {"args": ["sh", "-c", script]}
    call.stream("exec", "ProcessService/Exec", {"sandboxId": "plain", "process": {
        **shell("cat; echo out; echo err >&2; exit 4"), "env": {"A": "b"}, "cwd": "/tmp", "tag": "word"}},
        _merge=sorted_output)
    call.stream("exec by signal", "ProcessService/Exec", {"sandboxId": "plain", "process": shell("kill -9 $$")})
    call.stream("exec out of time", "ProcessService/Exec", {"sandboxId": "plain", "process": {
        **shell("sleep 60"), "timeoutMs": "50"}})
    call.stream("exec with a terminal", "ProcessService/Exec", {"sandboxId": "plain", "process": {
        **shell("stty size"), "terminal": {"rows": 33, "columns": 99}}}, _merge=joined_output)
    call.stream("exec of nothing", "ProcessService/Exec", {"sandboxId": "plain", "process": {"args": []}})
    call.stream("exec without a process", "ProcessService/Exec", {"sandboxId": "plain"})
    call.stream("exec in nobody", "ProcessService/Exec", {"sandboxId": "nobody", "process": {"args": ["true"]}})
    started = call("start", "ProcessService/Start", sandboxId="plain", idempotencyKey="start-1", process={
        **shell("read word; echo got $word; echo e >&2; exit 5"), "stdin": True, "tag": "tagged"})["process"]["id"]
    call("start joined", "ProcessService/Start", sandboxId="plain", idempotencyKey="start-1", process={
        **shell("read word; echo got $word; echo e >&2; exit 5"), "stdin": True, "tag": "tagged"})
    call("start with the key of another", "ProcessService/Start", sandboxId="plain", idempotencyKey="start-1",
         process=shell("true"))
    call("wait in vain", "ProcessService/Wait", sandboxId="plain", processId=started, timeoutMs=10)
    call("send input", "ProcessService/SendInput", sandboxId="plain", processId=started,
         data=base64.b64encode(b"word\n").decode(), eof=True)
    call("wait", "ProcessService/Wait", sandboxId="plain", processId=started)
    call("get process", "ProcessService/Get", sandboxId="plain", processId=started)
    call("get no process", "ProcessService/Get", sandboxId="plain", processId="p999")
    call("list processes", "ProcessService/List", sandboxId="plain", tag="tagged")
    call("list no processes", "ProcessService/List", sandboxId="plain", tag="none")
    call.stream("attach", "ProcessService/Attach", {"sandboxId": "plain", "processId": started, "follow": True},
                _merge=sorted_output)
    call.stream("attach with offsets", "ProcessService/Attach", {
        "sandboxId": "plain", "processId": started, "stdoutOffset": "4", "stderrOffset": 1}, _merge=sorted_output)
    call.stream("attach with a replay", "ProcessService/Attach", {
        "sandboxId": "plain", "processId": started, "replayBytes": 2}, _merge=sorted_output)
    call.stream("attach with both", "ProcessService/Attach", {
        "sandboxId": "plain", "processId": started, "replayBytes": 0, "stdoutOffset": 1})
    call.stream("attach beyond", "ProcessService/Attach", {
        "sandboxId": "plain", "processId": started, "stdoutOffset": 1000})
    call("send input too late", "ProcessService/SendInput", sandboxId="plain", processId=started, data="eA==")
    sleeper = call("start a terminal", "ProcessService/Start", sandboxId="plain", process={
        **shell("sleep 60"), "terminal": {"rows": 5, "columns": 6}})["process"]["id"]
    call("resize", "ProcessService/Resize", sandboxId="plain", processId=sleeper, size={"rows": 7, "columns": 8})
    call.stream("attach as a viewer", "ProcessService/Attach", {
        "sandboxId": "plain", "processId": sleeper, "size": {"rows": 7, "columns": 8}})
    call.stream("attach as a viewer without columns", "ProcessService/Attach", {
        "sandboxId": "plain", "processId": sleeper, "size": {"rows": 7}})
    call("resize of no viewer", "ProcessService/Resize", sandboxId="plain", processId=sleeper,
         size={"rows": 7, "columns": 8}, viewer=1)
    call("signal", "ProcessService/Signal", sandboxId="plain", processId=sleeper, signal=9, tree=True)
    call("wait for the signalled", "ProcessService/Wait", sandboxId="plain", processId=sleeper)
    call("signal too late", "ProcessService/Signal", sandboxId="plain", processId=sleeper, signal=9)
    call.stream("attach as a viewer too late", "ProcessService/Attach", {
        "sandboxId": "plain", "processId": sleeper, "size": {"rows": 7, "columns": 8}})
    long = call("start with long arguments", "ProcessService/Start", sandboxId="plain",
                process={"args": ["sh", "-c", "sleep 0.5", "x" * 900, "y" * 200], "tag": "long"})["process"]["id"]
    call("wait for the long", "ProcessService/Wait", sandboxId="plain", processId=long)
    call("list the long", "ProcessService/List", sandboxId="plain", tag="long")
    service = call("launch", "ProcessService/Launch", sandboxId="plain", process={**shell(
        "exec python3 -m http.server 8000 --bind 127.0.0.1 >/dev/null 2>&1"), "tag": "service"}, port=8000,
        restart="on_failure", ready={"httpPath": "/", "timeoutMs": "60000"})["process"]["id"]
    call("launch without a port", "ProcessService/Launch", sandboxId="plain", process=shell("true"), ready={})
    call("launch by number", "ProcessService/Launch", sandboxId="plain", process=shell("sleep 60"), restart=2)
    call("launch with a terminal", "ProcessService/Launch", sandboxId="plain", restart="RESTART_ALWAYS",
         process={**shell("true"), "terminal": {"rows": 1, "columns": 1}})
    call("ports", "PortService/List", sandboxId="plain")
    call("ports of all", "PortService/List")
    call.stream("forward", "PortService/Forward", {"sandboxId": "plain", "port": 8000}, limit=1,
                _merge=lambda messages: [{**messages[0], "port": type(messages[0].get("port")).__name__}])
    call.stream("forward to a wrong address", "PortService/Forward", {"sandboxId": "plain", "port": 1, "listen": "x"})
    call("preview", "PortService/Preview", sandboxId="plain", port=8000)
    call("preview of no port", "PortService/Preview", sandboxId="plain")
    call("signal the service", "ProcessService/Signal", sandboxId="plain", processId=service, signal=15)
    call("wait for the service", "ProcessService/Wait", sandboxId="plain", processId=service)


def shell_calls(call):
    call("no shells", "ShellService/List", sandboxId="full")
    call("open", "ShellService/Open", sandboxId="full", name="main")
    call("open for a user", "ShellService/Open", sandboxId="full", name="other", user="1000", cwd="/",
         env={"A": "b"})
    call("open for another user", "ShellService/Open", sandboxId="full", name="other", user="0")
    call("open in no directory", "ShellService/Open", sandboxId="full", name="other", cwd="/none")
    call("open with a variable that cannot be", "ShellService/Open", sandboxId="full", name="other", env={"a-b": ""})
    call("remove other", "ShellService/Remove", sandboxId="full", name="other")
    call("get a shell", "ShellService/Get", sandboxId="full", name="main")
    call("get no shell", "ShellService/Get", sandboxId="full", name="other")
    call.stream("shell run", "ShellService/Run", {
        "sandboxId": "full", "name": "main", "command": "cd /tmp; pwd; echo e >&2; false"}, _merge=sorted_output)
    call.stream("shell run without a command", "ShellService/Run", {"sandboxId": "full", "name": "main"},
                _merge=sorted_output)
    call.stream("shell run out of time", "ShellService/Run", {
        "sandboxId": "full", "name": "main", "command": "sleep 60", "timeoutMs": 100}, _merge=sorted_output)
    call.stream("shell exit", "ShellService/Run", {"sandboxId": "full", "name": "main", "command": "exit 6"},
                _merge=sorted_output)
    call("shells", "ShellService/List", sandboxId="full")
    call("remove a shell", "ShellService/Remove", sandboxId="full", name="main")
    call("remove no shell", "ShellService/Remove", sandboxId="full", name="main")
    call("pause to resume", "SandboxService/Pause", sandboxId="plain")
    resumed = call("resume with a process", "SandboxService/Resume", sandboxId="plain",
                   process={"args": ["sleep", "1000"]})["process"]["id"]
    call("signal of 0", "ProcessService/Signal", sandboxId="plain", processId=resumed)
    call("wait for the terminated", "ProcessService/Wait", sandboxId="plain", processId=resumed)


def file_calls(call):
    raw = base64.b64encode(b"/workspace/bad\xff").decode()
    at = lambda path, **fields: {"sandboxId": "full", "path": path, **fields}
    data = lambda text: base64.b64encode(text).decode()
    call.stream("write", "FileService/Write", at("dir/file", parents=True, mode=0o640, data=data(b"hello ")),
                {"data": data(b"world\n")})
    call.stream("write atomically", "FileService/Write", at("/workspace/atomic", atomic=True, exclusive=True))
    call.stream("write what is there", "FileService/Write", at("atomic", exclusive=True))
    call.stream("write at an offset", "FileService/Write", at("dir/file", offset="6", data=data(b"there")))
    call.stream("append", "FileService/Write", at("dir/file", append=True, data=data(b"!\n")))
    call.stream("write raw", "FileService/Write", {"sandboxId": "full", "rawPath": raw, "data": data(b"x")})
    call.stream("write, then an unknown field", "FileService/Write", at("w"), {"path": "x"})
    call.stream("write into nothing", "FileService/Write", at("none/file"))
    call("stat", "FileService/Stat", **at("dir/file"))
    call("stat a directory", "FileService/Stat", **at("/workspace/dir"))
    call("stat raw", "FileService/Stat", sandboxId="full", raw_path=raw)
    call("stat with both paths", "FileService/Stat", **at("nothing", rawPath=raw))
    call("stat nothing", "FileService/Stat", **at("/no/such/file"))
    call("stat as a user", "FileService/Stat", **at("/root", user="nobody"))
    call("make a directory", "FileService/MakeDir", **at("made", mode=0o700))
    call("make directories", "FileService/MakeDir", **at("made/a/b", parents=True))
    call("make a directory again", "FileService/MakeDir", **at("made"))
    call("list files", "FileService/List", **at("/workspace"))
    call("list deep", "FileService/List", **at("/workspace", depth=3))
    first = call("list two", "FileService/List", **at("/workspace", depth=3, limit=2))
    call("list after", "FileService/List", **at("/workspace", depth="3", limit="2", after=first["nextAfter"]))
    call("list nothing", "FileService/List", **at("/no/such/file"))
    call.stream("read", "FileService/Read", at("dir/file"), _merge=joined_output)
    call.stream("read a part", "FileService/Read", at("dir/file", offset="6", length=5), _merge=joined_output)
    call.stream("read a directory", "FileService/Read", at("dir"))
    call("move", "FileService/Move", **at("dir/file", to="moved/file", parents=True))
    call("move raw", "FileService/Move", sandboxId="full", rawPath=raw, rawTo=data(b"/workspace/raw\xfe"))
    call("move over", "FileService/Move", **at("atomic", to="moved/file"))
    call("move and replace", "FileService/Move", **at("atomic", to="moved/file", replace=True))
    call.stream("pull", "FileService/Pull", at("/workspace/moved"), _merge=joined_output)
    call.stream("pull nothing", "FileService/Pull", at("/no/such/file"))
    push = [at("pushed", parents=True, keepOwner=True), {"entry": {"path": "d", "type": "directory", "mode": 0o750}},
            {"entry": {"path": "d/f", "type": "file", "mode": 0o600, "uid": 3, "gid": 4, "size": "1", "inode": "1",
                       "links": 1, "modifiedTime": "2024-02-29T01:02:03.000000004Z"}, "data": "eA=="},
            {"data": data(b"yz")}, {"entry": {"path": "l", "type": "link", "target": "d/f"}},
            {"entry": {"path": "h", "type": "file", "sameAs": "d/f"}}]
    call.stream("push", "FileService/Push", *push)
    call.stream("pull what was pushed", "FileService/Pull", at("pushed"), _merge=joined_output)
    for label, entry in {
            "above": {"path": "../x", "type": "file"}, "no type": {"path": "x"},
            "wrong type": {"path": "x", "type": "thing"}, "no path": {"type": "file"},
            "wrong mode": {"path": "x", "type": "file", "mode": 0o10000},
            "wrong time": {"path": "x", "type": "file", "modifiedTime": "yesterday"},
            "unknown field": {"path": "x", "type": "file", "wrong": 1},
            "same as above": {"path": "x", "type": "file", "sameAs": "../x"},
            "text for a number": {"path": "x", "type": "file", "uid": "x"}}.items():
        call.stream(f"push {label}", "FileService/Push", at("pushed", entry=entry))
    call.stream("push bytes of nothing", "FileService/Push", at("pushed", data="eA=="))
    call.stream("watch files", "FileService/Watch", at("/workspace", recursive=True), limit=1)
    call.stream("watch nothing", "FileService/Watch", at("/no/such/file"))
    call("remove a full directory", "FileService/Remove", **at("moved"))
    call("remove all of it", "FileService/Remove", **at("moved", recursive=True))
    call("remove what is gone", "FileService/Remove", **at("moved"))
    call("remove what may be gone", "FileService/Remove", **at("moved", missingOk=True))
    call("files of nobody", "FileService/Stat", sandboxId="nobody", path="/")


def tool_calls(call):
    at = lambda tool, **fields: {"sandboxId": "full", "tool": tool, **fields}
    call("tools", "ToolService/List")
    call("tool writes", "ToolService/Execute", **at("write_file", params={"file_path": "/workspace/t", "content": "a\x00b\n"},
                                                 changed=True, toolCallId="c-1", snapshot=True))
    call("tool again", "ToolService/Execute", **at("write_file", params={"file_path": "/workspace/t", "content": "a\x00b\n"},
                                                changed=True, toolCallId="c-1", snapshot=True))
    call("tool bash", "ToolService/Execute", **at("bash", params={"command": "echo out; echo err >&2; exit 3"},
                                               timeoutMs="60000", resources={"cpus": 0.5, "memoryBytes": "268435456"}))
    cut = call("tool is cut", "ToolService/Execute", **at("bash", params={"command": "seq 20000"}, maxOutputTokens=200),
               _merge=lambda reply: {**reply, "content": len(reply["content"]),
                                     "truncated": {**reply["truncated"], "handle": "<handle>"}})
    call("read output", "ToolService/ReadOutput", sandboxId="full", handle=cut["truncated"]["handle"], offset="10", limit=12,
         _merge=lambda reply: {**reply, "total": type(reply["total"]).__name__})
    call.answers["read output"]["request"]["handle"] = "<handle>"
    call("read no output", "ToolService/ReadOutput", sandboxId="full", handle="none")
    call("tool out of time", "ToolService/Execute", **at("bash", params={"command": "sleep 60"}, timeoutMs=200))
    call("tool with wrong parameters", "ToolService/Execute", **at("read_file", params={"file_path": 5}))
    call("unknown tool", "ToolService/Execute", **at("none"))
    call.stream("tool as a stream", "ToolService/ExecuteStream", at("bash", params={"command": "echo out"}),
                _merge=lambda messages: messages[-1:])
    call.stream("tool as a stream, wrong", "ToolService/ExecuteStream", at("bash", params=5))
    for field in ("sandboxId", "tool", "toolCallId"):
        call(f"NUL in {field}", "ToolService/Execute", **{**at("bash"), field: "a\x00b"})


def template_calls(call, directory):
    call.stream("import", "TemplateService/Import", {"name": "made", "path": directory, "settings": {
        "env": {"A": "b"}, "workdir": "/", "user": "root", "startCommand": "true", "readyCommand": "true",
        "allowSetuid": True, "cpus": 2, "memoryBytes": "1073741824"}}, _merge=without_progress)
    call.stream("import again", "TemplateService/Import", {"name": "made", "path": directory}, _merge=without_progress)
    for label, settings in {"unknown": {"x": 1}, "workdir": {"workdir": "x"}, "cpus": {"cpus": 4097},
                            "variable": {"env": {"a=b": "c"}}, "number": {"env": {"a": 1}}, "type": 5}.items():
        call.stream(f"import with wrong settings: {label}", "TemplateService/Import",
                    {"name": "wrong", "path": "/no/such/file", "settings": settings})
    call.stream("pull from a registry that is not allowed", "TemplateService/Pull", {"reference": "debian:12"})
    call.stream("pull of no reference", "TemplateService/Pull", {"reference": "A B"})
    call("no logins", "RegistryService/List")
    call("login to a registry that is not allowed", "RegistryService/Login", registry="other.example", username="ann", password="golden-password")
    call("login to no registry", "RegistryService/Login", registry="A B", username="ann", password="golden-password")
    call("login of no user", "RegistryService/Login", registry="docker.io", username="a:b", password="golden-password")
    call("logout without a login", "RegistryService/Logout", registry="docker.io")
    call.stream("build what is no Dockerfile", "TemplateService/Build", {"name": "built", "dockerfile": "NONE"})
    call.stream("build from no image", "TemplateService/Build", {"name": "built", "dockerfile": "FROM none.example/a:1/b"})
    call.stream("build under a wrong name", "TemplateService/Build", {"name": "a b", "dockerfile": "FROM made"})
    call.stream("build without a context", "TemplateService/Build", {"name": "built", "dockerfile": "FROM made\nCOPY a /a"}, _merge=lambda messages: messages[-1:])
    call.stream("build", "TemplateService/Build", {"name": "built", "dockerfile": "FROM made\nLABEL a=b"}, _merge=without_lines)
    call("remove what was built", "TemplateService/Remove", name="built")
    call.stream("push to a registry that is not allowed", "TemplateService/Push", {"name": "made", "reference": "other.example/made:1"})
    call.stream("push of no template", "TemplateService/Push", {"name": "nothing", "reference": "other.example/made:1"})
    call.stream("push to a digest", "TemplateService/Push", {"name": "made", "reference": "other.example/made@sha256:" + 64 * "0"})
    call("create from an image that was not pulled", "SandboxService/Create", template="debian:12")
    call("commit", "TemplateService/Commit", sandboxId="plain", name="committed")
    call("commit again", "TemplateService/Commit", sandboxId="plain", name="committed")
    call("templates at last", "TemplateService/List")
    call("prune of templates", "TemplateService/Prune", all=True, dryRun=True)
    call("prune of images", "TemplateService/Prune", olderMs="1000")
    call("remove a template", "TemplateService/Remove", name="committed")
    call("remove no template", "TemplateService/Remove", name="committed")


def network_calls(call):
    """Policies of sandboxes; no call needs a network."""
    call("network", "NetworkService/Get", sandboxId="plain")
    call("no network", "NetworkService/Set", sandboxId="plain", policy={"mode": "none"})
    call("no network with rules", "NetworkService/Set", sandboxId="plain", policy={"mode": "none", "allow": ["a.test"]})
    call("a rule that cannot be compiled", "NetworkService/Set", sandboxId="plain", allow=["a*.test"])
    call("a proxy without a network", "NetworkService/Set", sandboxId="plain", proxy="socks5://u:p@h.test:1")
    call("a proxy of an unknown kind", "NetworkService/Set", sandboxId="plain", proxy="ftp://u:p@h.test:1")
    call("a proxy of a template", "NetworkService/SetTemplate", template="host",
         policy={"mode": "open", "proxy": "socks5://h.test:1"})
    call("remove no rule", "NetworkService/Set", sandboxId="plain", remove=["a.test"])
    call("network log", "NetworkService/Log", sandboxId="plain")
    call("test a name", "NetworkService/Test", sandboxId="plain", target="https://a.test/")
    call("test no target", "NetworkService/Test", sandboxId="plain", target="127.1")
    call.stream("learn the network", "NetworkService/Learn", {"sandboxId": "plain"}, limit=1)
    call("network of a template", "NetworkService/GetTemplate", template="host")
    call("set the network of a template", "NetworkService/SetTemplate", template="host",
         policy={"allow": ["*.a.test"], "deny": ["bad.a.test"]})
    call("set no network of a template", "NetworkService/SetTemplate", template="host")
    call("create with a bad rule", "SandboxService/Create", network={"allow": ["10.0.0.1/8"]})


def owner_calls(call):
    """After all other sandboxes are gone."""
    call("own owner", "OwnerService/Get")
    call("unknown owner", "OwnerService/Get", owner="nobody")
    call("owner with a bad name", "OwnerService/Get", owner="a b")
    call("set ceilings", "OwnerService/Set", owner="ann", settings=[{"name": "sandboxes", "value": "20"},
                                                                    {"name": "memory", "value": "8G"}])
    call("unset a ceiling", "OwnerService/Set", owner="ann", settings=[{"name": "memory"}])
    call("unknown ceiling", "OwnerService/Set", owner="ann", settings=[{"name": "colour", "value": "1"}])
    call("bad ceiling", "OwnerService/Set", owner="ann", settings=[{"name": "ttl", "value": "soon"}])
    call("owners", "OwnerService/List")
    call("remove an owner", "OwnerService/Remove", owner="ann")
    call("remove no owner", "OwnerService/Remove", owner="ann")


def model_calls(call):
    call("no models", "ModelService/List")
    call("no usage", "ModelService/Usage")
    call("usage of too many days", "ModelService/Usage", days=100)
    call("usage of no sandbox", "ModelService/Usage", sandboxId="nobody")
    call("usage of a bad label", "ModelService/Usage", label="colour")


def token_calls(call):
    call("token", "TokenService/Create", label="first")
    made = call("token with all", "TokenService/Create", label="second", readOnly=True, ttlMs="3600000")["token"]["id"]
    call("tokens", "TokenService/List")
    call("remove a token", "TokenService/Remove", id=made)
    call("remove no token", "TokenService/Remove", id=made)


def console_calls(call):
    call("login", "ConsoleService/CreateLogin")
    call("sessions", "ConsoleService/ListSessions")
    call("revoke no session", "ConsoleService/RevokeSession", id="s0000000")


def event_calls(call):
    call.stream("events", "EventService/Watch", {"since": "0", "noFollow": True, "types": ["token.*", "template.*"]})
    call.stream("events of a sandbox", "EventService/Watch", {
        "since": 0, "noFollow": True, "types": ["sandbox.created", "sandbox.destroyed"], "sandboxId": "full"})
    call.stream("events since a time", "EventService/Watch", {
        "sinceTime": "2020-01-31T12:00:00.5Z", "noFollow": True, "types": ["sandbox.created"], "sandboxId": "full"})
    call.stream("events from now", "EventService/Watch", {}, limit=1)
    call.stream("events since two", "EventService/Watch", {"since": 0, "sinceTime": "2020-01-31T12:00:00Z"})
    call.stream("events of no type", "EventService/Watch", {"types": ["none.*"]})
    call.stream("audit", "HostService/Audit", {"verify": True})
    call.stream("audit of a sandbox", "HostService/Audit", {"sandboxId": "full"},
                _merge=lambda messages: [sorted(messages[0]), messages[-1]])


def all_calls(daemon, directory):
    call = Calls(daemon)
    host_calls(call)
    sandbox_calls(call)
    agent_calls(call)
    volume_calls(call)
    secret_calls(call)
    backup_calls(call)
    codebase_calls(call, lambda name, script: daemon.stream("/holt.v1.ProcessService/Exec", {
        "sandboxId": name, "process": {"args": ["sh", "-c", script]}}))
    snapshot_calls(call, lambda script: daemon.stream("/holt.v1.ProcessService/Exec", {
        "sandboxId": "plain", "process": {"args": ["sh", "-c", script]}}))
    process_calls(call)
    shell_calls(call)
    file_calls(call)
    tool_calls(call)
    network_calls(call)
    owner_calls(call)
    model_calls(call)
    token_calls(call)
    console_calls(call)
    template_calls(call, directory)
    event_calls(call)
    return call.answers


# --- every field with every value ------------------------------------------------------------------------------------

VALUES = [
    None, True, False, 0, 1, -1, 7, 1.0, 1.5, 1e3, -0.5, 1e300, 2**31, 2**32 - 1, 2**32, 2**53 + 1, 2**63 - 1, 65535,
    65536, 64, 65, 100, 99, 3600001, 10**16, "", "x", "X", "7", "-7", " 7", "7 ", "0x7", "1.5", "18446744073709551615",
    "18446744073709551616", "9223372036854", "9223372036855", "4611686018427", "4611686018428", "a.b", "a..b", "..",
    ".a", "-a", "a b", "a/b", "/", "/a", "a\nb", "a\x7fb", "\u00e9", "x" * 64, "x" * 65, "x" * 128, "x" * 129, "x" * 255,
    "x" * 256, "/" + "x" * 4095, "x" * 5000, [], [""], ["x"], [5], [None], [[]], [{}], ["x", ""], {}, {"a": "b"},
    {"a": 5}, {"a": None}, {"": "x"}, {"a=b": "x"}, {"a b": "x"}, {"x" * 63: "x"}, {"x" * 64: "x"}, {"a": "x" * 255},
    {"a": "x" * 256}, {"a": "x\ny"}, {"unknown": 1}, "eA==", "eA", "eA=", "-_8=", "+/8", "*", "AA==",
    "2026-01-31T12:00:00Z", "2026-01-31T12:00:00.123456789Z", "2026-01-31T12:00:00+01:00", "2026-01-31", "kill",
    "pause", "stop", "named", "tool", "turn", "template", "RESTART_ALWAYS", "RESTART_NEVER", "sandbox.*", "sandbox.none",
]
MANY = [  # what has a limit of its own
    ("SandboxService/Create", "labels", {f"k{i}": "" for i in range(65)}),
    ("SandboxService/List", "labels", {f"k{i}": "" for i in range(65)}),
    ("SandboxService/Stats", "sandboxIds", ["x"] * 1025),
    ("ProcessService/Exec", "process.args", ["x"] * 70000), ("ProcessService/Exec", "process.args", ["x"] * 270000),
    ("ProcessService/Exec", "process.args", ["x" * 1100000]), ("ProcessService/Exec", "process.args", ["x" * 2100000]),
    ("ProcessService/Exec", "process.env", {f"k{i}": "" for i in range(70000)}),
    ("ProcessService/SendInput", "data", base64.b64encode(b"x" * 65536).decode()),
    ("ProcessService/SendInput", "data", base64.b64encode(b"x" * 65537).decode()),
    ("ProcessService/SendInput", "data", base64.b64encode(b"x" * 65539).decode()),
    ("EventService/Watch", "types", ["sandbox.*"] * 65), ("SandboxService/Fork", "count", 256),
    ("SandboxService/Fork", "count", 257), ("ToolService/Execute", "resources.cpus", 256),
    ("ToolService/Execute", "resources.cpus", 256.5), ("ToolService/Execute", "resources.memoryBytes", 2**40 + 1),
    ("ToolService/Execute", "maxOutputTokens", 10**7), ("FileService/MakeDir", "mode", 0o7777),
    ("FileService/MakeDir", "mode", 0o10000), ("FileService/Stat", "path", "x" * 4096),
    ("FileService/Stat", "rawPath", base64.b64encode(b"x" * 4096).decode()),
    ("FileService/Stat", "rawPath", base64.b64encode(b"a\0b").decode()),
    ("FileService/List", "after", base64.b64encode(b"a\0b").decode()),
]
BODIES = [b"", b"[]", b"5", b'"x"', b"{", b"{}x", b'{"a":1,"a":2}', b'{"a":"\\u0000"}', b'{"\\u0000":1}', b'{"a":"\xff"}',
          b'{"x":1}', b'{"sandbox_Id":"x"}', b'{"SandboxId":"x"}', b'{"sandboxId":"nobody","sandbox_id":"nobody"}']
PROCESS = {"args": ["true"]}
NOBODY = {"sandboxId": "nobody"}
BASES = {  # a request that is right, and is refused for what it names, or changes nothing
    "SandboxService/Create": {"template": "nothing"},
    "SandboxService/Run": {"sandbox": {"template": "nothing", "limits": {}}, "process": {**PROCESS, "terminal": {
        "rows": 1, "columns": 1}}},
    "SandboxService/Resume": {**NOBODY, "process": PROCESS},
    "SandboxService/List": {}, "SandboxService/WatchStats": {}, "SandboxService/Stats": {},
    "SnapshotService/Create": {**NOBODY, "name": "x"}, "SnapshotService/Rollback": {**NOBODY, "snapshot": "x"},
    "SnapshotService/Remove": {**NOBODY, "snapshot": "x"},
    "ProcessService/Exec": {**NOBODY, "process": {**PROCESS, "terminal": {"rows": 1, "columns": 1}}},
    "ProcessService/Start": {**NOBODY, "process": PROCESS},
    "ProcessService/Launch": {**NOBODY, "process": PROCESS, "port": 80, "ready": {}},
    "ProcessService/Resize": {**NOBODY, "processId": "p1", "size": {"rows": 1, "columns": 1}},
    "ProcessService/Signal": {**NOBODY, "processId": "p1", "signal": 9},
    "PortService/Forward": {**NOBODY, "port": 80}, "PortService/List": {}, "PortService/Preview": {**NOBODY, "port": 80},
    "FileService/Push": {"sandboxId": "full", "path": "/workspace", "entry": {"path": "x", "type": "file"}},
    "FileService/Write": {"sandboxId": "full", "path": "/workspace/x"},
    "FileService/Move": {**NOBODY, "path": "/x", "to": "/y"},
    "ToolService/Execute": {**NOBODY, "tool": "bash", "resources": {}},
    "ToolService/ExecuteStream": {**NOBODY, "tool": "bash", "resources": {}}, "ToolService/List": {},
    "ToolService/ReadOutput": {**NOBODY, "handle": "x"},
    "TemplateService/Import": {"name": "nothing", "path": "/no/such/path", "settings": {}},
    "TemplateService/Pull": {"reference": "other.example/nothing:1"},
    "TemplateService/Build": {"name": "nothing", "dockerfile": "NONE"},
    "TemplateService/Push": {"name": "nothing", "reference": "other.example/nothing:1"},
    "TemplateService/List": {}, "TemplateService/Remove": {"name": "nothing"}, "TemplateService/Prune": {"dryRun": True},
    "TemplateService/Commit": {**NOBODY, "name": "nothing"},
    "RegistryService/Login": {"registry": "other.example", "username": "ann", "password": "x"}, "RegistryService/List": {},
    "RegistryService/Logout": {"registry": "nothing"},
    "BackupService/Create": NOBODY, "BackupService/List": {}, "BackupService/Remove": {"name": "nothing"},
    "BackupService/Restore": {"name": "nothing"}, "BackupService/Collect": {},
    "SecretService/Set": {"name": "a secret's name", "value": "x", "hosts": ["api.example.com"]}, "SecretService/List": {},
    "SecretService/Rotate": {"secret": "nothing", "value": "x"}, "SecretService/Remove": {"secret": "nothing"},
    "CodebaseService/Add": {"name": "nothing", "source": "nothing"}, "CodebaseService/List": {},
    "CodebaseService/Remove": {"codebase": "nothing"}, "CodebaseService/Log": {"codebase": "nothing"},
    "CodebaseService/Apply": {"codebase": "nothing"},
    "PermissionService/List": NOBODY, "PermissionService/Set": NOBODY,
    "PermissionService/Add": {**NOBODY, "rules": ["/a=read"]}, "PermissionService/Remove": {**NOBODY, "rules": ["/a=read"]},
    "PermissionService/Why": {**NOBODY, "path": "a"}, "PermissionService/Test": {**NOBODY, "path": "a", "operation": "read"},
    "PermissionService/Tree": NOBODY,
    "CodebaseService/Commit": NOBODY, "CodebaseService/Discard": NOBODY,
    "CodebaseService/Rebase": NOBODY, "CodebaseService/Merge": {**NOBODY, "fromSandboxId": "sb-0000000000000000"},
    "AgentService/List": {}, "AgentService/Get": {"name": "nothing"},
    "VolumeService/Create": {"name": "a volume's name"}, "VolumeService/List": {},
    "VolumeService/Remove": {"volume": "nothing"}, "VolumeService/Adopt": {"volume": "nothing"},
    "NetworkService/Get": NOBODY, "NetworkService/Log": NOBODY, "NetworkService/Learn": NOBODY, "NetworkService/Test": {**NOBODY, "target": "a.test"},
    "NetworkService/Set": {**NOBODY, "policy": {}},
    "NetworkService/GetTemplate": {"template": "none"}, "NetworkService/SetTemplate": {"template": "none"},
    "ModelService/List": {}, "ModelService/Usage": NOBODY,
    "OwnerService/Get": {"owner": "nobody"}, "OwnerService/List": {}, "OwnerService/Remove": {"owner": "nobody"},
    "OwnerService/Set": {"owner": "fields", "settings": [{"name": "nothing", "value": "1"}]},
    "TokenService/Create": {"label": "fields", "ttlMs": 60000}, "TokenService/List": {},
    "TokenService/Remove": {"id": "nothing"},
    "HostService/Health": {}, "HostService/Capabilities": {}, "HostService/Metrics": {},
    "HostService/Audit": {"verify": True}, "EventService/Watch": {"noFollow": True},
}


QUOTED = {".", "_", "-", "..", "/"}.union(*MESSAGES.values())


def base_of(method):
    name, request = method.removeprefix("/holt.v1."), MESSAGES[REQUESTS[method]]
    if name in BASES:
        return BASES[name]
    return {**NOBODY, **{field: "x" for field in ("processId", "name", "path") if field in request}}


def snake(name):
    return re.sub(r"[A-Z]", lambda found: "_" + found[0].lower(), name)


def paths_of(message, base):
    """Every field of a message and of those inside it that the base has."""
    for field, kind in MESSAGES[message].items():
        yield (field,)
        if kind in MESSAGES and isinstance(base.get(field), dict):
            for rest in paths_of(kind, base[field]):
                yield (field,) + rest


def changed(base, path, value, is_snake=False):
    """The base with this value in this place; Ellipsis takes the field away."""
    name = snake(path[0]) if is_snake else path[0]
    rest = {field: each for field, each in base.items() if field != path[0]}
    if len(path) > 1:
        return {**rest, path[0]: changed(base.get(path[0], {}), path[1:], value, is_snake)}
    return rest if value is Ellipsis else {**rest, name: value}


def shown(value):
    text = json.dumps(value)
    return text if len(text) <= 90 else f"{text[:20]}... of {len(text)} bytes"


class Fields:
    """How each method answers each value of each field, as "code cause"."""

    def __init__(self, daemon):
        self.daemon, self.outcomes, self.texts = daemon, {}, {}

    def note(self, method, where, value, answer):
        error = error_of(answer)
        outcome = (error["code"] + " " + error.get("cause", "")).strip() if error else "ok"
        self.outcomes.setdefault(method, {}).setdefault(where, {}).setdefault(outcome, []).append(value)
        if error:
            text = self.plain(Names().text(error["message"]))
            texts = self.texts.setdefault(method, {}).setdefault(where, [])
            if text not in texts:
                texts.append(text)

    def plain(self, text):
        """The message without the value that it quotes; names of fields stay."""
        return re.sub(r"'([^']*)'", lambda found: found[0] if found[1] in QUOTED else "'<value>'", text)

    def send(self, method, request):
        text = json.dumps(request).encode()
        return self.daemon.send(method, envelope(text) if method in STREAMS else text)

    def probe(self, method):
        short, base = method.removeprefix("/holt.v1."), base_of(method)
        self.note(short, "", "base", self.send(method, base))
        for body in BODIES:
            self.note(short, "", body.decode("latin-1"), self.daemon.send(
                method, envelope(body) if method in STREAMS else body))
        for path in paths_of(REQUESTS[method], base):
            where = ".".join(path)
            self.note(short, where, "absent", self.send(method, changed(base, path, Ellipsis)))
            for value in VALUES:
                if (short, where, value) == ("TemplateService/Import", "path", "/"):
                    continue  # would import the whole machine
                self.note(short, where, shown(value), self.send(method, changed(base, path, value)))
            if snake(path[-1]) != path[-1]:
                for value in ("x", 5, None):
                    self.note(short, where, snake(path[-1]) + " " + shown(value),
                              self.send(method, changed(base, path, value, True)))
        for name, where, value in MANY:
            if name == short:
                self.note(short, where, shown(value), self.send(method, changed(base, where.split("."), value)))


def all_fields(daemon):
    fields = Fields(daemon)
    for method in METHODS:
        fields.probe(method.path)
    return fields.outcomes, fields.texts


# --- recording and comparing -----------------------------------------------------------------------------------------


def take_texts(value, found, above=""):
    """Takes the texts for people out of an answer: why a process ended, what a tool says and what it is."""
    if isinstance(value, list):
        for each in value:
            take_texts(each, found, above)
    for name, each in value.items() if isinstance(value, dict) else ():
        if isinstance(each, str) and each and (name in TEXTS or (above, name) == ("content", "text")):
            found.append(each)
            value[name] = "<text>"
        take_texts(each, found, name)


def split_texts(answers):
    """Takes the texts for people out of the answers: {label: [message, remedy]}, or [reason]."""
    texts = {}
    for label, each in answers.items():
        answer, reasons = each["answer"], []
        take_texts(answer, reasons)
        if reasons:
            texts[label] = reasons
        last = answer[-1] if isinstance(answer, list) and answer else answer
        error = error_of(last) if isinstance(last, dict) else None
        if error:
            texts[label] = [error.pop("message"), error.pop("remedy", "")]
            for detail in error.get("details", []):
                detail.pop("value", None)
                if isinstance(detail.get("debug"), dict):
                    detail["debug"].pop("remedy", None)
            error["message"] = "<text>"
    return texts


def folded(fields):
    """Many fields are answered alike: {"alike": [answers of a field], "fields": {method: {field: index}}}."""
    alike, index = [], {}
    folds = {}
    for method, each in fields.items():
        for field, answers in each.items():
            text = json.dumps(answers, sort_keys=True)
            if text not in index:
                index[text] = len(alike)
                alike.append(answers)
            folds.setdefault(method, {})[field] = index[text]
    return {"alike": alike, "fields": folds}


def unfolded(value):
    return {method: {field: value["alike"][index] for field, index in each.items()}
            for method, each in value["fields"].items()}


def read(name):
    value = json.loads((GOLDEN / name).read_text())
    if name == "calls.json":
        return value
    return {"calls": value["calls"], "fields": unfolded(value)} if "calls" in value else unfolded(value)


def write(name, value):
    if name == "fields.json":
        value = folded(value)
    elif name == "messages.json":
        value = {"calls": value["calls"], **folded(value["fields"])}
    (GOLDEN / name).write_text(json.dumps(value, indent=1, sort_keys=True, ensure_ascii=True) + "\n")


def differences(wanted, got, path=""):
    """Lines that say where two values differ."""
    if isinstance(wanted, dict) and isinstance(got, dict):
        for name in sorted(wanted.keys() | got.keys()):
            here = f"{path}/{name}"
            if name not in wanted or name not in got:
                yield f"{here}: {'is new' if name not in wanted else 'is missing'}: {json.dumps(wanted.get(name, got.get(name)))[:300]}"
            else:
                yield from differences(wanted[name], got[name], here)
    elif isinstance(wanted, list) and isinstance(got, list) and len(wanted) == len(got):
        for i, (one, other) in enumerate(zip(wanted, got)):
            yield from differences(one, other, f"{path}/{i}")
    elif type(wanted) is not type(got) or wanted != got:
        yield f"{path}:\n    recorded {json.dumps(wanted)[:600]}\n    now      {json.dumps(got)[:600]}"


def main(socket_path, directory, mode):
    daemon = Daemon(socket_path)
    answers = all_calls(daemon, directory)
    outcomes, field_texts = all_fields(daemon)
    now = {"messages.json": {"calls": split_texts(answers), "fields": field_texts}, "calls.json": answers,
           "fields.json": outcomes}
    if mode == "--update-messages":
        write("messages.json", now.pop("messages.json"))
    failed = False
    for name, value in now.items():
        if mode == "--update":
            write(name, value)
            continue
        lines = list(differences(read(name), json.loads(json.dumps(value))))
        for line in lines[:MOST]:
            print(f"{name}{line}")
        if len(lines) > MOST:
            print(f"{name}: {len(lines) - MOST} more differences")
        failed = failed or (lines != [] and name != "messages.json")
        if lines and name == "messages.json":
            print("Only texts for people differ here, which breaks nobody: golden_test --update-messages records them")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3] if len(sys.argv) > 3 else "")
