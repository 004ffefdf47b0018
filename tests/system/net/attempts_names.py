"""Attempts by names and by addresses."""
import errno
import socket
import struct

from attempt import *


@attempt
def denied_name():
    reply = dns("other.test")
    if code_of(reply) != 3 or b"no rule allows" not in reply:
        return f"not NXDOMAIN with a reason: {reply!r}"
    return leaked(reply)


@attempt
def dns_tunnel_by_txt():
    return leaked(dns("c2VjcmV0.tunnel.test", 16))


@attempt
def dns_tunnel_by_long_labels():
    return leaked(dns(".".join(["a" * 63] * 3) + ".tunnel.test"))


@attempt
def dns_tunnel_by_null():
    return leaked(dns("x.wild.test", 10))


@attempt
def any_type():
    return leaked(dns("example.com", 255))


@attempt
def dns_tunnel_by_0x20():
    return leaked(dns("sEcReT.TuNnEl.tEsT"))


@attempt
def nul_and_control_bytes_in_a_name():
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
def rebinding_by_https_and_svcb_hints():
    """The records have an address of other.test as a hint, which must not become reachable."""
    for kind in (64, 65):
        got = leaked(dns("example.com", kind)) or leaked(dns("x.wild.test", kind))
        if got:
            return got
    return refused_with(errno.EACCES, OTHER, 443)


@attempt
def dns_over_https():
    return (refused_with(errno.EACCES, "1.1.1.1", 443) or leaked(dns("doh.test")) or tls(hello("doh.test"))
            or http(b"POST /dns-query HTTP/1.1\r\nHost: doh.test\r\nContent-Length: 0\r\n\r\n"))


@attempt
def dns_over_tls():
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
def rebinding_to_a_private_address():
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
def rebinding_by_a_flip_with_ttl_0():
    """The name first has a public address, with TTL 0, and then a private one."""
    replies = [dns("flip.wild.test") for _ in range(3)]
    if b"\x0a\1\2\3" in b"".join(replies[1:]) or any(answers_of(reply) for reply in replies[1:]):
        return replies
    return refused_with(errno.EACCES, "10.1.2.3", 80)


@attempt
def raw_address():
    return refused_with(errno.EACCES, OTHER, 80)


@attempt
def ipv6_raw_address():
    return refused_with(errno.EACCES, "2606:2800::66", 80, socket.AF_INET6)


@attempt
def address_mapped_to_ipv6():
    return refused_with(errno.EACCES, "::ffff:" + OTHER, 80, socket.AF_INET6)


def written_as(text):
    """An address that is not meant to be reached, in another notation. Not every C library reads each of them."""
    try:
        info = socket.getaddrinfo(text, 80, socket.AF_INET, socket.SOCK_STREAM)
    except OSError:
        return None
    return refused_with(errno.EACCES, info[0][4][0], 80)


@attempt
def address_as_decimal():
    return written_as(NOTATIONS[1])


@attempt
def address_as_hex():
    return written_as(NOTATIONS[2])


@attempt
def address_as_octal():
    return written_as(NOTATIONS[3])


@attempt
def address_in_short():
    return written_as(NOTATIONS[4])


@attempt
def metadata_service():
    return (refused_with(errno.EACCES, "169.254.169.254", 80)
            or refused_with(errno.EACCES, "fd00:ec2::254", 80, socket.AF_INET6))


@attempt
def ipv6_link_local():
    for address in (("fe80::1", 80, 0, 1), ("fe80::1", 80, 0, 0)):
        try:
            socket.socket(socket.AF_INET6).connect(address)
            return f"{address} connected"
        except OSError:
            pass
    return None


@attempt
def ipv6_other_name():
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
def ipv6_quic():
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
def quic_to_an_allowed_address():
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
def port_that_no_rule_has():
    try:
        sock = connect(resolve(), 8080)
        sock.sendall(b"GET / HTTP/1.0\r\n\r\n")
        return sock.recv(100) or None
    except OSError:
        return None
