"""The claims of e2b_guard_test: `e2b_guard.py CLAIM`. The daemon is as e2b_control.py has it."""
import base64, http.client, json, os, re, socket, struct, sys, threading
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urlencode

from e2b_control import ask, create, detail, envd, equal, expect, holt, kill, main_token, run, signature, until


def kept():
    return http.client.HTTPConnection("127.0.0.1", int(os.environ["port"]))


def ask_on(connection, verb, path, body=None, **headers):
    """The status of a request on a connection that stays."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    connection.request(verb, path, None if body is None else json.dumps(body), named)
    response = connection.getresponse()
    response.read()
    return response.status


# --- keys --------------------------------------------------------------------------------------------

def a_key_that_was_revoked_is_refused_at_once():
    key = holt("token", "create", "--label", "revoked", "--e2b").strip()
    [id] = [each["id"] for each in json.loads(holt("token", "ls", "-o", "json")) if each.get("label") == "revoked"]
    connection = kept()
    equal(200, ask_on(connection, "GET", "/v2/sandboxes", X_API_KEY=key))
    socket = connection.sock
    equal(200, ask_on(connection, "GET", "/v2/sandboxes", X_API_KEY=key))
    assert connection.sock is socket, "the connection was not kept"
    holt("token", "rm", id)
    equal(401, ask_on(connection, "GET", "/v2/sandboxes", X_API_KEY=key))
    equal(401, ask_on(kept(), "POST", "/v2/sandboxes", {"templateID": "host"}, X_API_KEY=key))


def who_may_only_look_does_nothing():
    looker = holt("token", "create", "--read-only").strip()
    sandbox = create()
    path = "/sandboxes/" + sandbox["sandboxID"]
    built = expect(202, "POST", "/v3/templates", {"name": "guarded"})
    # Its address would be a leave to write.
    expect(403, "GET", f"/templates/{built['templateID']}/files/{'a' * 64}", key=looker)
    expect(201, "GET", f"/templates/{built['templateID']}/files/{'a' * 64}")
    for verb, where in (("POST", "/sandboxes"), ("POST", path + "/pause"), ("POST", path + "/fork"), ("PUT", path + "/network"),
                        ("POST", path + "/snapshots"), ("POST", "/v3/templates"), ("POST", "/volumes"), ("POST", "/secrets"),
                        ("DELETE", "/templates/guarded"), ("POST", path + "/timeout"), ("POST", path + "/refreshes")):
        expect(403, verb, where, {}, key=looker)
    equal(401, envd(sandbox, "POST", "/process.Process/List", token=looker)[0], "a key is no token of a sandbox")
    equal(401, envd(sandbox, "POST", "/process.Process/List", token=main_token())[0])
    shown = json.dumps([expect(200, "GET", each, key=looker) for each in (path, "/v2/sandboxes", "/sandboxes", "/teams", "/templates")])
    assert sandbox["envdAccessToken"] not in shown and main_token() not in shown, shown
    equal("running", detail(sandbox)["state"])
    kill(sandbox)


# --- what is counted ---------------------------------------------------------------------------------

def counted(method, code):
    page = ask("GET", "/metrics", key=None, Authorization="Bearer " + main_token())[2].decode()
    found = [line for line in page.splitlines() if line.startswith(f'holt_rpc_total{{method="{method}",code="{code}"}} ')]
    return int(found[0].split()[-1]) if found else 0


def requests_are_counted_by_what_they_ask():
    wanted = {
        ("e2b.control POST /v2/sandboxes", "ok"): 1,
        ("e2b.control POST /v2/sandboxes", "invalid_argument"): 1,
        ("e2b.control POST /v2/sandboxes", "unauthenticated"): 1,
        ("e2b.control GET /sandboxes/{}", "not_found"): 2,
        ("e2b.envd GET /health", "ok"): 1,
        ("e2b.envd POST /filesystem.Filesystem/Stat", "not_found"): 1,
        ("e2b.envd POST /process.Process/Start", "ok"): 1,
        ("e2b.envd POST /process.Process/Start", "invalid_argument"): 1,
        ("e2b.port * /*", "unavailable"): 1,
    }
    before = {each: counted(*each) for each in wanted}
    sandbox = create()
    expect(400, "POST", "/v2/sandboxes", {})
    expect(401, "POST", "/v2/sandboxes", {}, key="wrong")
    for id in ("nosuch", 'a"}\n'):
        expect(404, "GET", "/sandboxes/" + id.replace('"', "%22").replace("\n", "%0a"))
    equal(204, envd(sandbox)[0])
    status, _, body = ask("POST", "/filesystem.Filesystem/Stat", {"path": "/nosuch"}, None, E2b_Sandbox_Id=sandbox["sandboxID"],
                          X_Access_Token=sandbox["envdAccessToken"])
    equal((404, "not_found"), (status, body["code"]))
    for wishes in ({}, {"cwd": "/nosuch"}):
        sock, _ = start(sandbox, "true", "Connection: close", **wishes)
        while sock.recv(65536):
            pass
        sock.close()
    equal(502, ask("GET", "/", None, None, E2b_Sandbox_Id=sandbox["sandboxID"], E2b_Sandbox_Port="3000")[0])
    kill(sandbox)
    # A request is counted when it is over, which may be after its client has read all of the answer.
    until(lambda: all(counted(*each) >= before[each] + wanted[each] for each in wanted))
    equal({each: before[each] + wanted[each] for each in wanted}, {each: counted(*each) for each in wanted})
    page = ask("GET", "/metrics", key=None, Authorization="Bearer " + main_token())[2].decode()
    assert 'holt_rpc_duration_seconds_count{method="e2b.control POST /v2/sandboxes"}' in page
    assert "nosuch" not in page


# --- connections -------------------------------------------------------------------------------------

def one_client_may_have_many_connections():
    """As many as E2B's client has in one process: 100 for its API, 200 for commands, 10 for files."""
    sandbox = create()
    connections = [kept() for _ in range(310)]
    sockets = []
    for _ in range(2):
        for each in connections:
            equal(204, ask_on(each, "GET", "/health", E2b_Sandbox_Id=sandbox["sandboxID"],
                              X_Access_Token=sandbox["envdAccessToken"]))
        sockets.append([each.sock for each in connections])
    assert all(a is b for a, b in zip(*sockets)), "some were cut"
    for each in connections:
        each.close()
    kill(sandbox)


