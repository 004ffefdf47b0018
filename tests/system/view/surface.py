"""The claims of surface_test: `surface.py SURFACE`. For each level a surface reads, writes, lists, makes, moves and removes.
The levels are those of the environment; without write, nothing can be written anywhere."""
import http.client, json, os, socket, struct, subprocess, sys
from urllib.parse import urlencode

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "e2b"))

ID, TOP = os.environ["id"], "/workspace"
LEVELS = os.environ["levels"].split()
DENIED, ABSENT, DONE = "denied", "absent", "done"


def wanted(operation, level):
    """What the table of docs/permissions.md says."""
    if operation == "list":  # of the directory that has the files
        return DONE
    if operation == "stat":
        return ABSENT if level == "none" else DONE
    if operation == "read":
        return {"none": ABSENT, "view": DENIED}.get(level, DONE)
    if operation in ("make", "write"):  # a hidden name cannot be made
        return DONE if level == "write" else DENIED
    return DONE if level == "write" else ABSENT if level == "none" else DENIED


def check(surface, operation, level, got, *of):
    assert got == wanted(operation, level), f"{surface}: {operation} at level {level}: {got} instead of {wanted(operation, level)} {of!r:.600}"


def kind_of(text):
    text = text.lower()
    if "not exist" in text or "no such" in text or "not found" in text or "not_found" in text:
        return ABSENT
    if "denied" in text:
        return DENIED
    raise AssertionError("neither denied nor absent: " + text[:500])


def holt(*words, data=None):
    result = subprocess.run(["holt", *words], input=data, capture_output=True)
    return result.returncode, result.stdout.decode(), result.stderr.decode()


def outcome(status, out, error):
    return (DONE if status == 0 else kind_of(error + out)), out + error


def each_level():
    for level in LEVELS:
        yield level, f"{TOP}/{level}"


def truth():
    """What is there, whatever the rules: nothing protected may have changed."""
    changes = holt("changes", ID)[1]
    for level in ("none", "view", "read"):
        assert f"/{level}/" not in changes, changes
    for name in (".env", "hidden"):
        assert name not in changes, changes


# --- tools and MCP ------------------------------------------------------------------------------

def tool_by_cli(name, **params):
    status, out, error = holt("tool", ID, name, *(f"{key}={value}" for key, value in params.items()))
    return status == 0, out + error


def tools_table(surface, call):
    def result(is_good, text):
        return DONE if is_good else kind_of(text)

    for level, top in each_level():
        good, text = call("read_file", path=top + "/file")
        check(surface, "read", level, result(good, text), text)
        assert (f"text of {level}" in text) == (level == "read") or level == "write", text
        if level == "view":
            assert "'/view/**=view@1'" in text, text
        good, text = call("write_file", path=top + "/file", content="new")
        check(surface, "write", level, result(good, text), text)
        if level in ("view", "read"):
            assert f"by rule '/{level}/**={level}@1'" in text, text
        if level == "none":
            assert "rule" not in text, text
        good, text = call("write_file", path=top + "/new", content="new")
        check(surface, "make", level, result(good, text), text)
        good, text = call("list_dir", path=top)
        check(surface, "list", level, result(good, text), text)
        if level != "write":
            good, text = call("edit_file", path=top + "/other", old_string="text", new_string="no")
            assert not good and ("rule" in text) == (level != "none"), text
    good, text = call("list_dir", path=TOP, depth=3)
    assert good and "none/f" not in text and "read/file" in text and "view/file" in text, text
    good, text = call("grep", pattern="text of", path=TOP, mode="files")
    assert good and "read/file" in text and "none/" not in text and ("view" not in LEVELS or "\nview/" not in text), text
    good, text = call("glob", pattern="**/file", path=TOP)
    assert good and "view/file" in text and "none/" not in text, text
    # What is hidden is as if it were not there: the same words as for a name that nothing has.
    hidden, missing = call("read_file", path=f"{TOP}/none/file")[1], call("read_file", path=f"{TOP}/free/absent")[1]
    assert hidden.replace(f"{TOP}/none/file", "") == missing.replace(f"{TOP}/free/absent", ""), (hidden, missing)


def tools():
    tools_table("tools", tool_by_cli)


