"""The claims of e2b_port_test: `e2b_port.py CLAIM`. The daemon is at $port on loopback and at $HOLT_HOST (a unix
socket); $id is a sandbox with e2b_port_server.py at its port 8000, $holt the command."""
import hashlib, json, os, select, socket, ssl, struct, subprocess, sys

from api import call, equal
from e2b_port_server import CANNED, LARGE

ID = os.environ["id"].replace("-", "")


def connect():
    sock = socket.create_connection(("127.0.0.1", int(os.environ["port"])))
    if "tls" in os.environ:
        context = ssl.create_default_context(cafile=os.environ["tls"])
        sock = context.wrap_socket(sock, server_hostname="localhost", suppress_ragged_eofs=False)
    return sock


def head_of(verb, path, port=8000, **headers):
    named = {"Host": "localhost", "E2b-Sandbox-Id": ID, "E2b-Sandbox-Port": str(port), "Holt-Token": os.environ["token"]}
    named.update({name.replace("_", "-"): value for name, value in headers.items()})
    lines = "".join(f"{name}: {value}\r\n" for name, value in named.items() if value is not None)
    return f"{verb} {path} HTTP/1.1\r\n{lines}\r\n".encode("latin-1")


class Answer:
    """An answer as it stands on the wire. body is what has been read of it."""

    def __init__(self, stream, verb="GET"):
        self.stream, self.verb = stream, verb
        line = stream.readline()
        assert line, "no answer"
        self.status = int(line.split(b" ")[1])
        self.headers = []
        while (line := stream.readline().decode("latin-1").rstrip("\r\n")):
            self.headers.append(tuple(line.split(": ", 1)))

    def get(self, name):
        return [value for each, value in self.headers if each.lower() == name.lower()]

    def pieces(self):
        if self.verb == "HEAD" or self.status in (204, 304):
            return
        if self.get("Transfer-Encoding"):
            while size := int(self.stream.readline().strip() or b"x", 16):
                yield self.stream.read(size)
                equal(b"\r\n", self.stream.readline())
            equal(b"\r\n", self.stream.readline())
        else:
            left = int(self.get("Content-Length")[0])
            while left:
                data = self.stream.read1(left)
                assert data, f"{left} bytes are missing"
                left -= len(data)
                yield data

    def body(self):
        return b"".join(self.pieces())


def ask(path, verb="GET", body=b"", **options):
    if body:
        options["Content_Length"] = len(body)
    with connect() as sock, sock.makefile("rwb") as stream:
        stream.write(head_of(verb, path, **options) + body)
        stream.flush()
        answer = Answer(stream, verb)
        answer.text = answer.body()
        return answer


def refusal(answer, message):
    equal(502, answer.status)
    told = json.loads(answer.text)
    equal({"sandboxId": ID, "message": message, "port": 8000, "code": 502}, told)


# --- requests -----------------------------------------------------------------------------------

def a_request_arrives_as_it_was_written():
    answer = ask("/a%20b/%FF//c?x=%2f&y", "PATCH", X_Mixed_CASE="Value", authorization="Bearer own", x_a="1",
                 X_A="2", e2b_traffic_access_token="secret", Connection="keep-alive, x-gone", x_gone="1")
    equal(200, answer.status)
    equal("PATCH /a%20b/%FF//c?x=%2f&y HTTP/1.1\r\nHost: localhost\r\nE2b-Sandbox-Id: " + ID +
          "\r\nE2b-Sandbox-Port: 8000\r\nX-Mixed-CASE: Value\r\nauthorization: Bearer own\r\nx-a: 1\r\nX-A: 2\r\n"
          "Connection: close\r\n", answer.text.decode())


