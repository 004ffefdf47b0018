"""Proxies of the network tests, to be run in the namespace of world.py: SOCKS5 and HTTP CONNECT, with
and without a login, and some that fail in every way. Also the name server of a private zone. Every
request is a line of the log: "PORT USER TARGET".

    proxies.py LOG    prints "ready" when all of them listen
"""
import base64
import socket
import struct
import sys
import threading
import time

import world

LOGINS = {1081: ("alice", "s3cret of alice"), 1082: ("bob", "s3cret-of-bob"), 3129: ("carol", "s3cret:of carol")}
ZONE = "10.1.2.3"
log_lock = threading.Lock()
log_file = None


def log(*words):
    with log_lock:
        log_file.write(" ".join(str(word) for word in words) + "\n")
        log_file.flush()


def take(client, count):
    data = b""
    while len(data) < count:
        more = client.recv(count - len(data))
        if not more:
            raise OSError("closed")
        data += more
    return data


def move(source, sink):
    try:
        while True:
            data = source.recv(65536)
            if not data:
                break
            sink.sendall(data)
        sink.shutdown(socket.SHUT_WR)
    except OSError:
        for each in source, sink:
            try:
                each.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass


def relay(client, server):
    thread = threading.Thread(target=move, args=(server, client), daemon=True)
    thread.start()
    move(client, server)
    thread.join()
    server.close()


def socks_head(client, port):
    """Reads up to the request; returns user and target."""
    user, login = "-", LOGINS.get(port)
    version, count = take(client, 2)
    methods = take(client, count)
    assert version == 5
    if login:
        if 2 not in methods:
            client.sendall(b"\5\xff")
            raise OSError("no login")
        client.sendall(b"\5\2")
        _, length = take(client, 2)
        user = take(client, length).decode()
        password = take(client, take(client, 1)[0]).decode()
        if (user, password) != login:
            log(port, user, "refused")
            client.sendall(b"\1\1")
            raise OSError("wrong login")
        client.sendall(b"\1\0")
    else:
        client.sendall(b"\5\0")
    _, command, _, kind = take(client, 4)
    assert command == 1
    if kind == 3:
        host = take(client, take(client, 1)[0]).decode()
    else:
        host = socket.inet_ntop(socket.AF_INET if kind == 1 else socket.AF_INET6, take(client, 4 if kind == 1 else 16))
    target, = struct.unpack(">H", take(client, 2))
    log(port, user, f"{host}:{target}")
    return host, target


def socks(client, port):
    host, target = socks_head(client, port)
    try:
        server = socket.create_connection((host, target), timeout=60)
        server.settimeout(None)
    except OSError:
        client.sendall(b"\5\5\0\1" + bytes(6))
        return
    # in pieces, and with the longest kind of address
    for part in (b"\5", b"\0\0", b"\3", b"\5bound", b"\0\0"):
        client.sendall(part)
        time.sleep(0.01)
    relay(client, server)


def http_head(client, port):
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        head += take(client, 1)
    lines = head.decode().split("\r\n")
    method, where, _ = lines[0].split(" ")
    assert method == "CONNECT"
    fields = {k.lower(): v.strip() for k, v in (line.split(":", 1) for line in lines[1:] if line)}
    kind, _, login = fields.get("proxy-authorization", "- ").partition(" ")
    user, _, password = base64.b64decode(login).decode().partition(":")
    if port in LOGINS and (kind != "Basic" or (user, password) != LOGINS[port]):
        log(port, user or "-", "refused")
        client.sendall(b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 4\r\n\r\nnope")
        raise OSError("wrong login")
    log(port, user or "-", where)
    return where.rsplit(":", 1)


def http(client, port):
    host, target = http_head(client, port)
    try:
        server = socket.create_connection((host.strip("[]"), int(target)), timeout=60)
        server.settimeout(None)
    except OSError:
        client.sendall(b"HTTP/1.1 502 Bad Gateway\r\n\r\n")
        return
    client.sendall(b"HTTP/1.0 200 Connection ")
    time.sleep(0.01)
    client.sendall(b"established\r\nX-Long: " + b"x" * 4000 + b"\r\n\r\n")
    relay(client, server)


def socks_reply(reply):
    def handle(client, port):
        socks_head(client, port)
        client.sendall(reply)
        client.recv(1)
    return handle


def http_reply(reply):
    def handle(client, port):
        http_head(client, port)
        client.sendall(reply)
        client.recv(1)
    return handle


def silent(client, port):
    log(port, "-", "silent")
    while client.recv(4096):
        pass


def drip(client, port):
    http_head(client, port)
    client.sendall(b"HTTP/1.1 200 OK\r\nX: ")
    while True:
        client.sendall(b"x")
        time.sleep(0.2)


HANDLERS = {
    1080: socks, 1081: socks, 1082: socks, 3128: http, 3129: http,
    2100: lambda client, port: None,
    2101: lambda client, port: client.sendall(b"SSH-2.0-not-a-proxy\r\n"),
    2102: socks_reply(b""),
    2103: socks_reply(b"\5\0\0\7" + bytes(6)),
    2104: socks_reply(b"\4\0\0\1" + bytes(6)),
    2105: lambda client, port: client.sendall(b"\5\2"),
    2106: silent,
    2107: drip,
    2110: http_reply(b"HTTP/1.1 403 Forbidden\r\n\r\n"),
    2111: http_reply(b"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n"),
    2112: http_reply(b"HTTP/1.1 502 Bad Gateway\r\n\r\n"),
    2113: http_reply(b"HTTP/1.1 200 OK\r\nX: " + b"x" * 100000 + b"\r\n\r\n"),
    2114: http_reply(b"\0" * 100),
    2115: http_reply(b"HTTP/1.1 2000 OK\r\n\r\n"),
    2116: http_reply(b"200 OK\r\n\r\n" + b"x" * 40),
    **{2000 + code: socks_reply(bytes([5, code, 0, 1]) + bytes(6)) for code in range(1, 10)},
}


def serve(port, handle):
    sock = world.listener(port)

    def one(client):
        try:
            handle(client, port)
        except (OSError, AssertionError, ValueError):
            pass
        finally:
            client.close()

    def loop():
        while True:
            client, _ = sock.accept()
            threading.Thread(target=one, args=(client,), daemon=True).start()
    threading.Thread(target=loop, daemon=True).start()


def serve_zone():
    world.ADDRESSES.update({"db.corp.test": ["10.1.2.3"], "www.corp.test": ["93.184.216.34"],
                            "proxy.corp.test": ["93.184.216.35"]})
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sock.bind((ZONE, 53))

    def loop():
        while True:
            data, peer = sock.recvfrom(4096)
            sock.sendto(world.answer(data), peer)
    threading.Thread(target=loop, daemon=True).start()


def main():
    global log_file
    log_file = open(sys.argv[1], "w")
    world.log_file = open(sys.argv[1] + ".zone", "w")
    serve_zone()
    for port, handle in HANDLERS.items():
        serve(port, handle)
    print("ready", flush=True)
    while True:
        time.sleep(3600)


if __name__ == "__main__":
    main()
