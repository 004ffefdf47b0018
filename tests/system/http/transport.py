"""The claims of transport_test that speak HTTP themselves: `transport.py CLAIM`.

The daemon is at $HOLT_HOST (a unix socket) and at $port on loopback; $state is its state directory,
$holtd its pid, $id a sandbox of its own."""
import glob, json, os, re, resource, socket, struct, sys, threading, time

from api import Connection, Refused, call, equal, start

REPO = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..")
ID = os.environ.get("id")


def main_token():
    return open(os.path.join(os.environ["state"], "token")).read().strip()


def tcp():
    return socket.create_connection(("127.0.0.1", int(os.environ["port"])))


def local():
    sock = socket.socket(socket.AF_UNIX)
    sock.connect(os.environ["HOLT_HOST"].removeprefix("unix://"))
    return sock


def read_all(sock):
    received = b""
    while more := sock.recv(65536):
        received += more
    return received


def request(path, verb="POST", body=b"{}", kind="application/json", **headers):
    named = {"Host": "localhost", "Content-Type": kind, "Content-Length": str(len(body)), "Connection": "close"}
    named.update({name.replace("_", "-"): value for name, value in headers.items()})
    head = "".join(f"{name}: {value}\r\n" for name, value in named.items() if value is not None)
    return f"{verb} {path} HTTP/1.1\r\n{head}\r\n".encode() + body


def ask(sock, *args, **headers):
    """Status, headers without the date, and body of one request."""
    sock.sendall(request(*args, **headers))
    head, _, body = read_all(sock).partition(b"\r\n\r\n")
    lines = head.decode().split("\r\n")
    return int(lines[0].split()[1]), [line for line in lines if not line.startswith("Date:")], body


def envelope(fields):
    text = json.dumps(fields).encode()
    return struct.pack(">BI", 0, len(text)) + text


def last_error(body):
    """The error that ends a stream, whose body may be chunked."""
    found = re.findall(rb'\{"error":(\{.*\})\}', body, re.S)
    return json.loads(found[-1]) if found else None


def methods():
    """(path, takes a stream or gives one) of every method of the contract."""
    for name in sorted(glob.glob(os.path.join(REPO, "proto/holt/v1/*.proto"))):
        service = None
        for line in open(name):
            if found := re.match(r"service (\w+)", line):
                service = found[1]
            if found := re.match(r"\s*rpc (\w+)\((.*)\) returns \((.*)\)", line):
                yield f"/holt.v1.{service}/{found[1]}", "stream " in found[2] + found[3]


# --- who is let in ------------------------------------------------------------------------------


def a_stranger_learns_nothing():
    wrong = [None, "", "Bearer", "Bearer ", "Bearer x", "Bearer " + main_token()[:-1], "Basic " + main_token(),
             "Bearer " + main_token()[:-1] + "g", main_token(), "Bearer " + "holt_" + 64 * "0", "Bearer " + 5000 * "a"]
    paths = ["/holt.v1.HostService/Health", "/holt.v1.SandboxService/Run", "/metrics", "/nothing", "/healthz/x"]
    seen = {False: set(), True: set()}  # RFC 6750: only a bearer token, which is wrong, is called so
    for token in wrong:
        for path in paths:
            for verb in ("POST", "GET", "PUT", "DELETE", "OPTIONS"):
                status, head, body = ask(tcp(), path, verb, Authorization=token)
                seen["invalid_token" in "".join(head)].add((status, "\n".join(head), body))
    equal([1, 1], [len(replies) for replies in seen.values()])
    for status, head, body in (replies.pop() for replies in seen.values()):
        equal(401, status)
        names = sorted(line.split(":")[0].lower() for line in head.split("\n")[1:])
        equal(["connection", "content-length", "content-type", "www-authenticate"], names)
        equal("unauthenticated", json.loads(body)["code"])


def a_body_of_a_stranger_is_not_read_to_its_end():
    sock = tcp()
    sock.sendall(request("/holt.v1.HostService/Health", body=b"", Content_Length=str(1 << 40)))
    try:
        for _ in range(256):
            sock.sendall(bytes(65536))
    except (BrokenPipeError, ConnectionResetError):
        return
    raise AssertionError("16 MiB were taken")


def health_is_for_everybody_and_says_nothing():
    for sock in (tcp(), local()):
        status, head, body = ask(sock, "/healthz", "GET")
        equal((200, b"ok\n"), (status, body))


