"""All hosts that the sandboxes of a network test could reach, in a network namespace without a way
out: a name server, HTTP, TLS, a server that speaks first, an echo. Every connection and query is a
line of the log, so that a test can say what was never sent.

    world.py DIRECTORY    prints "ready" when all of them listen
"""
import os
import socket
import ssl
import struct
import subprocess
import sys
import threading
import time

DNS, DNS_V6 = "93.184.0.53", "2606:2800:1::2"
ADDRESSES = {
    "example.com": ["93.184.216.34", "2606:2800::34"],
    "www.example.com": ["93.184.216.34"],
    "other.test": ["93.184.216.35"],
    "shared.test": ["93.184.216.34"],
    "v6.test": ["2606:2800::66"],
    "two.test": ["93.184.216.99", "93.184.216.34"],
    "private.test": ["10.1.2.3"],
    "metadata.test": ["169.254.169.254"],
    "host.test": ["93.184.0.1"],
    "mapped.test": ["::ffff:10.1.2.3"],
    "loop.test": ["127.0.0.1"],
    "ssh.test": ["93.184.216.36"],
    "silent.test": ["93.184.216.37"],
    "cut.test": ["93.184.216.34"],
    "crowd.test": ["93.184.216.34"],
    "endless.test": ["93.184.216.34"],
    "doh.test": ["93.184.216.35"],
    "files.test": ["93.184.216.37"],
    "four.test": ["93.184.216.34"],
    # Names that a rule for *.wild.test allows, with addresses that it must not lead to.
    "private.wild.test": ["10.1.2.3", "fd00::1"],
    "metadata.wild.test": ["169.254.169.254", "fd00:ec2::254"],
    "loop.wild.test": ["127.0.0.1", "::1"],
    "host.wild.test": ["93.184.0.1", "2606:2800:1::1"],
    "mapped.wild.test": ["::ffff:10.1.2.3", "64:ff9b::10.1.2.3", "fe80::1"],
    "mixed.wild.test": ["10.1.2.3", "93.184.216.34"],
}
TYPES = {"A": 1, "CNAME": 5, "TXT": 16, "AAAA": 28, "SVCB": 64, "HTTPS": 65}
log_lock = threading.Lock()
log_file = None
files = "/nowhere"
flips = {}


def log(*words):
    with log_lock:
        log_file.write(" ".join(str(word) for word in words) + "\n")
        log_file.flush()


def encode(name):
    return b"".join(bytes([len(p)]) + p.encode() for p in name.split(".") if p) + b"\0"


def addresses_of(name):
    if name in ("flip.test", "flip.wild.test"):  # another address for each query, with TTL 0
        flips[name] = flips.get(name, 0) + 1
        return ["93.184.216.34"] if flips[name] == 1 else ["10.1.2.3"]
    if name.endswith(".wild.test"):
        return ADDRESSES.get(name, ["93.184.216.34"])
    return ADDRESSES.get(name)


def answer(query, is_stream=False):
    ident, = struct.unpack(">H", query[:2])
    at, labels = 12, []
    while query[at]:
        labels.append(query[at + 1:at + 1 + query[at]].decode("latin1"))
        at += query[at] + 1
    kind, = struct.unpack(">H", query[at + 1:at + 3])
    question = query[12:at + 5]
    name = ".".join(labels).lower()
    log("dns", name, kind)
    found = addresses_of(name)
    records = []
    ttl = 0 if name.startswith("flip.") else 30
    if name == "alias.test":
        records.append((encode(name), 5, encode("example.com")))
        found, name = ADDRESSES["example.com"], "example.com"
    for address in found or []:
        v6 = ":" in address
        if kind == TYPES["AAAA" if v6 else "A"]:
            packed = socket.inet_pton(socket.AF_INET6 if v6 else socket.AF_INET, address)
            records.append((encode(name), kind, packed))
    if kind == TYPES["TXT"] and found:
        records.append((encode(name), kind, b"\x05hello"))
    if kind in (TYPES["HTTPS"], TYPES["SVCB"]) and found:  # with a hint that leads elsewhere, and keys for ECH
        hint = struct.pack(">HH", 4, 4) + socket.inet_aton("93.184.216.35")
        records.append((encode(name), kind, b"\0\1\0" + hint + struct.pack(">HH", 5, 3) + b"ech"))
    # "There is more, over TCP", where one of them has it and the other is cut again.
    long = {"cut.test": 60, "crowd.test": 100}
    cut = 0x200 if name == "endless.test" or (name in long and not is_stream) else 0
    if name in long and is_stream and kind == TYPES["A"]:
        records = [(encode(name), kind, bytes([93, 184, 220, i + 1])) for i in range(long[name])]
    head = struct.pack(">HHHHHH", ident, 0x8180 | cut | (0 if found else 3), 1, len(records), 0, 0)
    body = b"".join(owner + struct.pack(">HHIH", rtype, 1, ttl, len(data)) + data
                    for owner, rtype, data in records)
    return head + question + body


def serve_dns(family, address):
    sock = socket.socket(family, socket.SOCK_DGRAM)
    sock.bind((address, 53))

    def loop():
        while True:
            data, peer = sock.recvfrom(4096)
            try:
                sock.sendto(answer(data), peer)
            except (IndexError, struct.error):
                log("dns bad")
    threading.Thread(target=loop, daemon=True).start()