# --- whom it is for ----------------------------------------------------------------------------------

def raw(*lines):
    """The status of a request whose header is exactly this."""
    with socket.create_connection(("127.0.0.1", int(os.environ["port"]))) as sock, sock.makefile("rb") as stream:
        sock.sendall("\r\n".join([*lines, "Connection: close", "", ""]).encode())
        return int(stream.readline().split()[1])


def a_request_is_for_one_sandbox():
    mine, other = create(), create()
    line, host, token = "GET /envs HTTP/1.1", "Host: localhost", "X-Access-Token: " + mine["envdAccessToken"]
    ids = ["E2b-Sandbox-Id: " + each["sandboxID"] for each in (mine, other)]
    equal(200, raw(line, host, ids[0], token))
    equal(401, raw(line, host, ids[1], token), "the token of another sandbox")
    equal(400, raw(line, host, *ids, token))
    equal(400, raw(line, host, *ids[::-1], token))
    equal(400, raw(line, host, ids[0], "E2b-Sandbox-Port: 49983", "e2b-sandbox-port: 22", token))
    for port in ("0", "-1", "+49983", "65536", "", "0x50", "49983,22"):
        equal(400, raw(line, host, ids[0], "E2b-Sandbox-Port: " + port, token), port)
    equal(502, raw(line, host, ids[0], "E2b-Sandbox-Port: " + os.environ["port"]), "the daemon's own port is not inside")
    equal(401, raw("GET /v2/sandboxes HTTP/1.1", host, "X-API-KEY: " + mine["envdAccessToken"]))
    kill(mine)
    kill(other)


