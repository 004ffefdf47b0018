"""Attempts by the kernel, the host and other sandboxes, and by many connections."""
import errno
import os
import socket
import struct
import subprocess
import threading

from attempt import *


@attempt
def host_address():
    return refused_with(errno.EACCES, "93.184.0.1", 8080)


@attempt
def loopback_of_the_host():
    return refused_with(errno.ECONNREFUSED, "127.0.0.1", 8080)


@attempt
def address_of_the_listener():
    try:
        sock = connect("192.0.2.53", 80)
        return sock.recv(1) or None
    except ConnectionResetError:
        return None


def made(kinds):
    """None if no socket of these kinds can be made."""
    for family, kind, protocol in kinds:
        try:
            socket.socket(family, kind, protocol)
            return f"a socket of family {family}, kind {kind}, protocol {protocol}"
        except OSError:
            pass
    return None


@attempt
def raw_sockets():
    return made(((socket.AF_INET, socket.SOCK_RAW, 255), (socket.AF_INET, socket.SOCK_RAW, 6), (socket.AF_INET6, socket.SOCK_RAW, 255),
                 (socket.AF_PACKET, socket.SOCK_RAW, 0), (socket.AF_PACKET, socket.SOCK_DGRAM, 0)))


@attempt
def icmp():
    """Neither the raw kind nor that of ping; what is answered to a ping of the host's root, egress_test looks at."""
    return made(((socket.AF_INET, socket.SOCK_RAW, 1), (socket.AF_INET, socket.SOCK_DGRAM, 1),
                 (socket.AF_INET6, socket.SOCK_RAW, 58), (socket.AF_INET6, socket.SOCK_DGRAM, 58)))


@attempt
def multicast_and_broadcast():
    for family, address in ((socket.AF_INET, ("224.0.0.251", 5353)), (socket.AF_INET, ("255.255.255.255", 67)),
                            (socket.AF_INET6, ("ff02::fb", 5353, 0, 1))):
        sock = socket.socket(family, socket.SOCK_DGRAM)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
        try:
            sock.sendto(b"x", address)
            return f"sent to {address}"
        except OSError:
            pass
    return None


@attempt
def multipath_tcp():
    """The same routes and the same listener are for subflows."""
    try:
        sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262)
    except OSError:
        return None
    try:
        sock.connect((OTHER, 80))
        return "connected"
    except OSError as error:
        if error.errno != errno.EACCES:
            return str(error)
    sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262)
    sock.settimeout(TIMEOUT)
    sock.connect((resolve(), 443))
    try:
        sock.sendall(hello("other.test"))
        return sock.recv(100) or None
    except OSError:
        return None


@attempt
def fast_open():
    """Data in the first packet."""
    sock = socket.socket()
    try:
        sock.sendto(b"GET / HTTP/1.0\r\nHost: other.test\r\n\r\n", socket.MSG_FASTOPEN, (resolve(), 80))
        sock.settimeout(TIMEOUT)
        got = sock.recv(100)
        return None if b"403" in got else got
    except OSError:
        return None


@attempt
def other_families():
    """Ways to the host or the network that have no routes."""
    for family, kind, protocol in ((40, socket.SOCK_STREAM, 0), (socket.AF_INET, socket.SOCK_STREAM, 132),
                                   (socket.AF_INET, 6, 33), (21, socket.SOCK_SEQPACKET, 0), (30, socket.SOCK_SEQPACKET, 0),
                                   (44, socket.SOCK_RAW, 0), (31, socket.SOCK_SEQPACKET, 0), (29, socket.SOCK_RAW, 1)):
        try:
            sock = socket.socket(family, kind, protocol)
        except OSError:
            continue
        try:
            sock.connect((2, 1024) if family == 40 else (OTHER, 80))
        except (OSError, TypeError) as error:
            if family != 40 and getattr(error, "errno", None) == errno.EACCES:
                continue
        return f"a socket of family {family}, protocol {protocol}"
    return None


def changed(*commands):
    """None if no command is let through and the other address is as far away as before."""
    for words in commands:
        if subprocess.run(words, capture_output=True).returncode == 0:
            return "done: " + " ".join(words)
    return refused_with(errno.EACCES, OTHER, 80)


@attempt
def routes_from_inside():
    return changed(["ip", "route", "add", "local", OTHER, "dev", "lo"], ["ip", "route", "replace", "default", "dev", "lo"],
                   ["ip", "route", "flush", "table", "local"], ["ip", "address", "add", OTHER + "/32", "dev", "lo"],
                   ["ip", "-6", "route", "add", "local", "2606:2800::66", "dev", "lo"],
                   ["ip", "link", "add", "out", "type", "dummy"], ["ip", "link", "set", "lo", "down"])


@attempt
def rules_from_inside():
    return changed(["ip", "rule", "add", "priority", "1", "table", "7"], ["ip", "rule", "del", "priority", "0"],
                   ["ip", "-6", "rule", "add", "priority", "1", "table", "7"],
                   ["sh", "-c", "echo 1 >/proc/sys/net/ipv4/ip_forward"],
                   ["sh", "-c", "echo 1 >/proc/sys/net/ipv4/conf/all/route_localnet"])