def listener(port, address="::"):
    sock = socket.socket(socket.AF_INET6, socket.SOCK_STREAM)
    sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    sock.bind((address, port))
    sock.listen(1024)
    return sock


def serve(port, handle, address="::"):
    sock = listener(port, address)

    def one(client):
        try:
            handle(client)
        except (OSError, ssl.SSLError):
            pass
        finally:
            client.close()

    def loop():
        while True:
            client, _ = sock.accept()
            log("tcp", client.getsockname()[0].replace("::ffff:", ""), port)
            threading.Thread(target=one, args=(client,), daemon=True).start()
    threading.Thread(target=loop, daemon=True).start()


def file_of(path):
    """The file below DIRECTORY/files that a path names, for the registries of clients_test."""
    full = os.path.realpath(os.path.join(files, path.split("?")[0].lstrip("/")))
    for each in (full, os.path.join(full, "index.html")):
        if each.startswith(files + "/") and os.path.isfile(each):
            return each
    return None


def handle_http(client, scheme="http"):
    buffer = b""
    while True:
        while b"\r\n\r\n" not in buffer:
            data = client.recv(65536)
            if not data:
                return
            buffer += data
        head, buffer = buffer.split(b"\r\n\r\n", 1)
        lines = head.decode("latin1").split("\r\n")
        fields = {k.lower(): v.strip() for k, v in (line.split(":", 1) for line in lines[1:])}
        length = int(fields.get("content-length", 0))
        while len(buffer) < length:
            data = client.recv(65536)
            if not data:
                return
            buffer += data
        buffer = buffer[length:]
        if fields.get("expect"):
            client.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
        log(scheme, fields.get("host", "-"), lines[0])
        if "authorization" in fields:
            log("authorization", fields.get("host", "-"), fields["authorization"], fields.get("x-team", "-"))
        if fields.get("upgrade"):
            client.sendall(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n")
            while True:
                data = client.recv(65536)
                if not data:
                    return
                log("upgraded", len(data))
                client.sendall(data)
        method, path = lines[0].split(" ")[:2]
        found = file_of(path)
        if found:
            with open(found, "rb") as file:
                body = file.read()
            kind = b"text/html" if found.endswith(".html") else b"application/octet-stream"
            reply = b"HTTP/1.1 200 OK\r\nContent-Type: %s\r\nContent-Length: %d\r\n\r\n" % (kind, len(body))
            reply += body if method != "HEAD" else b""
        elif fields.get("host", "").startswith("files.test"):
            reply = b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"
        elif path.startswith("/redirect"):
            reply = b"HTTP/1.1 302 Found\r\nLocation: http://other.test/\r\nContent-Length: 0\r\n\r\n"
        elif path.startswith("/reflect"):
            reply = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(head) + head
        else:
            size = int(path[6:]) if path.startswith("/size/") else 0
            body = b"x" * size if size else f"{scheme} {fields.get('host')} {length}\n".encode()
            reply = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body
        client.sendall(reply)
        if lines[0].endswith("HTTP/1.0"):
            return


def handle_banner(client):
    client.sendall(b"SSH-2.0-world\r\n")
    while True:
        data = client.recv(65536)
        if not data:
            return
        log("banner got", len(data), data[:1].hex())
        client.sendall(data)


def handle_echo(client):
    while True:
        data = client.recv(65536)
        if not data:
            return
        client.sendall(data)


def handle_dns(client):
    """The name server over TCP; on other addresses an echo."""
    if client.getsockname()[0] != "::ffff:" + DNS:
        handle_echo(client)
        return
    data = b""
    while len(data) < 2 or len(data) < 2 + struct.unpack(">H", data[:2])[0]:
        more = client.recv(4096)
        if not more:
            return
        data += more
    reply = answer(data[2:], True)
    whole = struct.pack(">H", len(reply)) + reply
    for part in (whole[:1], whole[1:100], whole[100:]):  # in pieces
        client.sendall(part)
        time.sleep(0.02)


def handle_sink(client):
    total = 0
    while True:
        data = client.recv(1 << 20)
        if not data:
            break
        total += len(data)
    client.sendall(b"%d\n" % total)


def main():
    global log_file, files
    where = sys.argv[1]
    files = os.path.realpath(os.path.join(where, "files"))
    log_file = open(os.path.join(where, "world.log"), "w")
    key, cert = os.path.join(where, "key.pem"), os.path.join(where, "cert.pem")
    names = ",".join(f"DNS:{name}" for name in [*ADDRESSES, "*.wild.test", "alias.test"])
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
                    "-nodes", "-keyout", key, "-out", cert, "-days", "2", "-subj", "/CN=world",
                    "-addext", "subjectAltName=" + names], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)

    def handle_tls(client):
        with context.wrap_socket(client, server_side=True) as wrapped:
            handle_http(wrapped, "https")
    serve_dns(socket.AF_INET, DNS)
    serve_dns(socket.AF_INET6, DNS_V6)
    serve(80, handle_http)
    serve(8080, handle_http)
    serve(443, handle_tls)
    serve(8443, handle_tls)
    serve(22, handle_banner, "::ffff:" + ADDRESSES["ssh.test"][0])  # clients_test has an sshd at another one
    serve(7, handle_echo)
    serve(9, handle_sink)
    serve(853, handle_echo)
    serve(53, handle_dns)
    print("ready", flush=True)
    while True:
        time.sleep(3600)


if __name__ == "__main__":
    main()