def a_signature_is_for_what_was_signed():
    sandbox = create()
    token = sandbox["envdAccessToken"]

    def get(path, signed, **query):
        return ask("GET", "/files?" + urlencode({"path": path, "signature": signed, **query}), key=None)[0]

    equal(200, get("/etc/hostname", signature(token, "/etc/hostname")))
    equal(401, get("/etc/passwd", signature(token, "/etc/hostname")))
    for gone in ("1", "-1", "+99999999999", "9" * 30, "soon", ""):
        equal(401, get("/etc/hostname", signature(token, "/etc/hostname", expiration=gone), signature_expiration=gone), gone)
    equal(401, get("/etc/hostname", signature(token, "/etc/hostname", expiration="1")), "its end was taken away")
    # A leave to read "/tmp/a:write:root" is none to write "/tmp/a".
    query = urlencode({"path": "/tmp/a", "username": "root:read:", "signature": signature(token, "/tmp/a:write:root")})
    status, _, body = ask("POST", "/files?" + query, "x", key=None)
    equal((401, "invalid signature"), (status, body["message"]))
    kill(sandbox)


def pages_of_browsers_stay_outside():
    sandbox = create()
    key, id = "X-API-KEY: e2b_" + main_token(), "E2b-Sandbox-Id: " + sandbox["sandboxID"]
    for origin in ("http://evil.test", "null", "http://localhost", "http://127.0.0.1:" + os.environ["port"]):
        equal(403, raw("GET /v2/sandboxes HTTP/1.1", "Host: localhost", key, "Origin: " + origin), origin)
        equal(403, raw("GET /health HTTP/1.1", "Host: localhost", id, "Origin: " + origin), origin)
    for host in ("evil.test", "api.evil.test", f"49983-{sandbox['sandboxID']}.evil.test", "localhost.evil.test"):
        equal(403, raw("GET /v2/sandboxes HTTP/1.1", "Host: " + host, key), host)
        equal(403, raw("GET /health HTTP/1.1", "Host: " + host, id), host)
        equal(403, raw("GET / HTTP/1.1", "Host: " + host, id, "E2b-Sandbox-Port: 3000"), host)
    kill(sandbox)


# --- those who stay ----------------------------------------------------------------------------------

def start(sandbox, command, *headers, **wishes):
    """A process, on a connection that is read up to its start or its error."""
    message = json.dumps({"process": {"cmd": "/bin/sh", "args": ["-c", command], **wishes}, "stdin": True}).encode()
    sock = socket.create_connection(("127.0.0.1", int(os.environ["port"])))
    sock.sendall("\r\n".join(["POST /process.Process/Start HTTP/1.1", "Host: localhost", "E2b-Sandbox-Id: " + sandbox["sandboxID"],
                              "X-Access-Token: " + sandbox["envdAccessToken"], "Content-Type: application/connect+json",
                              f"Content-Length: {len(message) + 5}", *headers, "", ""]).encode())
    sock.sendall(b"\0" + struct.pack(">I", len(message)) + message)
    received = b""
    while b'{"start"' not in received and b'"error"' not in received:
        data = sock.recv(65536)
        assert data, received
        received += data
    return sock, received


def a_late_call_starts_nothing():
    sandbox = create()
    sock, received = start(sandbox, "touch /tmp/started", "Connect-Timeout-Ms: 0")
    assert b'"deadline_exceeded"' in received, received
    sock.close()
    equal("no\n", run(sandbox, "test -e /tmp/started || echo no"))
    kill(sandbox)


def threads():
    return len(os.listdir(f"/proc/{os.environ['holtd_pid']}/task"))


def input_that_nobody_reads_keeps_nobody():
    sandbox = create()
    process, received = start(sandbox, "exec sleep 1000000")
    pid = int(re.search(rb'"pid":(\d+)', received)[1])
    before = threads()  # and whoever has not quite gone yet
    body = json.dumps({"process": {"pid": pid}, "input": {"stdin": base64.b64encode(bytes(2000000)).decode()}})
    waiting = [kept() for _ in range(20)]
    for each in waiting:
        each.request("POST", "/process.Process/SendInput", body, {"E2b-Sandbox-Id": sandbox["sandboxID"],
                     "X-Access-Token": sandbox["envdAccessToken"], "Content-Type": "application/json"})
    until(lambda: threads() >= before + 10)
    for each in waiting:
        each.close()
    until(lambda: threads() <= before + 5)  # of the daemon itself, or of who comes and goes
    process.close()
    kill(sandbox)


