"""The multiplexed stream (src/api/mux/frame.h) of a daemon, for the tests in Python."""
import base64, hashlib, json, os, socket, ssl, struct, urllib.parse

EMPTY = 1005  # stands for a close frame without a code
TEXT, BINARY, CLOSE, PING, PONG = 1, 2, 8, 9, 10


class Refused(Exception):
    """The handshake did not give a WebSocket: its status, and the error."""


class Closed(Exception):
    """The daemon closed the WebSocket: the code, and the reason."""


def connect(address):
    url = urllib.parse.urlsplit(address)
    if url.scheme == "unix":
        sock = socket.socket(socket.AF_UNIX)
        sock.connect(url.path)
        return sock
    sock = socket.create_connection((url.hostname, url.port))
    if url.scheme == "https":
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        sock = context.wrap_socket(sock)
    return sock


class WebSocket:
    def __init__(self, address=None, headers=(), early=b"", **changes):
        """`changes` replace headers of the handshake; None leaves one out."""
        self.sock = connect(address or os.environ["HOLT_HOST"])
        self.rest = b""
        key = base64.b64encode(os.urandom(16)).decode()
        fields = {"Host": "localhost", "Connection": "keep-alive, Upgrade", "Upgrade": "websocket",
                  "Sec_WebSocket_Version": "13", "Sec_WebSocket_Key": key, **changes}
        lines = ["GET /holt.v1/stream HTTP/1.1"]
        lines += [f"{name.replace('_', '-')}: {value}" for name, value in fields.items() if value]
        self.sock.sendall("\r\n".join([*lines, *headers, "", ""]).encode() + early)
        while b"\r\n\r\n" not in self.rest:
            more = self.sock.recv(4096)
            assert more, self.rest
            self.rest += more
        head, _, self.rest = self.rest.partition(b"\r\n\r\n")
        status = int(head.split()[1])
        if status != 101:
            raise Refused(status, self.rest)
        digest = hashlib.sha1((key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11").encode()).digest()
        assert b"sec-websocket-accept: " + base64.b64encode(digest).lower() in head.lower(), head

    @staticmethod
    def frame(data, opcode=TEXT, fin=True, masked=True, reserved=0):
        head = bytes([fin << 7 | reserved << 4 | opcode])
        bit = 0x80 if masked else 0
        if len(data) < 126:
            head += bytes([bit | len(data)])
        elif len(data) < 65536:
            head += struct.pack(">BH", bit | 126, len(data))
        else:
            head += struct.pack(">BQ", bit | 127, len(data))
        if not masked:
            return head + data
        mask = os.urandom(4)
        whole = (mask * (len(data) // 4 + 1))[:len(data)]
        number = int.from_bytes(data, "big") ^ int.from_bytes(whole, "big")
        return head + mask + number.to_bytes(len(data), "big")

    def send_frame(self, data, **options):
        self.sock.sendall(self.frame(data, **options))

    def read_exactly(self, size):
        while len(self.rest) < size:
            more = self.sock.recv(1 << 20)
            if not more:
                raise Closed(None, "no close frame")
            self.rest += more
        data, self.rest = self.rest[:size], self.rest[size:]
        return data

    def read_frame(self):
        first, length = self.read_exactly(2)
        assert not length & 0x80, "a server does not mask"
        if length == 126:
            length, = struct.unpack(">H", self.read_exactly(2))
        elif length == 127:
            length, = struct.unpack(">Q", self.read_exactly(8))
        data = self.read_exactly(length)
        if first & 15 == CLOSE:
            raise Closed(struct.unpack(">H", data[:2])[0] if data else EMPTY, data[2:].decode())
        return first & 15, data


class Mux(WebSocket):
    """Channels by their number: messages[7], ends[7] (None until the end)."""

    def __init__(self, *args, **options):
        super().__init__(*args, **options)
        self.last, self.messages, self.ends, self.credits, self.pongs = 0, {}, {}, {}, []

    def send(self, **frame):
        self.send_frame(json.dumps(frame).encode())

    def open(self, call, message=None, **more):
        self.last += 1
        self.messages[self.last], self.ends[self.last], self.credits[self.last] = [], None, 0
        frame = {"id": self.last, "call": "holt.v1." + call, **more}
        self.send(**frame, **({} if message is None else {"message": message}))
        return self.last

    def read(self):
        """One frame, put where it belongs; returns its channel."""
        kind, data = self.read_frame()
        if kind != TEXT:
            return None
        frame = json.loads(data)
        channel = frame.get("id")
        if "pong" in frame:
            self.pongs.append(frame["pong"])
        if "message" in frame:
            self.messages[channel].append(frame["message"])
        if "credit" in frame:
            self.credits[channel] += frame["credit"]
        if "end" in frame:
            assert self.ends[channel] is None, f"channel {channel} ended twice"
            self.ends[channel] = frame["end"]
        return channel

    def read_until(self, condition):
        while not condition():
            self.read()

    def finish(self, channel):
        """Reads until the channel has ended: its messages, and the code of its error."""
        self.read_until(lambda: self.ends[channel] is not None)
        return self.messages[channel], self.ends[channel].get("error", {}).get("code")

    def call(self, method, **message):
        messages, code = self.finish(self.open(method, message))
        assert code is None, (method, code, self.ends[self.last])
        return messages[0]

    def sync(self):
        """Returns when the daemon has handled every frame that was sent before."""
        number = len(self.pongs) + 1000
        self.send(ping=number)
        self.read_until(lambda: number in self.pongs)


def closed_with(websocket):
    """The code and the reason of the close frame that follows whatever comes first."""
    try:
        while True:
            websocket.read_frame()
    except Closed as closed:
        return closed.args
