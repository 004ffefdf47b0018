"""The claims of revoke_test: `revoke.py CLAIM`. Every one removes the token of an open call, and uses the call on.

The daemon is at $HOLT_HOST (a unix socket) and at $port on loopback. No claim depends on time: what comes after the removal
must not happen, and what waits must end (the test has a limit against hanging)."""
import base64, json, os, re, socket, struct, sys, urllib.parse

from matrix_world import Client, envelope, equal, root, until

PORT = int(os.environ["port"])
PIECE = b"x" * 4096


class Case:
    """A sandbox of ann, and a token of hers that will be removed."""

    def __init__(self):
        made = root("TokenService/Create", owner="ann", role="user")
        self.id, self.secret = made["token"]["id"], made["secret"]
        self.ann = Client(root("TokenService/Create", owner="ann", role="user")["secret"])
        boxes = self.ann.must("SandboxService/List")["sandboxes"]
        self.sandbox = boxes[0]["id"] if boxes else self.ann.must("SandboxService/Create")["sandbox"]["id"]

    def revoke(self):
        root("TokenService/Remove", id=self.id)

    def exists(self, path):
        outcome = self.ann.call("FileService/Stat", {"sandboxId": self.sandbox, "path": path})
        assert outcome.code in ("ok", "not_found"), outcome.error
        return outcome.code == "ok"


class Wire:
    """A connection with the token, byte by byte."""

    def __init__(self, case, verb, path, **headers):
        self.sock = socket.create_connection(("127.0.0.1", PORT))
        fields = {"Host": "localhost", "Authorization": "Bearer " + case.secret, "Connection": "close", **headers}
        lines = [f"{verb} {path} HTTP/1.1", *(f"{name.replace('_', '-')}: {value}" for name, value in fields.items())]
        self.sock.sendall("\r\n".join([*lines, "", ""]).encode())

    def chunk(self, data):
        self.sock.sendall(b"%x\r\n%s\r\n" % (len(data), data))

    def rest(self):
        """All until the daemon closes the connection; a reset is an end too."""
        got = b""
        try:
            while more := self.sock.recv(65536):
                got += more
        except ConnectionError:
            pass
        return got.decode("latin-1")

    def head(self):
        got = b""
        while b"\r\n\r\n" not in got:
            more = self.sock.recv(1)
            assert more, got
            got += more
        return got.decode("latin-1")

    def finish(self, data):
        """The daemon may have hung up already."""
        try:
            self.sock.sendall(data)
        except ConnectionError:
            pass
        return self.rest()


def upload(case, method, first):
    wire = Wire(case, "POST", "/holt.v1." + method, Content_Type="application/connect+json", Transfer_Encoding="chunked")
    wire.chunk(envelope(first))
    return wire


def chunked(*messages):
    return b"".join(b"%x\r\n%s\r\n" % (len(each), each) for each in map(envelope, messages)) + b"0\r\n\r\n"


def is_refused(text):
    assert "unauthenticated" in text or text == "", text
    assert '"entry"' not in text, text


def begun(case, path):
    """Waits until the daemon works on the upload that begins with this file."""
    until(lambda: case.exists(path), path)


DATA = base64.b64encode(b"x" * 48 * 1024).decode()
MANY = 32  # messages with data, more than the daemon collects before it passes them on


def an_upload_stops():
    for more in ({"atomic": True}, {}):
        case = Case()
        path = "/workspace/written" + "-atomic" * bool(more)
        wire = upload(case, "FileService/Write", {"sandboxId": case.sandbox, "path": path, **more})
        for _ in range(MANY):
            wire.chunk(envelope({"data": DATA}))
        if not more:
            begun(case, path)
        case.revoke()
        is_refused(wire.finish(chunked({"data": DATA})))
        assert not more or not case.exists(path)


def pushed(name):
    return {"entry": {"path": name, "type": "file"}, "data": DATA}


def a_push_stops():
    case = Case()
    wire = upload(case, "FileService/Push", {"sandboxId": case.sandbox, "path": "/workspace/pushed", "parents": True, **pushed("first")})
    wire.chunk(envelope(pushed("open")))  # completes the one before it
    for _ in range(MANY):
        wire.chunk(envelope({"data": DATA}))
    begun(case, "/workspace/pushed/first")
    case.revoke()
    is_refused(wire.finish(chunked(pushed("second"))))
    assert not case.exists("/workspace/pushed/second")


def raw_frame(kind, data):
    return struct.pack("<B3xI", kind, len(data)) + data