def credentials_for_holt_stay_behind():
    """The program sees its own, and none that open Holt."""
    full = subprocess.run(["holt", "token", "create"], check=True, capture_output=True, text=True).stdout.split()[-1]
    e2b = subprocess.run(["holt", "token", "create", "--e2b"], check=True, capture_output=True, text=True).stdout.split()[-1]
    for secret in full, e2b, os.environ["token"], "holt_" + "0" * 64:
        for name, value in (("Authorization", f"Bearer {secret}"), ("authorization", f"bearer  {secret}"),
                            ("X-API-Key", secret), ("X-Access-Token", secret)):
            answer = ask("/see", **{name: value, "X_Own": "1"})
            equal(200, answer.status)
            assert secret not in answer.text.decode() and "X-Own: 1" in answer.text.decode(), (name, answer.text)
    answer = ask("/see", Authorization="Basic dTpw", X_API_Key="own", X_Access_Token="theirs", Cookie=f"a=b; holt-token={full}")
    for wanted in "Authorization: Basic dTpw", "X-API-Key: own", "X-Access-Token: theirs", "Cookie: a=b\r\n":
        assert wanted in answer.text.decode(), (wanted, answer.text)
    # Browsers send the cookies of the console to every port of its host.
    answer = ask("/see", Cookie="holt_session=s1; a=b; __Host-holt_session=s2; Holt_Session=s3", X_Holt_Session="k1")
    equal(200, answer.status)
    assert "Cookie: a=b\r\n" in answer.text.decode() and "ession" not in answer.text.decode(), answer.text


def a_new_sandbox_has_an_address():
    """A host name for all its ports, to be completed by the client."""
    made = call("SandboxService/Create")
    sandbox = made["sandbox"]["id"]
    call("SandboxService/Destroy", sandboxId=sandbox)
    equal(f"<port>-{sandbox.replace('-', '')}.localhost:{os.environ['port']}", made["address"])
    equal(200, ask("/", Host=made["address"].replace("<port>", "8000").replace(sandbox.replace("-", ""), ID),
                   E2b_Sandbox_Id=None, E2b_Sandbox_Port=None).status)


def a_host_name_leads_to_a_port():
    answer = ask("/", E2b_Sandbox_Id=None, E2b_Sandbox_Port=None, Host=f"8000-{ID}.localhost")
    equal(200, answer.status)
    assert b"\r\nHost: 8000-" in answer.text, answer.text


def large_bodies_pass_both_ways():
    count = 24
    answer = ask("/digest", "POST", LARGE * count)
    equal(f"{count * len(LARGE)} {hashlib.sha256(LARGE * count).hexdigest()}", answer.text.decode())
    equal(hashlib.sha256(LARGE * count).digest(), hashlib.sha256(ask(f"/large/{count}").text).digest())


def a_chunked_body_passes():
    with connect() as sock, sock.makefile("rwb") as stream:
        stream.write(head_of("POST", "/digest", Transfer_Encoding="chunked"))
        for size in (1, 1000, 100000, 1000000):
            stream.write(b"%x\r\n" % size + LARGE[:size] + b"\r\n")
        stream.write(b"0\r\n\r\n")
        stream.flush()
        whole = b"".join(LARGE[:size] for size in (1, 1000, 100000, 1000000))
        equal(f"{len(whole)} {hashlib.sha256(whole).hexdigest()}", Answer(stream).body().decode())


def one_who_answers_while_asked_is_heard():
    equal(LARGE[:500000], ask("/echo", "POST", LARGE[:500000]).text)
    answer = ask("/413", "POST", LARGE * 4)
    equal(b"too much", answer.text)


def a_connection_serves_many_requests():
    with connect() as sock, sock.makefile("rwb") as stream:
        for path, wanted in (("/empty", b""), ("/large/1", LARGE), ("/headers", b"ok"), ("/trailer", b"ok")) * 3:
            stream.write(head_of("GET", path))
            stream.flush()
            equal(wanted, Answer(stream).body())
        stream.write(head_of("HEAD", "/large/2"))
        stream.flush()
        answer = Answer(stream, "HEAD")
        equal([str(2 * len(LARGE))], answer.get("Content-Length"))
        stream.write(head_of("GET", "/unchanged"))
        stream.flush()
        answer = Answer(stream)
        equal((304, ['"a"'], []), (answer.status, answer.get("ETag"), answer.get("Transfer-Encoding")))
        stream.write(head_of("GET", "/interim"))
        stream.flush()
        equal(b"ok", Answer(stream).body())


