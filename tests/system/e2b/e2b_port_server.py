"""A web server for the inside of a sandbox that says exactly what it is asked to say: `e2b_port_server.py PORT`."""
import hashlib, socket, sys, threading

LARGE = bytes(range(251)) * 4096  # 1 MiB, about
news = threading.Semaphore(0)

CANNED = {
    "/split": b"HTTP/1.1 200 OK\r\nX: a\rSet-Cookie: stolen=1\r\nContent-Length: 2\r\n\r\nok",
    "/control": b"HTTP/1.1 200 OK\r\nX: a\x01b\r\nContent-Length: 2\r\n\r\nok",
    "/two-lengths": b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 40\r\n\r\nok",
    "/length-and-chunks": b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "/unasked-upgrade": b"HTTP/1.1 101 Switching\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n",
    "/many-headers": b"HTTP/1.1 200 OK\r\n" + b"A: b\r\n" * 1000 + b"\r\n",
    "/large-header": b"HTTP/1.1 200 OK\r\nA: " + b"b" * 70000 + b"\r\n\r\n",
    "/no-http": b"220 mail.example.org\r\n",
    "/nothing": b"",
    "/two-replies": b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nfalse",
    "/bad-chunk": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\nzz\r\n",
    "/short": b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nok",
    "/short-chunks": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n",
    "/empty": b"HTTP/1.1 204 No Content\r\nX-Kept: yes\r\n\r\n",
    "/unchanged": b"HTTP/1.1 304 Not Modified\r\nETag: \"a\"\r\n\r\n",
    "/interim": b"HTTP/1.1 103 Early Hints\r\nLink: a\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
    "/trailer": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X\r\n\r\n2\r\nok\r\n0\r\nX: y\r\n\r\n",
    "/headers": (b"HTTP/1.1 418 Own Words\r\nx-lower: 1\r\nX-UPPER: 2\r\nSet-Cookie: a=b\r\nSet-Cookie: c=d\r\n"
                 b"Connection: close, X-Private\r\nX-Private: 1\r\nKeep-Alive: 5\r\nContent-Length: 2\r\n\r\nok"),
    "/old": b"HTTP/1.0 200 OK\r\nContent-Type: text/plain\r\n\r\n" + LARGE,
}


def body_of(stream, fields):
    """The pieces of a request's body, as they come."""
    if fields.get("transfer-encoding") == "chunked":
        while size := int(stream.readline(), 16):
            yield stream.read(size)
            stream.readline()
        stream.readline()
    else:
        left = int(fields.get("content-length", 0))
        while left and (data := stream.read1(min(left, 65536))):
            left -= len(data)
            yield data


def reply(stream, body, head=b""):
    stream.write(b"HTTP/1.1 200 OK\r\n" + head + b"Content-Length: %d\r\n\r\n" % len(body) + body)


def chunk(stream, data):
    stream.write(b"%x\r\n" % len(data) + data + b"\r\n")
    stream.flush()


def stream_head(stream, kind=b"text/event-stream"):
    stream.write(b"HTTP/1.1 200 OK\r\nContent-Type: " + kind + b"\r\nTransfer-Encoding: chunked\r\n\r\n")
    stream.flush()


def shout(stream):
    stream.write(b"HTTP/1.1 101 Switching Protocols\r\nupgrade: shout\r\nConnection: upgrade\r\nX-Own: 1\r\n\r\nHELLO")
    stream.flush()
    while data := stream.read1(65536):
        stream.write(data.upper())
        stream.flush()
    stream.write(b"BYE")


def answer(stream, verb, path, head, fields):
    if path == "/413":
        reply(stream, b"too much", b"Connection: close\r\n")
    elif path == "/shout":
        shout(stream)
    elif path == "/echo":
        stream_head(stream, b"application/octet-stream")
        for data in body_of(stream, fields):
            chunk(stream, data)
        chunk(stream, b"")
    elif path == "/news":
        stream_head(stream)
        for number in range(5):
            chunk(stream, b"data: %d\n\n" % number)
            news.acquire()
        chunk(stream, b"")
    elif path == "/next":
        news.release()
        reply(stream, b"")
    elif path == "/stall":
        stream_head(stream)
        chunk(stream, b"begun")
        threading.Event().wait()
    elif path == "/stall-old":
        stream.write(b"HTTP/1.0 200 OK\r\n\r\nbegun")
        stream.flush()
        threading.Event().wait()
    elif path == "/wait":
        threading.Event().wait()
    elif path.startswith("/large/"):
        count = int(path.removeprefix("/large/"))
        stream.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % (count * len(LARGE)))
        for _ in range(count if verb != "HEAD" else 0):
            stream.write(LARGE)
    elif path == "/digest":
        digest, size = hashlib.sha256(), 0
        for data in body_of(stream, fields):
            digest.update(data)
            size += len(data)
        reply(stream, f"{size} {digest.hexdigest()}".encode())
    elif path in CANNED:
        stream.write(CANNED[path])
    else:
        for _ in body_of(stream, fields):
            pass
        reply(stream, head)


def serve(connection):
    with connection, connection.makefile("rwb") as stream:
        lines = list(iter(stream.readline, b"\r\n"))
        verb, path, _ = lines[0].decode("latin-1").split(" ", 2)
        fields = {name.lower(): value.strip() for name, value in
                  (line.decode("latin-1").split(":", 1) for line in lines[1:])}
        try:
            answer(stream, verb, path, b"".join(lines), fields)
            stream.flush()
        except OSError:
            pass
        connection.shutdown(socket.SHUT_WR)


if __name__ == "__main__":
    listener = socket.create_server(("127.0.0.1", int(sys.argv[1])), backlog=128)
    while True:
        threading.Thread(target=serve, args=listener.accept()[:1], daemon=True).start()