class Mcp:
    def __init__(self):
        self.process = subprocess.Popen(["holt", "mcp", "--sandbox", ID], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.count = 0
        self.ask("initialize", {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}})

    def ask(self, method, params):
        self.count += 1
        self.process.stdin.write(json.dumps({"jsonrpc": "2.0", "id": self.count, "method": method, "params": params}) + "\n")
        self.process.stdin.flush()
        while True:
            reply = json.loads(self.process.stdout.readline())
            if reply.get("id") == self.count:
                return reply

    def __call__(self, name, **params):
        result = self.ask("tools/call", {"name": name, "arguments": params})["result"]
        return not result.get("isError"), "".join(each.get("text", "") for each in result["content"])


def mcp():
    call = Mcp()
    try:
        tools_table("mcp", call)
    finally:
        call.process.stdin.close()
        call.process.wait()


# --- holt cp ------------------------------------------------------------------------------------

def cp():
    local = os.path.join(os.environ["tmp"], "local")
    open(local, "w").write("new")
    for level, top in each_level():
        got, text = outcome(*holt("cp", f"{ID}:{top}/other", "-"))
        check("cp", "read", level, got, text)
        check("cp", "write", level, outcome(*holt("cp", local, f"{ID}:{top}/file"))[0])
        check("cp", "make", level, outcome(*holt("cp", local, f"{ID}:{top}/copied"))[0])
    out = os.path.join(os.environ["tmp"], "out")
    status, _, error = holt("cp", f"{ID}:{TOP}/.", out)
    names = {os.path.relpath(os.path.join(at, name), out) for at, _, files in os.walk(out) for name in files}
    assert not any(name.startswith("none/") for name in names), names
    assert "view" not in LEVELS or "view/file" not in names and (status == 0 or "view" in error), (status, error, names)


# --- the file API -------------------------------------------------------------------------------

class Unix(http.client.HTTPConnection):
    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(os.environ["socket"])


def service(method, messages, stream=False):
    """Outcome and replies of a call of FileService."""
    connection = Unix("localhost")
    texts = [json.dumps(each).encode() for each in messages]
    body = b"".join(struct.pack(">BI", 0, len(text)) + text for text in texts) if stream else texts[0]
    connection.request("POST", "/holt.v1.FileService/" + method, body, {"Content-Type": "application/connect+json" if stream else "application/json"})
    response = connection.getresponse()
    data = response.read()
    connection.close()
    if not stream:
        reply = json.loads(data)
        return (DONE if response.status == 200 else kind_of(reply["code"] + " " + reply["message"])), reply
    replies, error = [], None
    while data:
        flags, size = struct.unpack(">BI", data[:5])
        message, data = json.loads(data[5:5 + size]), data[5 + size:]
        if flags & 2:
            error = message.get("error")
        else:
            replies.append(message)
    return (kind_of(error["code"] + " " + error["message"]) if error else DONE), replies


def file_api():
    for level, top in each_level():
        def unary(method, **fields):
            return service(method, [{"sandboxId": ID, **fields}])
        check("file API", "stat", level, *unary("Stat", path=top + "/file"))
        check("file API", "list", level, *unary("List", path=top))
        check("file API", "read", level, *service("Read", [{"sandboxId": ID, "path": top + "/other"}], True))
        for atomic in (False, True):
            start = {"sandboxId": ID, "path": top + "/file", "atomic": atomic}
            check("file API", "write", level, *service("Write", [start, {"data": "bmV3"}], True))
        check("file API", "make", level, *unary("MakeDir", path=top + "/made"))
        check("file API", "move", level, *unary("Move", path=top + "/other", to=f"{TOP}/free/{level}"))
        check("file API", "remove", level, *unary("Remove", path=top + "/file"))
        check("file API", "make", level, *unary("Move", path=f"{TOP}/free/file", to=top + "/moved"))
        if level == "write":
            assert unary("Move", path=top + "/moved", to=f"{TOP}/free/file")[0] == DONE
            assert unary("Move", path=f"{TOP}/free/{level}", to=top + "/other")[0] == DONE
            assert service("Write", [{"sandboxId": ID, "path": top + "/file"}, {"data": "bmV3"}], True)[0] == DONE
    listed = service("List", [{"sandboxId": ID, "path": TOP, "depth": 10}])[1]
    paths = [each["path"] for each in listed["entries"]]
    assert any("view/file" in path for path in paths) and not any("/none/" in path for path in paths), paths
    got, replies = service("Pull", [{"sandboxId": ID, "path": TOP}], True)
    assert "none/" not in json.dumps(replies)


