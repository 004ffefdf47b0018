"""Two owners and what the first one has, for matrix_test: clients of every front end, and the state of an owner."""
import base64, hashlib, http.client, json, os, pathlib, re, secrets, socket, struct, time

import contract

LOADED = contract.load()
METHODS, MESSAGES = {method.name: method for method in LOADED[0]}, LOADED[1]
SOURCE = pathlib.Path(__file__).resolve().parent / "../../../src"
PORT = int(os.environ["port"])
ACCEPT = "application/json, text/event-stream"
WORD = "kestrel"  # in every text that the first owner chooses: nobody else may read it


def equal(wanted, got, of=""):
    assert wanted == got, f"wanted {wanted!r:.3000}, got {got!r:.3000} {of!s:.2000}"


def envelope(message):
    text = json.dumps(message).encode()
    return struct.pack(">BI", 0, len(text)) + text


def plain_error(error):
    """Without the base64 form of its details, which has the same texts."""
    return {**error, "details": [{key: value for key, value in each.items() if key != "value"}
                                 for each in error.get("details", [])]}


class Outcome:
    """What a call has brought: an error, or messages."""

    def __init__(self, status, messages, error=None):
        self.status, self.messages, self.error = status, messages, error

    def text(self, values):
        """All of it, with the values of the request replaced by their names."""
        text = json.dumps([self.status, self.messages, self.error], sort_keys=True)
        for name, value in sorted(values.items(), key=lambda each: -len(each[1])):
            text = text.replace(value, f"<{name}>")
        return text

    @property
    def code(self):
        return (self.error or {}).get("code", "ok")