def a_raw_upload_stops():
    """Frames 5, 6 and 7 are data, their end and a message."""
    case = Case()
    first = envelope({"sandboxId": case.sandbox, "path": "/workspace/raw", "parents": True, "entry": {"path": "first", "type": "file"}})
    wire = Wire(case, "POST", "/holt.v1.FileService/Push", Content_Type="application/connect+json", Connection="Upgrade",
                Upgrade="holt-stream/1", Content_Length=len(first))
    wire.sock.sendall(first)
    assert " 101 " in wire.head()
    for name in ("open", "more"):  # each completes the one before it
        wire.sock.sendall(raw_frame(5, PIECE * 256) + raw_frame(7, json.dumps({"entry": {"path": name, "type": "file"}}).encode()))
    wire.sock.sendall(raw_frame(5, PIECE * 256))
    begun(case, "/workspace/raw/first")
    case.revoke()
    second = json.dumps({"entry": {"path": "second", "type": "file"}}).encode()
    text = wire.finish(raw_frame(7, second) + raw_frame(5, PIECE) + raw_frame(6, b""))
    assert "unauthenticated" in text or re.fullmatch(r"\x03.{7}\{\}|", text, re.S), text
    assert not case.exists("/workspace/raw/second")


def a_plain_upload_stops():
    case = Case()
    query = urllib.parse.urlencode({"sandbox": case.sandbox, "path": "/workspace/put"})
    for sent in (len(PIECE), 2 * len(PIECE)):  # the rest of the body is missing, or only its end
        case = Case()
        wire = Wire(case, "PUT", "/holt.v1/file?" + query, Transfer_Encoding="chunked")
        wire.chunk((PIECE * 2)[:sent])
        case.revoke()
        rest = (PIECE * 2)[sent:]
        is_refused(wire.finish((b"%x\r\n%s\r\n" % (len(rest), rest) if rest else b"") + b"0\r\n\r\n"))
        assert not case.exists("/workspace/put")


def a_client_that_sends_on_is_not_heard():
    """What arrives is read even if the daemon has shut the connection down for reading."""
    case = Case()
    wire = upload(case, "FileService/Write", {"sandboxId": case.sandbox, "path": "/workspace/endless", "atomic": True})
    case.revoke()
    try:
        for _ in range(1 << 20):
            wire.chunk(envelope({"data": base64.b64encode(PIECE).decode()}))
    except ConnectionError:
        pass
    else:
        raise AssertionError("4 GiB were taken")
    assert not case.exists("/workspace/endless")


def stream_of(case, method, **request):
    """The messages of a stream; its end is the last of them."""
    body = envelope(request)
    wire = Wire(case, "POST", "/holt.v1." + method, Content_Type="application/connect+json", Content_Length=len(body))
    wire.sock.sendall(body)
    return wire


def is_begun(wire, sign):
    """Reads until the stream has told this."""
    got = b""
    while sign.encode() not in got:
        more = wire.sock.recv(65536)
        assert more, got
        got += more


def events_end():
    """A watch is told nothing that happens after the removal, however much happens."""
    case = Case()
    wire = stream_of(case, "EventService/Watch")
    is_begun(wire, "heartbeat")
    case.ann.must("SandboxService/Update", sandboxId=case.sandbox, labels={"before": "1"})
    is_begun(wire, case.sandbox)
    case.revoke()
    for number in range(50):
        case.ann.must("SandboxService/Update", sandboxId=case.sandbox, labels={"after": str(number)})
    text = wire.rest()
    assert "unauthenticated" in text and case.sandbox not in text, text


def streams_end():
    case = Case()
    at = {"sandboxId": case.sandbox}
    loud = case.ann.must("ProcessService/Start", **at, process={"args": ["sh", "-c", "while echo loud; do sleep 0.01; done"]})["process"]["id"]
    still = case.ann.must("ProcessService/Start", **at, process={"args": ["sleep", "100000"]})["process"]["id"]
    for method, request, sign in (
            ("ProcessService/Attach", {"processId": loud, "follow": True}, "stdout"), ("ProcessService/Attach", {"processId": still, "follow": True}, "started"),
            ("ProcessService/Exec", {"process": {"args": ["sleep", "100000"]}}, "started"),
            ("FileService/Watch", {"path": "/workspace"}, "{"), ("SandboxService/WatchStats", {"intervalMs": 100}, "cpu")):
        case = Case()
        target = {"sandboxIds": [case.sandbox]} if method.endswith("WatchStats") else at
        wire = stream_of(case, method, **target, **request)
        is_begun(wire, sign)
        case.revoke()
        text = wire.rest()
        assert "unauthenticated" in text, (method, text[-300:])
    for process in (loud, still):
        case.ann.must("ProcessService/Signal", **at, processId=process, signal=9)