def plain():
    """Files over plain HTTP, as the console has them."""
    token = open(os.path.join(os.environ["state"], "token")).read().strip()
    for level, top in each_level():
        for verb, operation in (("GET", "read"), ("PUT", "write")):
            connection = http.client.HTTPConnection("127.0.0.1", int(os.environ["port"]))
            connection.request(verb, "/holt.v1/file?" + urlencode({"sandbox": ID, "path": top + "/file"}), b"new" if verb == "PUT" else None, {"Authorization": "Bearer " + token})
            response = connection.getresponse()
            text = response.read().decode()
            check("plain HTTP", operation, level, DONE if response.status < 300 else kind_of(text), response.status, text)


# --- E2B ----------------------------------------------------------------------------------------

def e2b():
    from e2b_control import expect
    sandbox = expect(200, "POST", f"/sandboxes/{ID.replace('-', '')}/connect", {"timeout": 300})
    headers = {"E2b-Sandbox-Id": sandbox["sandboxID"], "E2b-Sandbox-Port": "49983", "X-Access-Token": sandbox["envdAccessToken"],
               "Authorization": "Basic cm9vdDo="}

    def ask(verb, path, body, kind):
        connection = http.client.HTTPConnection("127.0.0.1", int(os.environ["port"]))
        connection.request(verb, path, body, {**headers, "Content-Type": kind})
        response = connection.getresponse()
        text = response.read().decode()
        connection.close()
        return (DONE if response.status < 300 else kind_of(text)), text

    def call(method, **message):
        return ask("POST", "/filesystem.Filesystem/" + method, json.dumps(message), "application/json")

    for level, top in each_level():
        query = urlencode({"path": top + "/file", "username": "root"})
        check("E2B", "read", level, *ask("GET", "/files?" + query, None, "text/plain"))
        check("E2B", "write", level, *ask("POST", "/files?" + query, b"new", "application/octet-stream"))
        check("E2B", "stat", level, *call("Stat", path=top + "/file"))
        check("E2B", "list", level, *call("ListDir", path=top, depth=1))
        check("E2B", "make", level, *call("MakeDir", path=top + "/made-e2b"))
        check("E2B", "move", level, *call("Move", source=top + "/other", destination=f"{TOP}/free/e2b-{level}"))
        if level != "none":  # removing what is not there succeeds, as in envd
            check("E2B", "remove", level, *call("Remove", path=top + "/file"))
    assert "none/" not in call("ListDir", path=TOP, depth=5)[1]


# --- shells -------------------------------------------------------------------------------------

def shells():
    def run(command):
        return outcome(*holt("sh", ID, "main", f"cd {TOP} && {command}"))

    if "write" in LEVELS:
        assert run(f"mkdir -p write && echo a | tee write/file write/other >/dev/null")[0] == DONE
    for level in LEVELS:
        check("shells", "stat", level, *run(f"ls -ld {level}/file"))
        check("shells", "list", level, *run(f"ls {level}"))
        check("shells", "read", level, *run(f"cat {level}/file"))
        check("shells", "write", level, *run(f"echo new >{level}/file"))
        check("shells", "make", level, *run(f"mkdir {level}/made-here"))
        check("shells", "make", level, *run(f"ln -s x {level}/link"))
        check("shells", "move", level, *run(f"mv {level}/other free/moved-{level}"))
        check("shells", "remove", level, *run(f"rm -f {level}/file && ! ls {level}/file 2>/dev/null") if level not in ("none",) else (ABSENT, ""))
    assert run("ls none")[1] == "" and "made" not in run("ls read view")[1]
    # Completion and globs see no more than ls does.
    others = [] if "write" in LEVELS else ["write/file"]
    assert run("echo */file")[1].split() == ["free/file", "read/file", "view/file"] + others, run("echo */file")


globals()[sys.argv[1]]()
truth()