def the_main_token_opens_everything():
    status, _, body = ask(tcp(), "/holt.v1.HostService/Health", Authorization="bearer " + main_token())
    equal(200, status)
    status, _, body = ask(tcp(), "/holt.v1.TokenService/List", Authorization="Bearer " + main_token())
    equal(200, status)


# What a method may be called that changes nothing. Whoever adds one to a route says so here too.
LOOKS = {"Get", "List", "Wait", "Attach", "Diff", "Health", "Audit", "Capabilities", "Metrics", "Stats", "Stat", "Read",
         "Pull", "Watch", "WatchStats", "Execute", "ExecuteStream", "ReadOutput", "Log", "Test", "History",
         "GetTemplate", "Usage", "Why", "Tree", "CreateLogin"}  # the last one opens the console with the rights of the token


def a_token_that_may_only_look_changes_nothing():
    token = call("TokenService/Create", label="eyes", readOnly=True)["secret"]
    before = call("SandboxService/List"), call("TokenService/List")["tokens"][-1]["id"]
    allowed, denied = [], []
    for path, is_stream in methods():
        kind = "application/connect+json" if is_stream else "application/json"
        # Not even looked at: it is no JSON, and not all of it comes.
        sock = tcp()
        sock.sendall(request(path, body=b"nonsense", kind=kind, Authorization="Bearer " + token))
        body = read_all(sock).partition(b"\r\n\r\n")[2]
        error = last_error(body) if is_stream else json.loads(body)
        assert error, (path, body)
        is_denied = error["code"] == "permission_denied" and error["message"].startswith(
            ("this token is read-only", "this method concerns the whole host"))
        assert is_denied or error["code"] in ("invalid_argument", "unimplemented"), (path, error)
        (denied if is_denied else allowed).append(path)
    assert len(denied) > 15, denied
    for path in allowed:
        service, name = path.split("/")[1:]
        assert name in LOOKS and service != "holt.v1.TokenService", f"{path} was let in"
    for path in ("SandboxService/Create", "ProcessService/Exec", "TokenService/Create", "TokenService/List"):
        assert "/holt.v1." + path in denied, path
    equal(before[0], call("SandboxService/List"))
    equal(200, ask(tcp(), "/holt.v1.HostService/Health", Authorization="Bearer " + token)[0])
    process = start(ID, "sleep", "1000")["process"]["id"]
    for flow, wanted in ((True, "permission_denied"), (False, None)):
        body = ask(tcp(), "/holt.v1.ProcessService/Attach", kind="application/connect+json",
                   Authorization="Bearer " + token,
                   body=envelope({"sandboxId": ID, "processId": process, "flow": flow}))[2]
        equal(wanted, (last_error(body) or {}).get("code"))
    call("TokenService/Remove", id=before[1])
    equal(401, ask(tcp(), "/holt.v1.HostService/Health", Authorization="Bearer " + token)[0])


def tokens_are_kept_as_hashes_and_expire():
    made = call("TokenService/Create", label="long", ttlMs="3600000")
    secret = made["secret"]
    assert re.fullmatch("holt_[0-9a-f]{64}", secret), secret
    equal(200, ask(tcp(), "/holt.v1.HostService/Health", Authorization="Bearer " + secret)[0])
    listed = [token for token in call("TokenService/List")["tokens"] if token["id"] == made["token"]["id"]]
    assert listed[0]["lastUsedAt"] and secret not in json.dumps(listed), listed
    tokens = os.path.join(os.environ["state"], "tokens")
    name = os.path.join(tokens, made["token"]["id"])
    equal(0o600, os.stat(name).st_mode & 0o777)
    text = open(name).read()
    assert secret not in text and secret[5:] not in text and made["token"]["id"] in text
    made = call("TokenService/Create", label="short", ttlMs="400")
    secret = made["secret"]
    while any(token["id"] == made["token"]["id"] for token in call("TokenService/List")["tokens"]):
        time.sleep(0.05)
    equal(401, ask(tcp(), "/holt.v1.HostService/Health", Authorization="Bearer " + secret)[0])
    call("TokenService/Create", ttlMs="1000")
    assert made["token"]["id"] not in os.listdir(tokens), "an expired token is swept out"


