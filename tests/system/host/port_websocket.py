"""A WebSocket's two ends, as little of RFC 6455 as will do: `server PORT` or `client HOST:PORT [NAME]`.
The client sends messages of several sizes, masked as they must be; the server sends each back."""

import base64
import hashlib
import os
import socket
import struct
import sys

MAGIC = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
BINARY, CLOSE = 2, 8


def head(stream):
    lines = iter(lambda: stream.readline().strip(), b"")
    first = next(lines)
    return first, {name.lower(): value for name, value in (line.split(b": ", 1) for line in lines)}


def receive(stream):
    first, size = stream.read(2)
    masked, size = size & 0x80, size & 0x7F
    if size == 126:
        (size,) = struct.unpack(">H", stream.read(2))
    elif size == 127:
        (size,) = struct.unpack(">Q", stream.read(8))
    key = stream.read(4) if masked else bytes(4)
    data = stream.read(size)
    pad = (key * (size // 4 + 1))[:size]
    return first & 15, (int.from_bytes(data, "big") ^ int.from_bytes(pad, "big")).to_bytes(size, "big")


def send(stream, opcode, data, key=None):
    size = len(data)
    mask = 0x80 if key else 0
    if size < 126:
        header = struct.pack(">BB", 0x80 | opcode, mask | size)
    elif size < 65536:
        header = struct.pack(">BBH", 0x80 | opcode, mask | 126, size)
    else:
        header = struct.pack(">BBQ", 0x80 | opcode, mask | 127, size)
    if key:
        pad = (key * (size // 4 + 1))[:size]
        data = (int.from_bytes(data, "big") ^ int.from_bytes(pad, "big")).to_bytes(size, "big")
    stream.write(header + (key or b"") + data)
    stream.flush()


def accept_of(key):
    return base64.b64encode(hashlib.sha1(key + MAGIC).digest())


def serve(port):
    listener = socket.create_server(("127.0.0.1", port))
    while True:
        with listener.accept()[0] as connection, connection.makefile("rwb") as stream:
            _, fields = head(stream)
            accept = accept_of(fields[b"sec-websocket-key"])
            stream.write(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n"
                         b"Connection: Upgrade\r\nSec-WebSocket-Accept: " + accept + b"\r\n\r\n")
            stream.flush()
            opcode = BINARY
            while opcode != CLOSE:
                opcode, data = receive(stream)
                send(stream, opcode, data)


def ask(address, name):
    host, port = address.rsplit(":", 1)
    with socket.create_connection((host, int(port))) as connection, \
            connection.makefile("rwb") as stream:
        key = base64.b64encode(os.urandom(16))
        stream.write(b"GET /chat HTTP/1.1\r\nHost: " + name.encode() +
                     b"\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Key: " + key +
                     b"\r\nSec-WebSocket-Version: 13\r\n\r\n")
        stream.flush()
        first, fields = head(stream)
        assert b"101" in first, first
        assert fields[b"sec-websocket-accept"] == accept_of(key)
        for size in (0, 5, 125, 126, 70000, 1000000):
            data = os.urandom(size)
            send(stream, BINARY, data, os.urandom(4))
            assert receive(stream) == (BINARY, data), size
        send(stream, CLOSE, b"\x03\xe8", os.urandom(4))
        assert receive(stream) == (CLOSE, b"\x03\xe8")
        assert stream.read(1) == b""


if sys.argv[1] == "server":
    serve(int(sys.argv[2]))
else:
    ask(sys.argv[2], sys.argv[-1])
