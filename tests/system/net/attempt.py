"""What attempts share: see attempts.py."""
import os
import socket
import struct

RESOLVER = ("192.0.2.53", 53)
ALLOWED = "93.184.216.34"  # example.com
OTHER = "93.184.216.35"    # other.test
TIMEOUT = 20
NOTATIONS = (OTHER, str(struct.unpack(">I", socket.inet_aton(OTHER))[0]), "0x5db8d823", "0135.0270.0330.0043",
             "93.184.55331", f"[::ffff:{OTHER}]", "[2606:2800::66]")
attempts = []


def attempt(function):
    attempts.append(function)
    return function


def resolve(name="example.com"):
    return socket.getaddrinfo(name, 80, socket.AF_INET, socket.SOCK_STREAM)[0][4][0]


def connect(address, port, family=socket.AF_INET):
    sock = socket.socket(family, socket.SOCK_STREAM)
    sock.settimeout(TIMEOUT)
    sock.connect((address, port))
    return sock


def refused_with(code, address, port, family=socket.AF_INET):
    """None if connect() fails with this error at once."""
    try:
        connect(address, port, family)
    except OSError as error:
        return None if error.errno == code else f"error {error}"
    return "connected"


def http(raw, host="example.com", port=80):
    """Sends bytes to an allowed host; the reply, or None if it is a refusal of Holt or a reset."""
    sock = connect(resolve(host), port)
    reply = b""
    try:
        sock.sendall(raw)
        while not (b"other.test" in reply and b"200 OK" in reply):
            data = sock.recv(65536)
            if not data:
                break
            reply += data
            sock.settimeout(1)  # the host keeps the connection: no more may come
    except TimeoutError:
        pass
    except OSError:
        return None
    finally:
        sock.close()
    return None if not reply or b"Holt:" in reply else reply


def dns(name, kind=1, raw=None, tcp=False):
    wire = raw or b"".join(bytes([len(p)]) + p.encode() for p in name.split(".")) + b"\0"
    query = struct.pack(">HHHHHH", 7, 0x100, 1, 0, 0, 1) + wire + struct.pack(">HH", kind, 1)
    query += b"\0" + struct.pack(">HHIH", 41, 1232, 0, 0)
    if tcp:
        sock = connect(*RESOLVER)
        sock.sendall(struct.pack(">H", len(query)) + query)
        data = sock.recv(2)
        return sock.recv(struct.unpack(">H", data)[0]) if len(data) == 2 else b""
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sock.settimeout(TIMEOUT)
    sock.sendto(query, RESOLVER)
    return sock.recvfrom(4096)[0]


def code_of(reply):
    return reply[3] & 15


def answers_of(reply):
    return struct.unpack(">H", reply[6:8])[0]


def leaked(reply):
    """None for a reply without data."""
    return None if answers_of(reply) == 0 else f"answers: {reply!r}"


def hello(name, ech=False, split=None, also=None, padding=0):
    """A ClientHello; split: bytes of each record; also: the name of a second extension."""
    extensions = struct.pack(">HH", 21, padding) + bytes(padding) if padding else b""
    if name is not None:
        text = name if isinstance(name, bytes) else name.encode()
        entry = b"\0" + struct.pack(">H", len(text)) + text
        extensions += struct.pack(">HHH", 0, len(entry) + 2, len(entry)) + entry
    if also is not None:
        entry = b"\0" + struct.pack(">H", len(also)) + also.encode()
        extensions += struct.pack(">HHH", 0, len(entry) + 2, len(entry)) + entry
    if ech:
        extensions += struct.pack(">HH", 0xfe0d, 8) + b"\0" * 8
    extensions += struct.pack(">HHBH", 43, 3, 2, 0x0304)
    body = struct.pack(">H", 0x0303) + os.urandom(32) + b"\0" + struct.pack(">HH", 2, 0x1301) + b"\1\0"
    body += struct.pack(">H", len(extensions)) + extensions
    message = b"\1" + struct.pack(">I", len(body))[1:] + body
    step = split or len(message)
    return b"".join(b"\x16\3\1" + struct.pack(">H", len(message[i:i + step])) + message[i:i + step]
                    for i in range(0, len(message), step))


def tls(raw, slowly=False):
    """What an allowed host answers to a ClientHello; None: a reset."""
    sock = connect(resolve(), 443)
    try:
        for part in ([raw[i:i + 1] for i in range(len(raw))] if slowly else [raw]):
            sock.sendall(part)
        return sock.recv(4096) or None
    except OSError:
        return None
    finally:
        sock.close()
