"""Sends requests that are wrong, each in its own way, and checks that each is refused with a typed error.

usage: malformed.py COUNT SEED SOCKET [ADDRESS]
       malformed.py ambiguous SOCKET ADDRESS

Most are whole HTTP requests, sent many at a time over connections that stay. Some break HTTP itself: there the
connection may end without an answer. Every method of the contract takes its turn. After each thousand a normal call is
made. What fails is printed with its number and the seed."""
import json, random, re, socket, struct, sys, threading

import contract

CODES = {"canceled", "invalid_argument", "deadline_exceeded", "not_found", "already_exists", "permission_denied",
         "resource_exhausted", "failed_precondition", "aborted", "out_of_range", "unimplemented", "unavailable",
         "unauthenticated"}  # all of Connect's but the ones that are a daemon's own fault: unknown, internal, data_loss
BATCH = 50
BROKEN = 2  # of a batch: each has a connection of its own
METHODS, MESSAGES, ENUMS = contract.load()
UNARY = "application/json"
STREAM = "application/connect+json"
WRONG = {  # of which none is ever right
    "text": [5, True, [], {}, 1.5, ["x"]],
    "number": ["x", -1, 1.5, True, [], {}, "", "1 ", "0x1", "18446744073709551616", float("1e300"), 10**30],
    "bool": [1, "true", [], {}, 0, "x"],
    "bytes": ["*", "A", 5, [], {}, "====", "Zg===", "\u00e9"],
    "list": [5, "x", {"a": 1}, True],
    "object": [5, "x", [1], True],
}


class Failed(Exception):
    pass


def kind_of(type_name):
    if type_name.startswith("rep "):
        return "list"
    if type_name.startswith("map ") or type_name.split(".")[-1] in MESSAGES:
        return "object"
    if type_name in contract.NUMBERS:
        return "number"
    return {"string": "text", "bool": "bool", "bytes": "bytes"}.get(type_name, "text")  # an enum is a text


def right_value(rng, type_name, depth=0):
    """Something of the right type that names nothing that is there."""
    if type_name.startswith("rep "):
        return [right_value(rng, type_name[4:], depth + 1) for _ in range(rng.randrange(1, 4))]
    if type_name.startswith("map "):
        return {f"k{i}": right_value(rng, type_name[4:], depth + 1) for i in range(rng.randrange(3))}
    if type_name in MESSAGES:
        return right_message(rng, type_name, depth + 1) if depth < 4 else {}
    return {"number": rng.choice([0, 1, "1", 2**32 - 1]), "bool": rng.random() < 0.5, "bytes": "eA=="}.get(
        kind_of(type_name), rng.choice(["nobody", "/x", "a" * 40]))


def right_message(rng, name, depth=0):
    fields = [field for field in MESSAGES[name] if rng.random() < 0.6]
    return {field: right_value(rng, MESSAGES[name][field], depth) for field in fields}


# --- messages that are wrong -------------------------------------------------------------------------------------------

def text_of(message):
    return json.dumps(message).encode()


def one_field_wrong(rng, method):
    message, types = right_message(rng, method.request), MESSAGES[method.request]
    if not types:
        return unknown_field(rng, method)
    field = rng.choice(list(types))
    inner = message.get(field)
    if isinstance(inner, dict) and types[field] in MESSAGES and MESSAGES[types[field]] and rng.random() < 0.7:
        deep = rng.choice(list(MESSAGES[types[field]]))
        inner[deep] = rng.choice(WRONG[kind_of(MESSAGES[types[field]][deep])])
    else:
        message[field] = rng.choice(WRONG[kind_of(types[field])])
    return text_of(message)


def unknown_field(rng, method):
    return text_of({**right_message(rng, method.request), rng.choice(["x", "", "__proto__", "\u0000", "é" * 99]): 1})


def cut_short(rng, method):
    text = text_of(right_message(rng, method.request))
    return text[:rng.randrange(len(text))]


def twice_the_key(rng, method):
    return b'{"sandboxId":"a","sandboxId":"b"' + rng.choice([b"}", b',"sandboxId":null}'])


def too_deep(rng, method):
    opening, times = rng.choice([b"[", b'{"a":', b'[{"a":']), rng.choice([100, 2000, 3000, 20000])
    return b'{"sandboxId":' + opening * times


def huge_number(rng, method):
    digits = rng.choice([b"1e400", b"-1e400", b"9" * 400, b"1" * 20000, b"0.%s1" % (b"0" * 400), b"-", b"01", b"1e", b"NaN"])
    field = rng.choice(list(MESSAGES[method.request]) or ["x"])
    return b'{"%s":%s,"unknown":1}' % (field.encode(), digits)