class Client:
    """One token, over TCP."""

    def __init__(self, token):
        self.token, self.connection = token, None

    def send(self, verb, path, body, headers):
        """Tried again on a new connection if the daemon has closed the old one."""
        for last in (False, True):
            self.connection = self.connection or http.client.HTTPConnection("127.0.0.1", PORT, timeout=120)
            try:
                self.connection.request(verb, path, body, headers)
                response = self.connection.getresponse()
                return response.status, response.headers, response.read()
            except (ConnectionError, http.client.HTTPException):
                self.connection = None
                if last:
                    raise

    def unary(self, method, request):
        status, _, data = self.send("POST", "/holt.v1." + method, json.dumps(request),
                                    {"Content-Type": "application/json", "Authorization": "Bearer " + self.token})
        reply = json.loads(data)
        return Outcome(status, [reply]) if status == 200 else Outcome(status, [], plain_error(reply))

    def stream(self, method, request, is_raw=False, limit=None, seconds=60):
        """Ends after so many messages, or after so long."""
        connection = http.client.HTTPConnection("127.0.0.1", PORT, timeout=seconds)
        headers = {"Content-Type": "application/connect+json", "Authorization": "Bearer " + self.token}
        if is_raw:
            headers.update({"Connection": "Upgrade", "Upgrade": "holt-stream/1"})
        connection.request("POST", "/holt.v1." + method, envelope(request), headers)
        response = connection.getresponse()
        try:
            if response.status == 101:
                return Outcome(101, ["raw"])
            if response.status != 200:
                return Outcome(response.status, [], plain_error(json.loads(response.read())))
            return self.messages(response, limit, time.monotonic() + seconds)
        finally:
            connection.close()

    @staticmethod
    def messages(response, limit, end):
        messages = []
        while time.monotonic() < end and (limit is None or len(messages) < limit):
            try:
                flags, size = struct.unpack(">BI", response.read(5))
                message = json.loads(response.read(size))
            except TimeoutError:
                return Outcome(200, messages)
            if flags & 2:
                return Outcome(200, messages, plain_error(message["error"]) if "error" in message else None)
            messages.append(message)
        return Outcome(200, messages)

    def call(self, name, request, is_raw=False, **options):
        if METHODS[name].is_stream:
            return self.stream(name, request, is_raw, **options)
        return self.unary(name, request)

    def must(self, method, /, limit=None, **request):
        """The reply of a call that works: its only message, or all of a stream."""
        outcome = self.call(method, request, **({"limit": limit} if METHODS[method].is_stream else {}))
        assert outcome.error is None, (method, request, outcome.error)
        return outcome.messages if METHODS[method].is_stream else outcome.messages[0]

    def e2b(self, verb, path, body=None, headers=None):
        """Status and body, parsed where it is JSON. A header that is None is not sent."""
        given = {name: value for name, value in {"X-API-KEY": self.token, **(headers or {})}.items() if value is not None}
        if body is not None:
            given["Content-Type"] = "application/json"
        status, got, data = self.send(verb, path, None if body is None else json.dumps(body), given)
        is_json = (got.get("Content-Type") or "").startswith("application/json")
        return Outcome(status, [json.loads(data) if is_json and data else data.decode("latin-1")])

    def login(self):
        """A session of the console: its id, its key, and the headers of a browser that has it."""
        status, got, data = self.send("POST", "/console/login", json.dumps({"token": self.token}), {"Content-Type": "application/json"})
        equal(200, status, data)
        session = json.loads(data)
        cookie = got["Set-Cookie"].partition(";")[0]
        return {**session, "headers": {"Cookie": cookie, "X-Holt-Session": session["key"]}}

    def mcp(self, method, path="/mcp", session=None, **params):
        """Status and the last message, in the revision without sessions; with one, in the last that has them."""
        meta = "io.modelcontextprotocol/"
        headers = {"Accept": ACCEPT, "Content-Type": "application/json", "Authorization": "Bearer " + self.token}
        if session is None:
            headers.update({"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": method})
            if "name" in params or "taskId" in params:
                headers["Mcp-Name"] = params.get("name", params.get("taskId"))
            params["_meta"] = {meta + "protocolVersion": "2026-07-28", meta + "clientCapabilities": {"extensions": {meta + "tasks": {}}},
                               meta + "clientInfo": {"name": "holt-tests", "version": "1"}}
        elif session:
            headers["Mcp-Session-Id"] = session
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
        status, got, data = self.send("POST", path, body, headers)
        if (got.get("Content-Type") or "").startswith("text/event-stream"):
            data = [line[6:] for line in data.decode().splitlines() if line.startswith("data: ")][-1]
        outcome = Outcome(status, [json.loads(data)])
        outcome.session = got.get("Mcp-Session-Id")
        return outcome

    def tool(self, name, arguments, **options):
        return self.mcp("tools/call", name=name, arguments=arguments, **options)


# --- the unix socket ----------------------------------------------------------------------------


def root(method, /, **request):
    from api import call
    return call(method, **request)


def token_create(owner, role="user", **fields):
    return root("TokenService/Create", owner=owner, role=role, **fields)["secret"]


# --- what the first owner has ---------------------------------------------------------------------


def until(what, of=""):
    end = time.monotonic() + 300
    while not what():
        assert time.monotonic() < end, f"never came true {of}"
        time.sleep(0.05)


def shell(script):
    return {"args": ["sh", "-c", script]}


def sandbox_make(client, name, **fields):
    return client.must("SandboxService/Create", name=name, labels={"word": WORD}, **fields)["sandbox"]["id"]


def own_objects(client):
    """What every owner has under the same names, for requests that name an object of the caller beside one of another owner."""
    client.must("SandboxService/Create", name="own")
    client.must("SandboxService/Stop", sandboxId=client.must("SandboxService/Create", name="own-stopped")["sandbox"]["id"])
    client.login()
    volume = client.e2b("POST", "/volumes", {"name": "own-content"})
    equal(201, volume.status, volume.messages)
    return {"volume_token": volume.messages[0]["token"]}