def headers_of_an_answer_keep_order_and_case():
    answer = ask("/headers")
    equal(418, answer.status)
    names = [name for name, _ in answer.headers]
    wanted = ["x-lower", "X-UPPER", "Set-Cookie", "Set-Cookie"]
    equal(wanted, [name for name in names if name in wanted])
    equal(["a=b", "c=d"], answer.get("Set-Cookie"))
    for name in ("X-Private", "Keep-Alive"):
        equal([], answer.get(name))


def an_old_server_is_understood():
    equal(LARGE, ask("/old").text)


def events_come_when_they_happen():
    with connect() as sock, sock.makefile("rwb") as stream:
        stream.write(head_of("GET", "/news"))
        stream.flush()
        pieces = Answer(stream).pieces()
        for number in range(5):
            equal(f"data: {number}\n\n".encode(), next(pieces))
            equal(200, ask("/next").status)
        equal([], list(pieces))


# --- upgrades -----------------------------------------------------------------------------------

def shout(sock, stream):
    stream.write(head_of("GET", "/shout", Connection="keep-alive, Upgrade", Upgrade="shout") + b"early ")
    stream.flush()
    answer = Answer(stream)
    equal((101, ["shout"], ["1"]), (answer.status, answer.get("Upgrade"), answer.get("X-Own")))
    equal(b"HELLOEARLY ", stream.read(11))


def another_protocol_passes_both_ways_and_each_ends_alone():
    with connect() as sock, sock.makefile("rwb") as stream:
        shout(sock, stream)
        for size in (1, 70000, 1000000):
            stream.write(b"a" * size)
            stream.flush()
            equal(b"A" * size, stream.read(size))
        if "tls" in os.environ:  # Python cannot close one direction of TLS
            return
        sock.shutdown(socket.SHUT_WR)
        equal(b"BYE", stream.read())


def who_cannot_upgrade_is_told_so():
    answer = ask("/anything", Connection="Upgrade", Upgrade="shout")
    equal(200, answer.status)
    wanted = b"\r\nUpgrade: shout\r\nConnection: Upgrade\r\n"
    assert wanted in answer.text, answer.text


# --- refusals -----------------------------------------------------------------------------------

def a_closed_port_is_told():
    answer = ask("/", "POST", b"x" * 1000000, E2b_Sandbox_Port="8001")
    equal(502, answer.status)
    equal({"sandboxId": ID, "message": "The sandbox is running but port is not open", "port": 8001, "code": 502},
          json.loads(answer.text))


def an_unknown_sandbox_is_told():
    for name in ("sb0000000000000000", "nobody", "Not-An-Id"):
        answer = ask("/", E2b_Sandbox_Id=name)
        equal((502, "The sandbox was not found"), (answer.status, json.loads(answer.text)["message"]))


def a_hostile_server_reaches_nobody():
    for path in ("/split", "/control", "/two-lengths", "/length-and-chunks", "/unasked-upgrade", "/many-headers",
                 "/large-header", "/no-http", "/nothing"):
        with connect() as sock, sock.makefile("rwb") as stream:
            for _ in range(2):
                stream.write(head_of("GET", path))
                stream.flush()
                answer = Answer(stream)
                answer.text = answer.body()
                assert b"stolen" not in answer.text
                refusal(answer, "The server at the port does not answer in HTTP")
            stream.write(head_of("GET", "/two-replies"))
            stream.flush()
            equal(b"ok", Answer(stream).body())
            stream.write(head_of("GET", "/headers"))
            stream.flush()
            equal(418, Answer(stream).status)


def is_reset(sock):
    """Reads to the end: whether that was a reset. One without the last word of TLS cannot be mistaken either."""
    try:
        while sock.recv(65536):
            pass
    except (ConnectionResetError, ssl.SSLEOFError):
        return True
    return False


