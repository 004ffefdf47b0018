"""The claims of tls_test: `tls.py CLAIM`. The daemon is at $port on loopback, its certificate in $cert; $pid is its
process, $most the number of TLS connections that it allows."""
import os, socket, ssl, subprocess, sys, time

from api import equal

PORT = int(os.environ["port"])
CONTEXT = ssl.create_default_context(cafile=os.environ["cert"])
# The start of a ClientHello: a record of 512 bytes, of which nothing follows.
HELLO = bytes.fromhex("16030102000100")


def connect(source="127.0.0.1"):
    return socket.create_connection(("127.0.0.1", PORT), source_address=(source, 0))


def ask(source="127.0.0.1", context=CONTEXT):
    with context.wrap_socket(connect(source), server_hostname="localhost") as sock:
        sock.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        return b"".join(iter(lambda: sock.recv(65536), b""))


def is_well(source="127.0.0.1"):
    answer = ask(source)
    assert answer.startswith(b"HTTP/1.1 200 ") and answer.endswith(b"ok\n"), answer


def rest_of(sock):
    """All that still comes; a reset is an end, too."""
    try:
        return b"".join(iter(lambda: sock.recv(65536), b""))
    except ConnectionResetError:
        return b""


def descriptors():
    return len(os.listdir(f"/proc/{os.environ['pid']}/fd"))


def plain_text_is_refused():
    for text in (b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", b"\r\n\r\n\r\n\r\n", b"\0" * 100000, b"SSH-2.0-x\r\n"):
        with connect() as sock:
            sock.sendall(text)
            assert b"HTTP" not in rest_of(sock)
    is_well()


def a_record_that_is_too_large_is_refused():
    with connect() as sock:
        sock.sendall(b"\x16\x03\x01\xff\xff" + b"\x01" * 65535)
        rest_of(sock)
    is_well()


def old_protocols_and_renegotiation_are_refused():
    for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
        context = ssl.create_default_context(cafile=os.environ["cert"])
        context.minimum_version = context.maximum_version = version
        assert ask(context=context).startswith(b"HTTP/1.1 200 ")
    client = subprocess.Popen(["openssl", "s_client", "-tls1_2", "-connect", f"127.0.0.1:{PORT}"], stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    client.stdin.write(b"R\n")
    client.stdin.flush()
    # It goes on only if the server has agreed.
    said, data = b"", b"x"
    while data and b"no renegotiation" not in said:
        data = os.read(client.stdout.fileno(), 65536)
        said += data
        assert b"HTTP/1.1" not in said, said
        if b"RENEGOTIATING" in data:
            client.stdin.write(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
            try:
                client.stdin.flush()
            except BrokenPipeError:
                break
    client.kill()
    client.wait()
    is_well()


def a_handshake_has_its_time():
    """One that goes on byte by byte ends all the same, and one that begins with nothing."""
    slow, silent = connect(), connect()
    slow.setblocking(False)
    sent = 0
    while True:
        try:
            slow.send(HELLO[sent % len(HELLO):][:1])
            sent += 1
            if not slow.recv(1):
                break
        except BlockingIOError:
            time.sleep(0.2)
        except (ConnectionError, OSError):
            break
    equal(b"", rest_of(silent))
    is_well()


def half_open_connections_keep_nobody_out():
    """Neither many of one address nor many of all, and no more of them are kept than is allowed."""
    before, most = descriptors(), int(os.environ["most"])
    crowd = []
    for number in range(most * 2):
        sock = connect()
        sock.sendall(HELLO)
        crowd.append(sock)
    is_well("127.0.0.2")
    is_well()
    for number in range(most * 2):
        sock = connect(f"127.0.1.{1 + number % 50}")
        sock.sendall(HELLO)
        crowd.append(sock)
    is_well("127.0.0.2")
    is_well()
    assert descriptors() - before <= most, (descriptors(), before, most)
    for sock in crowd:
        sock.close()


def a_client_that_does_not_read_holds_the_sender_back():
    """What is sent to it stays where it comes from, but for the buffers of sockets."""
    def resident():
        with open(f"/proc/{os.environ['pid']}/statm") as statm:
            return int(statm.read().split()[1]) * 4096

    request = f"GET /metrics HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {os.environ['token']}\r\n\r\n".encode()
    socks = []
    before = resident()
    for _ in range(20):
        sock = CONTEXT.wrap_socket(connect(), server_hostname="localhost")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        # A thousand requests on one connection: the replies are larger than its buffers.
        sock.setblocking(False)
        try:
            for _ in range(1000):
                sock.send(request)
        except (ssl.SSLWantWriteError, BlockingIOError):
            pass
        socks.append(sock)
    is_well()
    assert resident() - before < 20 * 1024 * 1024, resident() - before
    for sock in socks:
        sock.close()
    is_well()


globals()[sys.argv[1]]()