def streams_end_with_their_token():
    process = call("ProcessService/Start", sandboxId=ID, process={"args": ["sleep", "1000"]})["process"]["id"]
    streams = [("EventService/Watch", {}, {}), ("ProcessService/Attach", {"sandboxId": ID, "processId": process, "follow": True}, {}),
               ("ProcessService/Attach", {"sandboxId": ID, "processId": process, "follow": True}, {"Upgrade": "holt-stream/1", "Connection": "Upgrade"})]
    made = call("TokenService/Create", label="streams"), call("TokenService/Create", ttlMs="3000")
    for token in made:
        socks = []
        for method, fields, headers in streams:
            sock = tcp()
            sock.sendall(request("/holt.v1." + method, body=envelope(fields), kind="application/connect+json",
                                 Authorization="Bearer " + token["secret"], **headers))
            equal(b"HTTP/1.1 ", sock.recv(9))
            socks.append(sock)
        if token is made[0]:
            call("TokenService/Remove", id=token["token"]["id"])
        for (method, _, _), sock in zip(streams, socks):
            body = read_all(sock)  # until the daemon ends it: the token is the only reason
            assert b'"unauthenticated"' in body, (method, body)
    call("ProcessService/Signal", sandboxId=ID, processId=process, signal=9)


def names_and_origins_are_checked():
    auth = "Bearer " + main_token()
    health = "/holt.v1.HostService/Health"
    for host in ("127.0.0.1", "127.0.0.1:7070", "localhost", "LOCALHOST:1", "[::1]", "[::1]:99", "10.1.2.3:80",
                 "holt.test", "Other.Test:80"):
        equal((host, 200), (host, ask(tcp(), health, Authorization=auth, Host=host)[0]))
    for host in ("evil.example", "evil.example:7070", "127.0.0.1.evil.example", "localhost.evil.example", "holt.tes",
                 "xholt.test", "[::1", "", "127.0.0.1@evil.example"):
        for path in (health, "/healthz", "/nothing"):
            equal((host, 403), (host, ask(tcp(), path, Authorization=auth, Host=host)[0]))
    for origin in ("http://evil.example", "null", "https://127.0.0.1", "https://page.test:1", "page.test"):
        for sock in (tcp(), local()):
            equal((origin, 403), (origin, ask(sock, health, Authorization=auth, Origin=origin)[0]))
    equal(200, ask(tcp(), health, Authorization=auth, Origin="https://page.test")[0])
    equal(200, ask(local(), health, Host="evil.example")[0])


# --- deadlines ----------------------------------------------------------------------------------


def late(method, ms=200, is_stream=False, **fields):
    """That the call ends with deadline_exceeded; returns all that was answered before."""
    kind = "application/connect+json" if is_stream else "application/json"
    body = envelope(fields) if is_stream else json.dumps(fields).encode()
    status, head, body = ask(local(), "/holt.v1." + method, body=body, kind=kind, Connect_Timeout_Ms=str(ms),
                             Connection="close" if is_stream else "keep-alive")
    equal(200 if is_stream else 504, status)
    error = last_error(body) if is_stream else json.loads(body)
    equal("deadline_exceeded", error["code"])
    if not is_stream:
        assert "Connection: close" in head, head
    return body


def late_but_started(method, ms=200, **fields):
    """The same, with the process that it had begun by then, for which there may have been too little time."""
    while not (found := re.search(rb'"processId":"(\w+)"', late(method, ms, is_stream=True, **fields))):
        ms *= 4
    return found[1].decode()


def gone(process):
    while any(each["id"] == process and each["state"].endswith("RUNNING")
              for each in call("ProcessService/List", sandboxId=ID)["processes"]):
        time.sleep(0.02)


def where_a_request_ends_is_never_in_doubt():
    """What one reader takes for a body and another for a request is refused, and nothing behind it is looked at."""
    behind = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
    for doubt in ("Content-Length: 4\r\nTransfer-Encoding: chunked", "Content-Length: 2\r\nContent-Length: 9",
                  "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked", "Content-Length: 2\r\nHost: other.test"):
        body = b"2\r\n{}\r\n0\r\n\r\n" if "chunked" in doubt else b"{}"
        sock = tcp()
        sock.sendall(f"POST /holt.v1.HostService/Health HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {main_token()}"
                     f"\r\nContent-Type: application/json\r\n{doubt}\r\n\r\n".encode() + body + behind)
        equal((doubt, ["400"]), (doubt, re.findall("HTTP/1.1 ([0-9]+) ", read_all(sock).decode())))