def not_utf8(rng, method):
    bad = rng.choice([b"\xff", b"\xc0\xaf", b"\xed\xa0\x80", b"\xf5\x80\x80\x80", b"\xe2\x82", b"\x80", b"\\ud800", b"\\udc00x",
                      b"\\u0000", b"\x00", b"\x1f", b"\\x41"])
    return b'{"sandboxId":"a%sb","name":"%s","unknown":1}' % (bad, bad)


def no_object(rng, method):
    return rng.choice([b"", b"[]", b"null", b"1", b'"x"', b"true", b"{}{}", b"{} x", b"}", b"\xef\xbb\xbf{}", b" ", b"{,}", b"{'a':1}",
                       b'{"a" 1}', b'{"a":}', b"// x", b"{\"a\":1,}", rng.randbytes(rng.randrange(1, 200))])


def bad_names(rng, method):
    name = rng.choice(["../../../etc", "sess; rm -rf /", "a\u0000b", "sess@snap", "a" * 1000, ".", "..", "-x", "a/b", "a\nb", " "])
    fields = [field for field in ("sandboxId", "name", "snapshot", "template") if field in MESSAGES[method.request]]
    return text_of({field: name for field in fields} or {"unknown": name})


MESSAGES_WRONG = [one_field_wrong, one_field_wrong, one_field_wrong, unknown_field, cut_short, cut_short, twice_the_key, too_deep,
                  huge_number, not_utf8, no_object, bad_names]


# --- requests that are wrong -------------------------------------------------------------------------------------------

def http(path, body, content_type, verb="POST", headers=()):
    lines = [f"{verb} {path} HTTP/1.1", "Host: holt", f"Content-Length: {len(body)}", *headers]
    if content_type is not None:
        lines.append(f"Content-Type: {content_type}")
    return "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + body


def envelope(rng, message):
    """Around a message, itself wrong half of the time."""
    length = len(message)
    wrong = rng.randrange(12)
    flags = rng.choice([1, 2, 3, 4, 0x80, 0xff]) if wrong == 0 else 0
    if wrong == 1:
        length += rng.choice([1, 5, 1000, 2**31])
    if wrong == 2:
        length = max(0, length - rng.randrange(1, 9))
    whole = struct.pack(">BI", flags, length & 0xffffffff) + message
    if wrong == 3:
        whole = whole[:rng.randrange(len(whole))]
    if wrong == 4:
        whole += whole
    return whole if wrong != 5 else message


def wrong_message(rng):
    method = rng.choice(METHODS)
    body = rng.choice(MESSAGES_WRONG)(rng, method)
    return http(method.path, envelope(rng, body) if method.is_stream else body, STREAM if method.is_stream else UNARY)


def wrong_header(rng):
    method = rng.choice(METHODS)
    body = b"{}" if not method.is_stream else struct.pack(">BI", 0, 2) + b"{}"
    good = STREAM if method.is_stream else UNARY
    return rng.choice([
        lambda: http(method.path, body, rng.choice([None, "", "text/plain", "application/proto", "application/grpc", "x" * 3000,
                                                    "application/jsonx", UNARY if method.is_stream else STREAM])),
        lambda: http(method.path, body, good, headers=["Connect-Protocol-Version: " + rng.choice(["2", "", "x", "1.0"])]),
        lambda: http(method.path, body, good, headers=[("Connect-" if method.is_stream else "") + "Content-Encoding: gzip"]),
        lambda: http(method.path, body, good, verb=rng.choice(["GET", "PUT", "DELETE", "OPTIONS", "PATCH", "TRACE", "x"])),
        lambda: http(rng.choice([method.path + "/", method.path.lower(), method.path[1:-1].join("//"), "/", "/" + "a" * 2000, "/%00", "//",
                                 "/../../etc/passwd", "/holt.v1.NoService/Health", "*"]), body, good),
    ])()