def what_ends_too_early_is_reset():
    for path in ("/short", "/short-chunks"):
        with connect() as sock:
            sock.sendall(head_of("GET", path))
            assert is_reset(sock), path


def a_body_that_is_none_is_never_whole():
    with connect() as sock:
        sock.sendall(head_of("GET", "/bad-chunk", Connection="close"))
        received = b""
        try:
            while more := sock.recv(65536):
                received += more
        except ConnectionResetError:
            return
        assert received.startswith(b"HTTP/1.1 502 "), received


# --- what its owner asked for -------------------------------------------------------------------

def control(verb, path, **fields):
    """The control API's answer, an object or None."""
    token = open(os.path.join(os.environ["state"], "token")).read().strip()
    answer = ask(path, verb, json.dumps(fields).encode(), E2b_Sandbox_Id=None, E2b_Sandbox_Port=None,
                 X_API_KEY=token, Content_Type="application/json")
    assert answer.status < 300, (answer.status, answer.text)
    return json.loads(answer.text) if answer.text else None


class Owned:
    """A sandbox of the control API with the server in it."""

    def __init__(self, **wishes):
        self.made = control("POST", "/v2/sandboxes", templateID="host", **wishes)
        self.id = self.made["sandboxID"]

    def __enter__(self):
        name = "sb-" + self.id.removeprefix("sb")
        with open(os.path.join(os.path.dirname(__file__), "e2b_port_server.py")) as program:
            subprocess.run(["holt", "exec", "-i", name, "--", "sh", "-c", "cat >/workspace/server.py"], stdin=program,
                           check=True)
        holt("exec", name, "--", "sh", "-c", "python3 /workspace/server.py 8000 >/dev/null 2>&1 </dev/null &")
        while self.ask("/", E2B_Traffic_Access_Token=self.made["trafficAccessToken"]).status == 502:
            pass
        return self

    def __exit__(self, *_):
        control("DELETE", "/sandboxes/" + self.id)

    def ask(self, path, **options):
        return ask(path, E2b_Sandbox_Id=self.id, **options)


def the_header_host_is_masked():
    with Owned(network={"maskRequestHost": "localhost:${PORT}"}) as owned:
        assert b"\r\nHost: localhost:8000\r\n" in owned.ask("/", Host="127.0.0.1").text
        assert b"\r\nHost: localhost:8000\r\n" in owned.ask("/", Host=None, host="127.0.0.1").text


def a_private_port_wants_its_token():
    with Owned(network={"allowPublicTraffic": False}) as owned:
        token = owned.made["trafficAccessToken"]
        equal(403, owned.ask("/").status)
        equal(403, owned.ask("/", E2B_Traffic_Access_Token=token[:-1]).status)
        answer = owned.ask("/", E2B_Traffic_Access_Token=token)
        equal(200, answer.status)
        assert token.encode() not in answer.text, answer.text