def calls_that_wait_end_at_their_deadline():
    process = start(ID, "sleep", "1000")["process"]["id"]
    late("ProcessService/Wait", sandboxId=ID, processId=process)
    late("ProcessService/Attach", is_stream=True, sandboxId=ID, processId=process, follow=True)
    gone(late_but_started("ProcessService/Exec", sandboxId=ID, process={"args": ["sleep", "1000"]}))
    late("ShellService/Run", is_stream=True, sandboxId=ID, name="main", command="sleep 1000")
    late("ProcessService/Launch", sandboxId=ID, process={"args": ["sleep", "1000"]}, port=99,
         ready={"timeoutMs": "100000"})
    late("PortService/Forward", is_stream=True, sandboxId=ID, port=99)
    late("EventService/Watch", is_stream=True)
    late("FileService/Watch", is_stream=True, sandboxId=ID, path="/tmp")
    late("SandboxService/WatchStats", is_stream=True, intervalMs="3600000")
    # One that never stops talking.
    gone(late_but_started("ProcessService/Exec", sandboxId=ID, process={"args": ["yes"]}))
    late("SandboxService/Run", ms=400, is_stream=True, process={"args": ["sleep", "1000"]})
    while call("HostService/Health")["sandboxes"] != 1:
        time.sleep(0.02)


def a_raw_stream_has_a_deadline_too():
    message = envelope({"sandboxId": ID, "process": {"args": ["sleep", "1000"]}})
    status, ms = 504, 200
    while status == 504:  # it was over before the stream began
        status, _, body = ask(local(), "/holt.v1.ProcessService/Exec", body=message, kind="application/connect+json",
                              Connection="Upgrade", Upgrade="holt-stream/1", Connect_Timeout_Ms=str(ms))
        assert b"deadline_exceeded" in body, body
        ms *= 4
    equal(101, status)


def deadlines_are_numbers_and_no_hurry_for_the_quick():
    for text in ("0", "12345678901", "-1", "1s", "", "1.5", "0x10"):
        status, _, body = ask(local(), "/holt.v1.HostService/Health", Connect_Timeout_Ms=text)
        wanted = "deadline_exceeded" if text == "0" else "invalid_argument"
        equal((text, wanted), (text, json.loads(body).get("code")))
    equal(200, ask(local(), "/holt.v1.HostService/Health", Connect_Timeout_Ms="9999999999")[0])
    served = 0
    while served < 10:  # an old deadline does not reach the next call of its connection
        connection = Connection()
        connection.request("POST", "/holt.v1.HostService/Health", "{}",
                           {"Content-Type": "application/json", "Connect-Timeout-Ms": "100"})
        response = connection.getresponse()
        response.read()
        if response.status == 504:  # it has been met, on a machine that was busy
            continue
        equal(200, response.status)
        served += 1
        time.sleep(0.02 * served)
        connection.call("HostService/Health")


# --- crowds and the slow ------------------------------------------------------------------------


def daemon(what):
    """Threads, open files or KiB of memory of the daemon."""
    status = open(f"/proc/{os.environ['holtd']}/status").read()
    if what == "files":
        return len(os.listdir(f"/proc/{os.environ['holtd']}/fd"))
    return int(re.search({"threads": r"Threads:\s+(\d+)", "memory": r"VmRSS:\s+(\d+)"}[what], status)[1])


def settle(what, most):
    while daemon(what) > most:
        time.sleep(0.02)


def streaming(method, **fields):
    sock = local()
    sock.sendall(request("/holt.v1." + method, body=envelope(fields), kind="application/connect+json",
                         Connection="keep-alive"))
    return sock


def a_crowd_keeps_nobody_out_and_leaves_nothing():
    resource.setrlimit(resource.RLIMIT_NOFILE, (4096, 4096))
    process = start(ID, "sleep", "1000")["process"]["id"]
    call("HostService/Health")
    threads, files, memory = daemon("threads"), daemon("files"), daemon("memory")
    idle = [Connection() for _ in range(500)]
    for connection in idle:
        connection.call("HostService/Health")
    streams = [streaming("ProcessService/Attach", sandboxId=ID, processId=process, follow=True) for _ in range(200)]
    for sock in streams:
        assert b" 200 OK" in sock.recv(4096)
    assert daemon("threads") >= threads + 690, "the crowd is there"
    for _ in range(20):
        call("HostService/Health")
    idle[250].call("HostService/Health")
    for each in idle:
        each.close()
    for sock in streams:  # without a word
        sock.close()
    settle("threads", threads)
    settle("files", files)
    settle("memory", memory + 10 * 1024)