def a_multiplexed_stream_ends():
    """Also while the client keeps sending."""
    import mux
    case = Case()
    stream = mux.Mux(f"http://127.0.0.1:{PORT}", headers=["Authorization: Bearer " + case.secret])
    channel = stream.open("EventService/Watch", {}, credit=1 << 20)
    stream.read_until(lambda: stream.messages[channel])
    case.revoke()
    case.ann.must("SandboxService/Update", sandboxId=case.sandbox, labels={"later": "1"})
    told = []
    try:
        for number in range(1 << 20):
            stream.send(ping=number)
            stream.read()
            told = stream.messages[channel]
    except mux.Closed as closed:
        equal(1008, closed.args[0], closed.args)
    except ConnectionError:
        pass
    else:
        raise AssertionError("it goes on")
    assert case.sandbox not in json.dumps(told), told


def a_forwarded_port_closes():
    case = Case()

    def addresses():
        return {each["address"] for each in root("PortService/List", sandboxId=case.sandbox).get("ports", [])}

    before = addresses()
    wire = stream_of(case, "PortService/Forward", sandboxId=case.sandbox, port=8000)
    is_begun(wire, "127.0.0.1:")
    (address,) = addresses() - before
    case.revoke()
    assert "unauthenticated" in wire.rest()
    until(lambda: address not in addresses())
    try:
        socket.create_connection(("127.0.0.1", int(address.rpartition(":")[2]))).close()
    except ConnectionRefusedError:
        return
    raise AssertionError("the port is open")


SERVER = """
import socket
listener = socket.create_server(("127.0.0.1", 8001))
while True:
    connection = listener.accept()[0]
    if not connection.recv(65536):  # asks whether there is a service
        continue
    connection.sendall(b"HTTP/1.1 101 Switching Protocols\\r\\nConnection: Upgrade\\r\\nUpgrade: websocket\\r\\n\\r\\nready")
    try:
        while connection.recv(1):
            connection.sendall(b"tick")
    except OSError:
        pass
"""


def a_websocket_of_a_port_ends():
    """While both sides send."""
    case = Case()
    case.ann.must("ProcessService/Launch", sandboxId=case.sandbox, port=8001, ready={"timeoutMs": 60000}, process={
        "args": ["python3", "-c", SERVER]})
    for secret in ("Holt_Token", "Cookie"):
        case = Case()
        wire = Wire(case, "GET", "/", Host=f"8001-{case.sandbox.replace('-', '')}.localhost", Connection="Upgrade", Upgrade="websocket",
                    Sec_WebSocket_Version="13", Sec_WebSocket_Key="AAAAAAAAAAAAAAAAAAAAAA==",
                    **{secret: ("holt-token=" if secret == "Cookie" else "") + case.secret})
        is_begun(wire, "ready")
        case.revoke()
        try:
            while True:
                wire.sock.sendall(b"x")
                if not wire.sock.recv(65536):
                    break
        except ConnectionError:
            pass


def a_reply_of_a_port_ends():
    """While the server at the port keeps sending."""
    case = Case()
    case.ann.must("ProcessService/Launch", sandboxId=case.sandbox, port=8002, ready={"timeoutMs": 60000}, process={
        "args": ["python3", "-c", SERVER.replace("8001", "8002").replace("101 Switching Protocols", "200 OK")
                 .replace("while connection.recv(1)", "while True").replace("Upgrade", "X")]})
    wire = Wire(case, "GET", "/", Host=f"8002-{case.sandbox.replace('-', '')}.localhost", Holt_Token=case.secret)
    is_begun(wire, "ticktick")
    case.revoke()
    wire.rest()


def a_call_of_mcp_ends():
    case = Case()
    accept = {"Accept": "application/json, text/event-stream", "Content_Type": "application/json"}
    client = Client(case.secret)
    session = client.mcp("initialize", "/mcp?sandbox=" + case.sandbox, "", protocolVersion="2025-11-25").session
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
        "name": "bash", "_meta": {"progressToken": "p"},
        "arguments": {"cmd": "touch /workspace/mcp; while echo loud; do sleep 0.1; done", "timeout_ms": 3600000}}}).encode()
    wire = Wire(case, "POST", "/mcp", **accept, Content_Length=len(body), Mcp_Session_Id=session)
    wire.sock.sendall(body)
    begun(case, "/workspace/mcp")
    case.revoke()
    text = wire.rest()
    assert '"exitCode"' not in text, text[-500:]


if __name__ == "__main__":
    globals()[sys.argv[1]]()