def a_port_of_a_native_sandbox_wants_a_token():
    token, full = os.environ["token"], open(os.path.join(os.environ["state"], "token")).read().strip()
    for headers in ({"Holt_Token": None}, {"Holt_Token": token[:-1] + ("1" if token[-1] == "0" else "0")}, {"Holt_Token": ""},
                    {"Holt_Token": None, "Cookie": "holt-token=holt_port_" + "0" * 64},
                    {"Holt_Token": None, "E2b_Traffic_Access_Token": "x"}):
        equal((headers, 403), (headers, ask("/", **headers).status))
        equal((headers, 403), (headers, ask("/", E2b_Sandbox_Id=None, E2b_Sandbox_Port=None, Host=f"8000-{ID}.localhost",
                                            **headers).status))
    for secret in (token, full):
        answer = ask("/", Holt_Token=secret)
        equal(200, answer.status)
        assert secret.encode() not in answer.text, answer.text
    answer = ask("/", Holt_Token=None, Cookie=f"a=b; holt-token={token};c=d; HOLT-TOKEN=x")
    equal(200, answer.status)
    assert b"\r\nCookie: a=b; c=d\r\n" in answer.text, answer.text
    answer = ask("/", Holt_Token=None, Cookie=f"holt-token={token}")
    assert answer.status == 200 and b"ookie" not in answer.text, answer.text
    # It opens the ports of its sandbox, and nothing else.
    with connect() as sock, sock.makefile("rwb") as stream:
        stream.write(f"POST /holt.v1.HostService/Health HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                     f"Authorization: Bearer {token}\r\nContent-Length: 2\r\n\r\n{{}}".encode())
        stream.flush()
        equal(401, Answer(stream).status)
    equal(401, ask("/v2/sandboxes", E2b_Sandbox_Id=None, E2b_Sandbox_Port=None, X_API_KEY=token).status)
    other = subprocess.run(["holt", "create", "-q"], check=True, capture_output=True, text=True).stdout.strip()
    equal(403, ask("/", E2b_Sandbox_Id=other.replace("-", "")).status)
    equal(502, ask("/", E2b_Sandbox_Id=other.replace("-", ""), Holt_Token=full).status)
    # An E2B client that connects to it does not open its ports.
    made = control("POST", f"/sandboxes/{other.replace('-', '')}/connect", timeout=60)
    equal(403, ask("/", E2b_Sandbox_Id=other.replace("-", "")).status)
    equal(502, ask("/", E2b_Sandbox_Id=other.replace("-", ""), E2b_Traffic_Access_Token=made["trafficAccessToken"]).status)
    holt("rm", other)
    # A token that is removed opens nothing any more.
    made = json.loads(subprocess.run(["holt", "token", "create", "--ports-of", os.environ["id"], "-o", "json"], check=True,
                                     capture_output=True, text=True).stdout)
    equal(200, ask("/", Holt_Token=made["secret"]).status)
    holt("token", "rm", made["token"]["id"] if "token" in made else made["id"])
    equal(403, ask("/", Holt_Token=made["secret"]).status)


def a_browser_passes_its_token_once():
    token = os.environ["token"]
    host = {"E2b_Sandbox_Id": None, "E2b_Sandbox_Port": None, "Host": f"8000-{ID}.localhost", "Holt_Token": None}
    answer = ask(f"//evil.test/a?x=1&holt-token={token}&y=%26", **host)
    equal((303, ["/evil.test/a?x=1&y=%26"]), (answer.status, answer.get("Location")))
    equal(["/evil.test/a"], ask(f"/\\evil.test/a?holt-token={token}", **host).get("Location"))
    [cookie] = answer.get("Set-Cookie")
    equal([f"holt-token={token}", "Path=/", "HttpOnly", "SameSite=Lax"] + ["Secure"] * ("tls" in os.environ), cookie.split("; "))
    equal(200, ask("/", Cookie=cookie.split(";")[0], **host).status)
    equal(["/"], ask(f"/?holt-token={token}", **host).get("Location"))
    equal(403, ask("/?holt-token=holt_port_" + "0" * 64, **host).status)
    full = open(os.path.join(os.environ["state"], "token")).read().strip()
    equal(403, ask("/?holt-token=" + full, **host).status)
    equal(403, ask(f"/?holt-token={token}", "POST", b"x", **host).status)
    # On a public port too, no other text becomes a cookie.
    with Owned() as owned:
        for text in (token, "x%3b%20Domain=localhost".ljust(78, "x"), "x"):
            answer = owned.ask("/?holt-token=" + text, Holt_Token=None)
            equal((text, 200, []), (text, answer.status, answer.get("Set-Cookie")))


def pages_of_others_change_nothing():
    name = f"8000-{ID}.localhost:7070"
    host = {"E2b_Sandbox_Id": None, "E2b_Sandbox_Port": None, "Host": name}
    shout = {"Connection": "Upgrade", "Upgrade": "websocket"}
    own = ("http://" + name, "https://" + name.upper(), f"http://3000-{ID}.localhost:7070")
    other = ("http://evil.test", "null", "http://localhost:7070", f"http://3000-{ID}0.localhost:7070", f"http://3000-{ID}.localhost",
             f"http://3000-{ID}.evil.test", "http://" + name + ".evil.test", f"http://evil.test/{name}")
    for verb in ("POST", "PUT", "PATCH", "DELETE"):
        for origin in own:
            equal((origin, 200), (origin, ask("/", verb, Origin=origin, **host).status))
        for origin in other:
            equal((verb, origin, 403), (verb, origin, ask("/", verb, Origin=origin, **host).status))
    for origin in own:
        assert ask("/", Origin=origin, **shout, **host).status != 403, origin
    for origin in other:
        equal((origin, 403), (origin, ask("/", Origin=origin, **shout, **host).status))
        for verb in ("GET", "HEAD", "OPTIONS"):
            equal((verb, origin, 200), (verb, origin, ask("/", verb, Origin=origin, **host).status))
    equal(200, ask("/", "POST", **host).status)
    with Owned() as owned:
        equal(403, owned.ask("/", verb="POST", Origin="http://evil.test").status)
        equal(200, owned.ask("/", verb="POST").status)


def a_request_wakes_who_wants_that():
    with Owned(autoPause=True, autoResume={"enabled": True}) as owned:
        control("POST", f"/sandboxes/{owned.id}/pause")
        equal("paused", control("GET", "/sandboxes/" + owned.id)["state"])
        equal(200, owned.ask("/").status)
        equal("running", control("GET", "/sandboxes/" + owned.id)["state"])
    with Owned(autoPause=True, autoResume={"enabled": True}, network={"allowPublicTraffic": False}) as owned:
        control("POST", f"/sandboxes/{owned.id}/pause")
        equal(403, owned.ask("/").status)
        equal(403, owned.ask("/", E2B_Traffic_Access_Token="x").status)
        equal("paused", control("GET", "/sandboxes/" + owned.id)["state"])
        equal(200, owned.ask("/", E2B_Traffic_Access_Token=owned.made["trafficAccessToken"]).status)
    with Owned(autoPause=True) as owned:
        control("POST", f"/sandboxes/{owned.id}/pause")
        equal(502, owned.ask("/").status)
        equal("paused", control("GET", "/sandboxes/" + owned.id)["state"])


# --- the sandbox --------------------------------------------------------------------------------

def opened(path):
    """A connection whose stream has begun."""
    sock = connect()
    sock.sendall(head_of("GET", path))
    received = b""
    while b"begun" not in received:
        received += sock.recv(65536)
    return sock


def holt(*words):
    subprocess.run(["holt", *words], check=True, stdout=subprocess.DEVNULL)


def upgraded():
    sock = connect()
    sock.sendall(head_of("GET", "/shout", Connection="Upgrade", Upgrade="shout"))
    received = b""
    while b"HELLO" not in received:
        received += sock.recv(65536)
    return sock


def a_pause_resets_what_is_open():
    socks = [opened("/stall"), opened("/stall-old")]
    if "tls" not in os.environ:
        socks.append(upgraded())
    waiting = connect()
    waiting.sendall(head_of("GET", "/wait", Connection="close"))
    holt("pause", os.environ["id"])
    for sock in socks:
        assert is_reset(sock)
    is_reset(waiting)  # or told that there is no sandbox, if the pause was faster
    answer = ask("/")
    equal((502, "The sandbox was not found"), (answer.status, json.loads(answer.text)["message"]))
    holt("resume", os.environ["id"])
    equal(200, ask("/").status)


def its_end_resets_what_is_open():
    socks = [opened("/stall"), opened("/stall-old"), upgraded()]
    holt("rm", "-f", os.environ["id"])
    for sock in socks:
        assert is_reset(sock)
    equal(502, ask("/").status)


def a_client_that_goes_leaves_nothing():
    for _ in range(20):
        opened("/stall").close()
        if "tls" not in os.environ:
            upgraded().close()
        with connect() as sock:
            sock.sendall(head_of("POST", "/digest", Content_Length=1000) + b"half")


if __name__ == "__main__":
    globals()[sys.argv[1]]()