def broken(rng):
    """Not HTTP, or not all of it. The connection may end without a word."""
    body = text_of(right_message(rng, "GetSandboxRequest"))
    start = b"POST /holt.v1.SandboxService/Get HTTP/1.1\r\nHost: holt\r\nContent-Type: application/json\r\n"
    return rng.choice([
        lambda: rng.randbytes(rng.randrange(1, 400)),
        lambda: rng.randbytes(rng.randrange(1, 400)) + b"\r\n\r\n",
        lambda: start[:rng.randrange(1, len(start))],
        lambda: start + b"Content-Length: %d\r\n\r\n" % (len(body) + 100) + body,
        lambda: start + b"Content-Length: %s\r\n\r\n" % rng.choice([b"-1", b"x", b"", b"99999999999999999999", b"1 1", b"0x10", b"+2"]) + body,
        lambda: start + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\n" + body,
        lambda: start + b"Content-Length: 5000000\r\n\r\n" + body,
        lambda: start + b"Transfer-Encoding: chunked\r\n\r\n" + rng.choice([b"x\r\n", b"fffffffffffffffff\r\n", b"-1\r\n", b"5\r\nab", b"2\r\nabXX",
                                                                          b";;;\r\n", b"0\r\n", b"1\r\na\r\n1\r\n"]),
        lambda: start + b"Transfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n0\r\n\r\n",
        lambda: start + b"Transfer-Encoding: gzip\r\n\r\n" + body,
        lambda: start + b"X: " + b"a" * rng.choice([40000, 100000]) + b"\r\n\r\n",
        lambda: start + b"".join(b"X%d: y\r\n" % i for i in range(3000)) + b"\r\n",
        lambda: start + b"X\x00Y: z\r\n\r\n",
        lambda: start + b" folded\r\n: none\r\nno colon\r\n\r\n",
        lambda: start + b"Content-Type: text/html\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}",
        lambda: start.replace(b"HTTP/1.1", rng.choice([b"HTTP/9.9", b"HTTP/1.0", b"HTTP/0.9", b"", b"FTP/1.1"])) + b"\r\n",
        lambda: start.replace(b"\r\n", b"\n") + b"\n",
        lambda: start.replace(b"Host: holt\r\n", b"") + b"Content-Length: 2\r\n\r\n{}",
        lambda: start + b"Expect: 200-maybe\r\nContent-Length: 2\r\n\r\n",
        lambda: start + b"Upgrade: holt-raw\r\nConnection: Upgrade\r\nContent-Length: 2\r\n\r\n{}garbage",
    ])()


START = b"POST /holt.v1.HostService/Health HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
AMBIGUOUS = [  # a proxy could read each of them differently than the daemon
    START.replace(b"Health", b"Health%00x") + b"Content-Length: 2\r\n\r\n{}",
    START + b"Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n",
    START + b"Transfer-Encoding\t: chunked\r\n\r\n0\r\n\r\n",
    START + b"Content-Length : 2\r\n\r\n{}",
    START + b"Content-Length: 2\r\n Transfer-Encoding: chunked\r\n\r\n{}",
    START + b"Transfer-Encoding: chunked\r\n folded\r\n\r\n0\r\n\r\n",
    START + b"Transfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n",
    START + b"X: a\0b\r\nContent-Length: 2\r\n\r\n{}",
    START + b"Content-Length: 2\r\nX: a\0\0\0\r\n\r\n{}",
    START + b"X: a\rContent-Length: 2\r\n\r\n{}",
    START + b"X: a\nContent-Length: 2\r\n\r\n{}",
    START + b"Content-Length: 2\r\nContent-Length: 2\r\n\r\n{}",
    START + b"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    *(START.replace(b"POST", verb) + b"Transfer-Encoding: " + coding + b"\r\n\r\n"
      for verb in (b"POST", b"PUT", b"PATCH", b"DELETE", b"GET") for coding in (b"gzip", b"gzip, chunked", b"identity", b"")),
]


# --- answers -----------------------------------------------------------------------------------------------------------

class Peer:
    def __init__(self, address):
        self.socket = socket.create_connection(address) if isinstance(address, tuple) else socket.socket(socket.AF_UNIX)
        if not isinstance(address, tuple):
            self.socket.connect(address)
        self.socket.settimeout(60)
        self.file = self.socket.makefile("rb")
        self.address, self.is_over = address, False

    def write(self, data):
        try:
            self.socket.sendall(data)
        except OSError:
            pass  # whoever reads finds out why

    def close(self):
        self.file.close()
        self.socket.close()

    def answer(self):
        """(status, content type, body), or None at the end of the connection."""
        status = self.file.readline()
        if not status:
            return None
        found = re.match(rb"HTTP/1\.[01] (\d{3}) ", status)
        if not found:
            raise Failed(f"no status line: {status!r:.200}")
        headers = {}
        while (line := self.file.readline()) not in (b"\r\n", b""):
            name, _, value = line.partition(b":")
            headers[name.lower()] = value.strip()
        self.is_over = headers.get(b"connection", b"").lower() == b"close"
        body = self.file.read(int(headers.get(b"content-length", 0)))
        return int(found[1]), headers.get(b"content-type", b"").decode(), body


def check(answer):
    """That it is a refusal with a known code and a message of one line."""
    status, content_type, body = answer
    if content_type == STREAM:
        flags, length = struct.unpack(">BI", body[:5])
        if status != 200 or flags != 2 or length != len(body) - 5:
            raise Failed(f"not the end of a stream: {answer!r:.300}")
        error = json.loads(body[5:]).get("error", {})
    elif content_type == UNARY and 400 <= status < 500 or status == 501:
        error = json.loads(body)
    else:
        raise Failed(f"no refusal: {answer!r:.300}")
    if error.get("code") not in CODES or not error.get("message") or "\n" in error["message"]:
        raise Failed(f"no typed error: {error!r:.300}")


