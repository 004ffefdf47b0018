"""The claims of tls_test: `tls.py CLAIM`. The daemon is at $port on loopback, its certificate in $cert; $pid is its
process, $most the number of TLS connections that it allows."""
import os, resource, socket, ssl, subprocess, sys, time

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


def queues(sock):
    """The daemon's socket of this connection: whether it is open, and the bytes that our side has not read."""
    def row(local, remote):
        with open("/proc/net/tcp") as table:
            for line in table:
                fields = line.split()
                if fields[1].endswith(f":{local:04X}") and fields[2].endswith(f":{remote:04X}"):
                    sent, received = (int(number, 16) for number in fields[4].split(":"))
                    return fields[9] != "0", sent, received
        return False, 0, 0

    own = sock.getsockname()[1]
    is_open, sent, _ = row(PORT, own)
    return is_open, sent + row(own, PORT)[2]


def request_for(path, how):
    return (f"GET {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {os.environ['token']}\r\n"
            f"Connection: {how}\r\n\r\n").encode()


def stuck():
    """A connection whose last reply the server has sent and closed after, and the front cannot pass on: returns it and
    the number of its replies."""
    sock = CONTEXT.wrap_socket(connect(), server_hostname="localhost")
    count, queued, now = 0, -1, 0
    while now > queued:
        queued = queues(sock)[1]
        sock.sendall(request_for("/metrics", "keep-alive"))
        count += 1
        for _ in range(200):
            now = queues(sock)[1]
            if now > queued:
                break
            time.sleep(0.005)
    sock.sendall(request_for("/healthz", "close"))
    return sock, count + 1


def a_client_that_never_reads_is_closed_after_the_server():
    """One that reads slowly at the same time gets every reply."""
    (silent, _), (slow, count) = stuck(), stuck()
    data = b""
    end = time.monotonic() + 150  # a bound for polling
    while queues(silent)[0]:
        assert time.monotonic() < end, "the connection is still open"
        had = len(data)
        while len(data) < had + 65536 and (more := slow.recv(16384)):
            data += more
        time.sleep(1)
    time.sleep(3)
    while more := slow.recv(65536):
        data += more
    equal(count, data.count(b"HTTP/1.1 200 "))
    assert data.endswith(b"ok\n"), data[-100:]
    is_well()


def without_descriptors_the_daemon_rests():
    def ticks():
        used = 0
        for task in os.listdir(f"/proc/{os.environ['pid']}/task"):
            with open(f"/proc/{os.environ['pid']}/task/{task}/stat") as stat:
                name, _, rest = stat.read().rpartition(")")
                if name.endswith("(holt-tls"):
                    used += int(rest.split()[11]) + int(rest.split()[12])
        return used

    pid = int(os.environ["pid"])
    soft, hard = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (8, hard))
    try:
        with connect():
            before = ticks()
            time.sleep(2)
            used = ticks() - before
    finally:
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (soft, hard))
    assert used < os.sysconf("SC_CLK_TCK") // 5, used
    is_well()


globals()[sys.argv[1]]()