# --- the host and other sandboxes ------------------------------------------------------------------

def says(address, port, data=b"GET / HTTP/1.0\r\n\r\n"):
    """What somebody at this address says; None: nothing, and nobody is there."""
    try:
        sock = connect(address, port, socket.AF_INET6 if ":" in address else socket.AF_INET)
        sock.sendall(data)
        return sock.recv(100) or None
    except OSError:
        return None


def local_peer(path):
    sock = socket.socket(socket.AF_UNIX)
    try:
        sock.connect(path)
        return f"connected to {path!r}"
    except OSError:
        return None


@attempt
def api_of_the_daemon():
    """It listens at the loopback of the host."""
    port = int(os.environ["HOLT_TEST_API_PORT"])
    request = b"POST /holt.v1.SystemService/Info HTTP/1.0\r\nHost: 127.0.0.1\r\nContent-Length: 2\r\n\r\n{}"
    for address in ("127.0.0.1", "127.0.0.2", "::1", "93.184.0.1", "2606:2800:1::1", "0.0.0.0", "192.0.2.53"):
        got = says(address, port, request)
        if got:
            return f"{address}: {got!r}"
    return http(request.replace(b"127.0.0.1", b"127.0.0.1:%d" % port))


@attempt
def socket_of_the_daemon():
    """By its path on the host, by the root of other processes, and by what an open socket would show."""
    path = os.environ["HOLT_TEST_SOCKET"]
    for root in ("", "/proc/1/root", "/proc/self/root"):
        for each in (path, "/run/holt/holt.sock"):
            got = local_peer(root + each)
            if got:
                return got
    with open("/proc/net/unix") as lines:
        foreign = [line for line in lines if "holt.sock" in line]
    return foreign or None


@attempt
def other_sandboxes():
    """Another one listens at all its addresses, and at an abstract name."""
    port = int(os.environ["HOLT_TEST_OTHER_PORT"])
    for address in os.environ["HOLT_TEST_OTHER_ADDRESSES"].split():
        got = says(address, port)
        if got:
            return f"{address}: {got!r}"
    return local_peer("\0holt-test-other")


# --- many connections -------------------------------------------------------------------------------

HEAD_OTHER = b"GET / HTTP/1.1\r\nHost: other.test\r\n\r\n"


def as_before():
    """What is allowed still works, and nothing else does."""
    reply = http(b"GET / HTTP/1.0\r\nHost: example.com\r\n\r\n")
    if not reply or b"200 OK" not in reply:
        return f"example.com is lost: {reply!r}"
    return http(HEAD_OTHER) or refused_with(errno.EACCES, OTHER, 80)


def side_by_side(work, count):
    """Calls work(i) for each number below count, in a few threads; returns the results that are not None."""
    results = []

    def some(first):
        for number in range(first, count, 8):
            got = work(number)
            if got is not None:
                results.append(got)

    threads = [threading.Thread(target=some, args=(first,)) for first in range(8)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    return results


@attempt
def ten_thousand_connects():
    """To what is denied; each tenth goes to an allowed address, with another name."""
    address = resolve()

    def one(number):
        if number % 10:
            return refused_with(errno.EACCES, OTHER, 1 + number)
        try:
            sock = connect(address, 443)
            sock.sendall(hello("other.test"))
            return sock.recv(100) or None
        except OSError:
            return None
    return side_by_side(one, 10000)[:3] or as_before()


@attempt
def half_open_connections():
    """Those that say nothing, half a name, or end before they have said the other half."""
    address, held = resolve(), []
    for number in range(300):
        sock = connect(address, 443 if number % 2 else 80)
        part = hello("other.test") if number % 2 else HEAD_OTHER
        if number % 3:
            sock.sendall(part[:-20])
        if number % 3 == 2:
            sock.shutdown(socket.SHUT_WR)
        held.append((sock, part[-20:], number % 3))
    got = as_before()
    for sock, rest, kind in held:
        try:
            if kind == 1:
                sock.sendall(rest)
            elif kind == 0:
                sock.shutdown(socket.SHUT_WR)
            reply = sock.recv(1000)
            if reply and b" 403 " not in reply:
                got = got or f"kind {kind}: {reply!r}"
        except OSError:
            pass
        sock.close()
    return got or as_before()


@attempt
def storm_of_resets():
    """Each connection ends with a reset: at once, within the name, and behind a whole request."""
    address = resolve()
    parts = (b"", HEAD_OTHER[:30], HEAD_OTHER, hello("other.test")[:40], hello("other.test"))

    def one(number):
        part = parts[number % len(parts)]
        sock = connect(address, 80 if part.startswith(b"GET") else 443)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        try:
            sock.sendall(part)
        except OSError:
            pass
        sock.close()
    side_by_side(one, 2000)
    return as_before()