def send_batch(peer, requests):
    """The peer to go on with, and how many were answered: the daemon hangs up after some refusals, and says so."""
    # Who only writes while the daemon wants to be read waits for ever, and rightly so.
    writer = threading.Thread(target=peer.write, args=(b"".join(requests),))
    writer.start()
    for i, request in enumerate(requests):
        try:
            answer = peer.answer()
            if answer is None:
                raise Failed("no answer")
            check(answer)
        except (Failed, OSError, ValueError, KeyError, struct.error) as why:
            raise Failed(f"{why}\nto {request!r:.1500}") from why
        if peer.is_over:
            break
    if peer.is_over:
        peer.close()
    writer.join()
    return Peer(peer.address) if peer.is_over else peer, i + 1


def send_all(peer, requests):
    while requests:
        peer, done = send_batch(peer, requests)
        requests = requests[done:]
    return peer


def send_broken(address, request):
    peer = Peer(address)
    try:
        peer.socket.sendall(request)
        peer.socket.shutdown(socket.SHUT_WR)
        while (answer := peer.answer()) is not None:
            status, content_type, _ = answer
            # libmicrohttpd's own pages have their header twice (0.9.75); it hangs up after one.
            if content_type == "" and 400 <= status < 500:
                break
            if status == 200 or status >= 500 and status not in (501, 505):
                raise Failed(f"{answer!r:.300}\nto {request!r:.1500}")
            if content_type == UNARY:
                check(answer)
    except TimeoutError as why:
        raise Failed(f"neither answer nor end\nto {request!r:.1500}") from why
    except OSError:
        pass  # it has hung up
    finally:
        peer.close()


def refuses_ambiguous(address):
    """Each is answered with 400 while the client could still send a body, and then the connection ends."""
    for request in AMBIGUOUS:
        peer = Peer(address)
        peer.write(request)
        try:
            answer = peer.answer()
            if answer is None or answer[0] != 400 or not peer.is_over:
                raise Failed(f"not refused with 400: {answer!r:.300}\nto {request!r}")
            check(answer)
            if peer.file.read(1):
                raise Failed(f"goes on after its refusal: {request!r}")
        except ConnectionResetError as why:
            raise Failed(f"cut without an answer: {request!r}") from why
        peer.close()


def works(address):
    peer = Peer(address)
    peer.socket.sendall(http("/holt.v1.HostService/Health", b"{}", UNARY))
    status, _, body = peer.answer()
    peer.close()
    if status != 200 or json.loads(body)["status"] != "ok":
        raise Failed(f"a normal call is answered with {status} {body!r:.300}")


def strangers(rng, request):
    """The same over TCP, where nobody has a token."""
    wrong = rng.choice([b"", b"Authorization: Bearer %s\r\n" % (b"0" * 64), b"Authorization: Basic eDp5\r\n", b"Authorization: Bearer\r\n",
                        b"Authorization: Bearer %s\r\n" % (b"a" * 5000), b"Authorization: bearer \t \r\n"])
    return request.replace(b"Host: holt\r\n", b"Host: 127.0.0.1\r\n" + wrong, 1)


def run(count, rng, local, remote):
    peers = {address: Peer(address) for address in (local, remote) if address}
    for sent in range(0, count, BATCH):
        address = remote if remote and sent // BATCH % 20 == 19 else local
        batch = [wrong_header(rng) if rng.random() < 0.15 else wrong_message(rng) for _ in range(BATCH - BROKEN)]
        if address == remote:
            batch = [strangers(rng, request) for request in batch]
        peers[address] = send_all(peers[address], batch)
        for _ in range(BROKEN):
            send_broken(address, broken(rng))
        if sent % 1000 == 0:
            works(local)
    works(local)
    for peer in peers.values():
        peer.close()


def main():
    if sys.argv[1] == "ambiguous":
        host, _, port = sys.argv[3].rpartition(":")
        try:
            for address in (sys.argv[2], (host, int(port))):
                refuses_ambiguous(address)
        except (Failed, OSError) as why:
            sys.exit(f"{address}: {why}")
        return
    count, seed, local = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
    host, _, port = (sys.argv[4] if len(sys.argv) > 4 else "").rpartition(":")
    try:
        run(count, random.Random(seed), local, (host, int(port)) if port else None)
    except (Failed, OSError) as why:
        sys.exit(f"seed {seed}: {why}")


main()