def who_never_reads_is_given_no_memory():
    resource.setrlimit(resource.RLIMIT_NOFILE, (4096, 4096))
    name = "sh"
    process = start(ID, name, "-c", "head -c 30000000 /dev/zero | tr '\\0' x; exec sleep 1000")["process"]["id"]
    Connection().call("ProcessService/Wait", sandboxId=ID, processId=start(
        ID, name, "-c", "mkdir /tmp/many && cd /tmp/many && seq 20000 | xargs touch")["process"]["id"])
    threads, files, memory = daemon("threads"), daemon("files"), daemon("memory")
    clients = []
    for _ in range(20):
        clients += [streaming("ProcessService/Attach", sandboxId=ID, processId=process, follow=True),
                    streaming("SnapshotService/Diff", sandboxId=ID), streaming("HostService/Audit")]
    for sock in clients:
        assert b" 200 OK" in sock.recv(15, socket.MSG_WAITALL)
    most = 0
    for _ in range(20):
        time.sleep(0.05)
        most = max(most, daemon("memory") - memory)
    print(f"{len(clients)} clients that do not read: {most} KiB")
    assert most < len(clients) * 1024, f"{most} KiB for {len(clients)} clients"
    call("HostService/Health")
    for sock in clients:
        sock.close()
    settle("threads", threads)
    settle("files", files)


def drip(results, name, sock, first, piece):
    """Sends a byte now and then until it is hung up on."""
    try:
        sock.sendall(first)
        while True:
            sock.settimeout(0.5)
            try:
                if not sock.recv(4096):
                    break
            except TimeoutError:
                sock.sendall(piece)
    except (BrokenPipeError, ConnectionResetError):
        pass
    results.append(name)


def the_slow_are_cut():
    auth = "Bearer " + main_token()
    body = request("/holt.v1.HostService/Health", body=b"", Authorization=auth, Content_Length="1000000")
    used = Connection()
    used.call("HostService/Health")
    results = []
    cases = [("silent on TCP", tcp(), b"", b""), ("silent", local(), b"", b""),
             ("slow header on TCP", tcp(), b"POST / HTTP/1.1\r\nX: ", b"x"),
             ("slow header", local(), b"POST / HTTP/1.1\r\nX: ", b"x"),
             ("slow body on TCP", tcp(), body, b" "), ("slow body", local(), body, b" ")]
    threads = [threading.Thread(target=drip, args=(results, *case)) for case in cases]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    equal(len(cases), len(results))
    used.call("HostService/Health")  # who has been served may be silent for longer


def eventually_asked(path):  # the status, of the first attempt that is not reset
    for _ in range(200):
        try:
            return ask(tcp(), path, Authorization="Bearer " + main_token())[0]
        except ConnectionResetError:
            time.sleep(0.1)
    return "only resets"


def one_address_cannot_have_all_connections():
    resource.setrlimit(resource.RLIMIT_NOFILE, (4096, 4096))
    greedy = [tcp() for _ in range(800)]  # who say nothing
    # Any local user is at the address that everybody on loopback has. Places of those that were closed are free only
    # once their threads have ended.
    equal(200, eventually_asked("/holt.v1.HostService/Health"))
    for sock in greedy[:100]:
        equal(b"", sock.recv(1))
    other = socket.create_connection(("127.0.0.1", int(os.environ["port"])), source_address=("127.0.0.2", 0))
    equal(200, ask(other, "/holt.v1.HostService/Health", Authorization="Bearer " + main_token())[0])
    equal(200, ask(local(), "/holt.v1.HostService/Health")[0])
    for sock in greedy:
        sock.close()


def at_the_limit_the_silent_make_room():
    """More connections than there is room for: those that say nothing are cut, and then it is our turn."""
    resource.setrlimit(resource.RLIMIT_NOFILE, (4096, 4096))
    silent = [local() for _ in range(1100)]
    sock = local()
    equal(200, ask(sock, "/holt.v1.HostService/Health")[0])
    for each in silent:
        each.close()


if __name__ == "__main__":
    globals()[sys.argv[1]]()
