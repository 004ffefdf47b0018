"""Attempts by TLS and by HTTP."""
import socket
import time

from attempt import *


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
def sni_in_slow_bytes():
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
def host_header_other():
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
def connect_tricks():
    for line in (b"CONNECT other.test:443", b"CONNECT example.com:443", b"CONNECT example.com:80", b"connect other.test:443",
                 b"CONNECT http://example.com/", b"CONNECT /", b"CONNECT *", b"CONNECT\tother.test:443"):
        got = http(line + b" HTTP/1.1\r\nHost: example.com\r\n\r\n")
        if got and (b"200 OK" in got):
            return f"{line!r}: {got!r}"
    return None


@attempt
def absolute_form_uris():
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
def redirect_to_another_host():
    reply = http(b"GET /redirect HTTP/1.0\r\nHost: example.com\r\n\r\n")
    if not reply or b"Location: http://other.test/" not in reply:
        return f"no redirect: {reply!r}"
    return leaked(dns("other.test"))