def holt_objects(client):
    """Sandboxes in every state, and what there can be in one."""
    volume = client.must("VolumeService/Create", name=WORD + "-volume")["volume"]
    secret = client.must("SecretService/Set", name=WORD + "-secret", value=WORD + "-value", hosts=["*.example.com"])["secret"]
    codebase = client.must("CodebaseService/Add", name=WORD + "-codebase", source=volume["id"])["codebase"]
    running = sandbox_make(client, WORD + "-running", volumes=[{"volume": volume["id"], "path": "/data"}])
    coding = sandbox_make(client, WORD + "-coding", codebase={"codebase": codebase["id"], "path": "/code"},
                          permissions={"preset": "full-access", "view": "fuse"})
    at = {"sandboxId": running}
    made = {"sandbox": running, "volume": volume["id"], "volume_name": volume["name"],
            "secret": secret["id"], "secret_name": secret["name"],
            "codebase": codebase["id"], "codebase_name": codebase["name"], "coding": coding,
            "paused": sandbox_make(client, WORD + "-paused"), "stopped": sandbox_make(client, WORD + "-stopped")}
    script = f"echo {WORD} >/workspace/secret; echo {WORD}; echo {WORD} >/data/file"
    client.must("ProcessService/Exec", **at, process=shell(script))
    client.must("ProcessService/Exec", sandboxId=coding, process=shell(f"echo {WORD} >/code/file"))
    made["process"] = client.must("ProcessService/Start", **at, process={**shell("cat"), "stdin": True, "tag": WORD})["process"]["id"]
    made["service"] = client.must("ProcessService/Launch", **at, port=8000, ready={"timeoutMs": 60000}, process=shell(
        "cd /workspace; exec python3 -m http.server 8000 --bind 127.0.0.1"))["process"]["id"]
    client.must("ShellService/Run", **at, name="main", command=f"export WORD={WORD}")
    made["backup"] = client.must("BackupService/Create", **at)["backup"]["name"]
    made["snapshot"] = client.must("SnapshotService/Create", **at, name=WORD + "-mark")["snapshot"]["name"]
    made["template"] = client.must("TemplateService/Commit", **at, name=WORD + "-template")["template"]["name"]
    made["token"] = client.must("TokenService/Create", label=WORD + "-token")["token"]["id"]
    made["login"] = client.login()["id"]
    cut = client.must("ToolService/Execute", **at, tool="bash", params={"command": f"seq 20000; echo {WORD}"},
                      maxOutputTokens=200)
    made["handle"] = cut["truncated"]["handle"]
    client.must("SandboxService/Pause", sandboxId=made["paused"])
    client.must("SandboxService/Stop", sandboxId=made["stopped"])
    return made


def e2b_objects(client):
    def ask(status, verb, path, body=None):
        outcome = client.e2b(verb, path, body)
        equal(status, outcome.status, (verb, path, outcome.messages))
        return outcome.messages[0]

    sandbox = ask(201, "POST", "/v2/sandboxes", {"templateID": "host", "timeout": 3600, "metadata": {"word": WORD},
                                                  "autoResume": {"enabled": True}})
    built = ask(202, "POST", "/v3/templates", {"name": WORD + "-built"})
    names = {"made": built["templateID"], "build": built["buildID"]}
    ask(202, "POST", "/v2/templates/{made}/builds/{build}".format(**names), {"fromTemplate": "host", "steps": []})
    until(lambda: ask(200, "GET", "/templates/{made}/builds/{build}/status".format(**names))["status"] == "ready")
    template, = (each["name"] for each in client.must("TemplateService/List", all=True)["templates"]
                 if each.get("owner") == f"template {WORD}-built")
    volume = ask(201, "POST", "/volumes", {"name": WORD + "-content"})
    equal(201, client.e2b("PUT", f"/volumecontent/{volume['volumeID']}/file?path=/file", {},
                          {"Authorization": "Bearer " + volume["token"]}).status)
    return {"e2b": sandbox["sandboxID"], "access": sandbox["envdAccessToken"], "built": names["made"],
            "build": names["build"], "built_template": template, "built_name": WORD + "-built",
            "e2b_secret": ask(201, "POST", "/secrets", {"name": WORD + "-secret", "value": "v"})["secretID"],
            "secret_name": WORD + "-secret",
            "e2b_volume": volume["volumeID"], "volume_secret": volume["token"],
            "saved": ask(201, "POST", f"/sandboxes/{sandbox['sandboxID']}/snapshots", {"name": WORD + "-saved"})["snapshotID"]}


