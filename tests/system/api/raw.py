"""Raw streams (src/wire/raw.h) of the daemon at $HOLT_HOST, for the tests in Python."""
import json, os, socket, struct, time

from api import Connection

STDOUT, STDERR, EVENT, END, STDIN, STDIN_EOF = range(1, 7)


def frame(kind, data=b""):
    return struct.pack("<BxxxI", kind, len(data)) + data


class Raw:
    def __init__(self, method, early=b"", **fields):
        self.sock, head, self.rest = Raw.ask(method, "holt-stream/1", early, **fields)
        assert head.startswith(b"HTTP/1.1 101 "), head
        assert b"\r\nupgrade: holt-stream/1\r\n" in head.lower() + b"\r\n", head
        self.kinds, self.events, self.end = [], [], None
        self.stdout = self.stderr = b""
        self.read_frame()

    @staticmethod
    def ask(method, upgrade, early, **fields):
        """The socket, the head of the reply, and what came behind it."""
        sock = socket.socket(socket.AF_UNIX)
        sock.connect(os.environ["HOLT_HOST"].removeprefix("unix://"))
        text = json.dumps(fields).encode()
        text = struct.pack(">BI", 0, len(text)) + text
        head = (f"POST /holt.v1.{method} HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\n"
                f"Upgrade: {upgrade}\r\nContent-Type: application/connect+json\r\n"
                f"Content-Length: {len(text)}\r\n\r\n")
        sock.sendall(head.encode() + text + early)
        received = b""
        while b"\r\n\r\n" not in received:
            more = sock.recv(4096)
            assert more, received
            received += more
        head, _, rest = received.partition(b"\r\n\r\n")
        return sock, head, rest

    @staticmethod
    def refused(method, **fields):
        """The status and the error of a call that gets no raw stream."""
        sock, head, rest = Raw.ask(method, "holt-stream/1", b"", **fields)
        length = next(int(line.split(b":")[1]) for line in head.split(b"\r\n")
                      if line.lower().startswith(b"content-length:"))
        while len(rest) < length:
            rest += sock.recv(4096)
        return int(head.split()[1]), json.loads(rest)

    def send(self, kind, data=b""):
        self.sock.sendall(frame(kind, data))

    def read_exactly(self, size):
        parts = [self.rest]
        have = len(self.rest)
        while have < size:
            part = self.sock.recv(1 << 20)
            assert part, "the daemon hung up"
            parts.append(part)
            have += len(part)
        found = b"".join(parts)
        self.rest = found[size:]
        return found[:size]

    def read_frame(self):
        kind, size = struct.unpack("<BxxxI", self.read_exactly(8))
        data = self.read_exactly(size)
        self.kinds.append(kind)
        if kind == STDOUT:
            self.stdout += data
        elif kind == STDERR:
            self.stderr += data
        elif kind == EVENT:
            self.events.append(json.loads(data))
        else:
            assert kind == END, kind
            self.end = json.loads(data)

    def read_all(self):
        while self.end is None:
            self.read_frame()
        assert not self.rest and not self.sock.recv(1), "there is more behind the end"

    def process(self):
        return self.events[0]["started"]["processId"]


def wait_until_ended(sandbox, process):
    reply = Connection().call("ProcessService/Wait", sandboxId=sandbox, processId=process)
    return reply["ended"]


def daemon_bytes():
    """What the daemon has in memory."""
    with open(f"/proc/{os.environ['holtd_pid']}/statm") as statm:
        return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