def call(sandbox, method, message):
    status, _, body = ask("POST", "/filesystem.Filesystem/" + method, message, None, E2b_Sandbox_Id=sandbox["sandboxID"],
                          X_Access_Token=sandbox["envdAccessToken"])
    return status, body


def a_watcher_that_goes_takes_nobody_with_it():
    """Others open and close descriptors of the daemon meanwhile, and keep theirs."""
    sandbox, is_over = create(), threading.Event()

    def come_and_go():
        while not is_over.is_set():
            equal(204, envd(sandbox)[0])
            equal(200, call(sandbox, "Stat", {"path": "/"})[0])

    with ThreadPoolExecutor(8) as pool:
        others = [pool.submit(come_and_go) for _ in range(4)]
        try:
            for _ in range(100):
                made = [call(sandbox, "CreateWatcher", {"path": "/tmp", "recursive": True}) for _ in range(3)]
                for status, body in made:
                    equal(200, status, body)
                    equal(200, call(sandbox, "RemoveWatcher", {"watcherId": body["watcherId"]})[0])
        finally:
            is_over.set()
        for each in others:
            each.result()
    kill(sandbox)


# --- what is kept for those who do not read ------------------------------------------------------------

def who_does_not_read_a_file_is_cut_before_those_who_wait():
    """Who is in a call is never cut; this one is, as its time runs out before that of who has been served."""
    sandbox = create()
    run(sandbox, "truncate -s 100M /tmp/big")
    stalled = kept()
    stalled.request("GET", "/files?path=/tmp/big", None, {"E2b-Sandbox-Id": sandbox["sandboxID"],
                    "X-Access-Token": sandbox["envdAccessToken"]})
    response = stalled.getresponse()
    equal(200, response.status)
    others = []
    for _ in range(650):
        others.append(kept())
        equal(200, ask_on(others[-1], "GET", "/v2/sandboxes", X_API_KEY="e2b_" + main_token()))
    received = 0
    try:
        while data := response.read(1 << 20):
            received += len(data)
    except ConnectionResetError:
        pass
    assert received < 100 << 20, "it was not cut"
    for each in others:
        each.close()
    kill(sandbox)


def events_that_nobody_asks_for_are_bounded():
    sandbox = create()
    run(sandbox, "mkdir /tmp/w")
    made = [call(sandbox, "CreateWatcher", {"path": "/tmp/w"})[1]["watcherId"] for _ in range(12)]
    # More than 12 MiB in all.
    run(sandbox, "cd /tmp/w; name=$(printf 'x%.0s' $(seq 240)); for i in $(seq 2000); do : >$name$i; done")
    last = call(sandbox, "CreateWatcher", {"path": "/tmp/w"})[1]["watcherId"]
    bytes = [len(json.dumps(call(sandbox, "GetWatcherEvents", {"watcherId": each})[1])) for each in made]
    assert 3 << 20 < sum(bytes) < 6 << 20, bytes
    # What was asked for makes room again.
    run(sandbox, "touch /tmp/w/last")
    seen = []
    until(lambda: seen.extend(call(sandbox, "GetWatcherEvents", {"watcherId": last})[1]["events"]) or
          {"name": "last", "type": "EVENT_TYPE_CREATE"} in seen)
    kill(sandbox)


def a_watch_that_cannot_begin_ends_with_its_client():
    """Its worker is stopped from inside, so that it never answers."""
    sandbox = create()
    call(sandbox, "CreateWatcher", {"path": "/tmp"})
    run(sandbox, "for p in /proc/[0-9]*; do [ ${p#/proc/} = 1 ] || [ ${p#/proc/} = $$ ] || kill -STOP ${p#/proc/}; done 2>/dev/null; :")
    before = threads()
    waiting = [kept() for _ in range(30)]  # others come and go meanwhile
    for each in waiting:
        each.request("POST", "/filesystem.Filesystem/CreateWatcher", '{"path": "/tmp"}', {"E2b-Sandbox-Id": sandbox["sandboxID"],
                     "X-Access-Token": sandbox["envdAccessToken"], "Content-Type": "application/json"})
    until(lambda: threads() >= before + 20)
    for each in waiting:
        each.close()
    until(lambda: threads() <= before + 10)
    kill(sandbox)


if __name__ == "__main__":
    globals()[sys.argv[1]]()