def unlike(value):
    """A value of the same form that stands for nothing."""
    if re.fullmatch(r"sb-?[0-9a-f]+", value):
        prefix = value[:len(value) - len(value.lstrip("sb-"))]
        digits = hashlib.sha256(value.encode()).hexdigest()
        return prefix + digits[:len(value) - len(prefix)]
    if re.fullmatch(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", value):
        digits = hashlib.sha256(value.encode()).hexdigest()
        return "-".join((digits[:8], digits[8:12], "4" + digits[13:16], "8" + digits[17:20], digits[20:32]))
    if re.fullmatch(r"[0-9a-f]{8,}", value):
        return hashlib.sha256(value.encode()).hexdigest()[:len(value)]
    if value.startswith(("vol", "sec")):
        return value[:4] + "".join("abcdefghij"[int(c, 16) % 10] for c in hashlib.sha256(value.encode()).hexdigest())[:len(value) - 4]
    if ":" in value and value.startswith("sb-"):
        return unlike(value.partition(":")[0]) + ":" + value.partition(":")[2]
    if re.fullmatch(r"sb-[0-9a-f]{16}-[0-9a-f]{8}", value):  # a backup
        return unlike(value[:19]) + "-" + unlike(value[20:])
    if value.startswith("build-"):
        return "build-" + unlike(value[6:])
    if re.fullmatch(r"s[0-9a-f]{7}", value):  # a session of the console
        return "s" + unlike(value[1:] + "0")[:7]
    if value == "alice":
        return "erwin"
    assert WORD in value, value
    return value.replace(WORD, "ospreys")


# --- the state of an owner ------------------------------------------------------------------------

CHANGING = {"lastUsedAt", "lastActiveAt", "ageMs", "uptimeMs", "cpuMs", "spaceUsed", "usedBytes", "memoryUsed", "cpuPct",
            "cpuUsedPct", "memUsed", "diskUsed", "memCache", "lastSpawnedAt", "spawnCount", "idleMs", "durationMs", "endAt", "expiresAt"}


def is_of_a_tool(process):
    """git's own processes, by which the tools that only read a repository work, leave records."""
    return process.get("args", [])[:2] == ["git", "--no-pager"] and process.get("state") == "ended"


def steady(value):
    if isinstance(value, list):
        value = [each for each in value if not (isinstance(each, dict) and is_of_a_tool(each))]
    if isinstance(value, dict):
        return {key: steady(each) for key, each in value.items() if key not in CHANGING}
    return [steady(each) for each in value] if isinstance(value, list) else value


def state(client):
    """Everything that an owner has, as far as a client can see it; what changes by itself is left out."""
    found = {}
    boxes = client.must("SandboxService/List")["sandboxes"]
    for name in ("TemplateService/List", "VolumeService/List", "SecretService/List", "RegistryService/List", "TokenService/List", "PortService/List"):
        found[name] = client.must(name)
    for path in ("/v2/sandboxes", "/snapshots", "/templates", "/secrets", "/volumes"):
        found[path] = client.e2b("GET", path).messages
    for box in boxes:
        at = {"sandboxId": box["id"]}
        found[box["id"]] = [box] + [client.must(name, **at) for name in (
            "SandboxService/Get", "ProcessService/List", "ShellService/List", "SnapshotService/List")]
        if box["state"] == "running":
            found[box["id"]].append(client.must("FileService/List", **at, path="/workspace", depth=8))
            found[box["id"]].append(client.must("FileService/List", **at, path="/tmp", depth=8))
    return json.dumps(steady(found), sort_keys=True, indent=1)


def differences(before, after):
    import difflib
    return "\n".join(line for line in difflib.unified_diff(before.splitlines(), after.splitlines(), lineterm="", n=4))[:4000]
