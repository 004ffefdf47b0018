"""An S3 API on loopback, in memory, that can fail in the ways that servers and networks do. It prints its
port. Commands come on standard input, each is answered with a line on standard output, and the end of
the input ends the server:

    fault COUNT NAME [ARGUMENT]   the next COUNT requests fail so (see Handler.fault_*)
    reset                         forgets objects, faults and all that commands have set
    count                         prints how many requests came
    connections                   prints how many connections came
    header NAME                   prints that header of the last request
    region NAME                   the server has only this region
    clock SECONDS                 its clock is ahead by so many
    token TEXT                    requests need this session token
    conditions follow|ignore|refuse   what If-None-Match of PUT does
    page COUNT                    objects of one page of a list
    seed COUNT                    makes objects many/000000, ...
    raw HEX                       makes an empty object with any name

usage: s3_server.py BUCKET ACCESS_KEY SECRET_KEY
"""
import bisect
import calendar
import hashlib
import hmac
import re
import socket
import socketserver
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler
from urllib.parse import parse_qsl, quote, unquote, urlsplit
from xml.sax.saxutils import escape

BUCKET, ACCESS, SECRET = sys.argv[1:4]
MESSAGES = {"NoSuchKey": 404, "NoSuchBucket": 404, "SignatureDoesNotMatch": 403, "InvalidAccessKeyId": 403,
            "RequestTimeTooSkewed": 403, "AuthorizationHeaderMalformed": 400, "InvalidToken": 400,
            "XAmzContentSHA256Mismatch": 400, "PreconditionFailed": 412, "NotImplemented": 501,
            "InvalidArgument": 400, "AccessDenied": 403}

lock = threading.Lock()
objects = {}
order = []  # their names, sorted; empty: to be sorted
faults = []  # (name, argument), one for each request to come
initial = {"count": 0, "connections": 0, "region": "us-east-1", "clock": 0, "token": "", "conditions": "follow",
           "page": 1000, "last": {}}
state = dict(initial)
over = threading.Event()


class Refused(Exception):
    pass


def sha256(data):
    return hashlib.sha256(data).hexdigest()


def mac(key, text):
    return hmac.new(key, text.encode(), hashlib.sha256).digest()


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1

    def log_message(self, *_):
        pass

    def date_time_string(self, timestamp=None):
        return super().date_time_string((timestamp or time.time()) + state["clock"])

    # --- replies ----------------------------------------------------------------------------------

    def answer(self, status, body=b"", headers=(), length=None):
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        if length != "none" and status not in (204, 304):
            self.send_header("Content-Length", str(len(body) if length is None else length))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def error(self, code, status=None, more="", headers=()):
        body = f'<?xml version="1.0" encoding="UTF-8"?>\n<Error><Code>{code}</Code><Message>{code} it is' \
               f'</Message>{more}<RequestId>1</RequestId></Error>'
        self.answer(status or MESSAGES[code], body.encode(), headers)

    # --- faults: each returns whether it has replied ------------------------------------------------

    def fault_none(self, _):
        return False

    def fault_status(self, argument):
        status, *code = argument.split()
        headers = [("Retry-After", code[1])] if len(code) > 1 else []
        self.error(code[0], int(status), headers=headers) if code else self.answer(int(status), b"<html>busy</html>")
        return True

    def fault_html(self, argument):
        self.answer(int(argument), b"<!DOCTYPE html><html><body>Welcome</body></html>", [("Content-Type", "text/html")])
        return True

    def fault_close(self, _):
        self.close_connection = True
        return True

    def fault_lost(self, _):  # done, but nobody is told
        self.wfile = open("/dev/null", "wb")
        self.close_connection = True
        return False

    def fault_stolen(self, _):  # another client was first, and nobody is told
        with lock:
            objects[self.key] = (b"stolen", '"x"', time.time())
            order.clear()
        self.close_connection = True
        return True

    def fault_cut(self, _):
        with lock:
            data = objects[self.key][0]
        self.answer(200, data[:len(data) // 2], [("ETag", '"x"')], len(data))
        self.close_connection = True
        return True

    def fault_bare(self, argument):  # no length, and an end that may be one
        self.answer(200, argument.encode(), [("ETag", '"x"')], "none")
        self.close_connection = True
        return True

    def fault_last(self, _):  # closes a kept connection without a word, before the next request
        self.close_connection = True
        return False

    def fault_endless(self, _):  # a body without a length, as long as it is read
        self.answer(200, b"", [("ETag", '"x"')], "none")
        self.close_connection = True
        self.forever(b"x" * 65536)
        return True

    def fault_headers(self, _):
        self.wfile.write(b"HTTP/1.1 200 OK\r\nETag: x\r\n")
        self.forever(b"X-Pad: " + b"x" * 1000 + b"\r\n")
        return True

    def fault_error(self, _):  # an error whose body has no end
        self.answer(403, b"<Error><Code>AccessDenied</Code><Message>", (), "none")
        self.close_connection = True
        self.forever(b"x" * 65536)
        return True

    def fault_huge(self, argument):
        self.answer(200, b"x" * 1000, [("ETag", '"x"')], int(argument))
        self.close_connection = True
        return True

    def fault_silence(self, _):
        over.wait()
        self.close_connection = True
        return True

    def fault_trickle(self, _):
        self.answer(200, b"", [("ETag", '"x"')], 1 << 20)
        while not over.wait(0.1):
            self.wfile.write(b"x")
            self.wfile.flush()
        return True

    def fault_redirect(self, argument):
        self.answer(307, b"", [("Location", argument + self.path)])
        return True

    def fault_region(self, argument):
        self.error("PermanentRedirect", 301, "<Endpoint>elsewhere</Endpoint>", [("x-amz-bucket-region", argument)])
        return True

    def fault_damage(self, _):
        self.body = bytes([self.body[0] ^ 1]) + self.body[1:]
        return False

    def fault_etag(self, argument):
        self.etag = argument
        return False

    def fault_xml(self, argument):
        self.answer(200, argument.encode().decode("unicode_escape").encode("latin-1"))
        return True

    def forever(self, data):
        try:
            while not over.is_set():
                self.wfile.write(data)
        except OSError:
            pass
        self.close_connection = True

    # --- signatures -------------------------------------------------------------------------------

    def check(self):
        match = re.fullmatch(r"AWS4-HMAC-SHA256 Credential=([^/]+)/(\d{8})/([^/]+)/s3/aws4_request, "
                             r"SignedHeaders=([a-z0-9;-]+), Signature=([0-9a-f]{64})",
                             self.headers.get("Authorization", ""))
        if not match:
            raise Refused("AccessDenied")
        access, day, region, names, signature = match.groups()
        date, hashed = self.headers["x-amz-date"], self.headers["x-amz-content-sha256"]
        sent = calendar.timegm(time.strptime(date, "%Y%m%dT%H%M%SZ"))
        if access != ACCESS:
            raise Refused("InvalidAccessKeyId")
        if region != state["region"]:
            raise Refused("AuthorizationHeaderMalformed")
        if abs(sent - time.time() - state["clock"]) > 900:
            raise Refused("RequestTimeTooSkewed")
        if state["token"] != self.headers.get("x-amz-security-token", ""):
            raise Refused("InvalidToken")
        signed = names.split(";")
        for name in self.headers.keys():
            if name.lower().startswith("x-amz-") and name.lower() not in signed:
                raise Refused("AccessDenied")
        if "host" not in signed or signed != sorted(signed):
            raise Refused("AccessDenied")
        query = sorted((quote(n, "-_.~"), quote(v, "-_.~")) for n, v in self.query)
        canonical = "\n".join([self.command, quote(unquote(self.address.path), "/-_.~"),
                               "&".join(f"{n}={v}" for n, v in query),
                               *(f"{n}:{self.headers[n].strip()}" for n in signed), "", names, hashed])
        scope = f"{day}/{region}/s3/aws4_request"
        key = mac(("AWS4" + SECRET).encode(), day)
        for part in (region, "s3", "aws4_request"):
            key = mac(key, part)
        text = f"AWS4-HMAC-SHA256\n{date}\n{scope}\n{sha256(canonical.encode())}"
        if not date.startswith(day) or mac(key, text).hex() != signature:
            raise Refused("SignatureDoesNotMatch")
        if sha256(self.body) != hashed:
            raise Refused("XAmzContentSHA256Mismatch")

    # --- operations -------------------------------------------------------------------------------

    def handle_one_request(self):
        try:
            super().handle_one_request()
        except OSError:
            self.close_connection = True

    def serve(self):
        self.address = urlsplit(self.path)
        self.query = parse_qsl(self.address.query, keep_blank_values=True)
        self.etag = None
        parts = unquote(self.address.path, "latin-1").split("/", 2)
        self.key = parts[2] if len(parts) > 2 else ""
        with lock:
            state["count"] += 1
            state["last"] = dict(self.headers.items())
            fault = faults.pop(0) if faults else None
        if fault and fault[0] == "early":  # an answer before the body
            self.error("AccessDenied")
            self.wfile.flush()
            self.connection.shutdown(socket.SHUT_WR)
            self.close_connection = True
        self.body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if fault and fault[0] == "early":
            return
        if fault and getattr(self, "fault_" + fault[0])(fault[1]):
            return
        try:
            self.check()
            if parts[1] != BUCKET:
                raise Refused("NoSuchBucket")
            getattr(self, "on_" + self.command)()
        except Refused as refused:
            code = str(refused)
            self.error(code, more=f"<Region>{state['region']}</Region>" if code[0:7] == "Authori" else "")

    do_GET = do_PUT = do_HEAD = do_DELETE = serve

    def on_PUT(self):
        etag = f'"{hashlib.md5(self.body).hexdigest()}"' if self.etag is None else self.etag
        with lock:
            condition = self.headers.get("If-None-Match")
            if condition and state["conditions"] == "refuse":
                raise Refused("NotImplemented")
            if condition == "*" and state["conditions"] == "follow" and self.key in objects:
                raise Refused("PreconditionFailed")
            objects[self.key] = (self.body, etag, time.time())
            order.clear()
        self.answer(200, b"", [("ETag", etag)] if etag else [])

    def on_GET(self):
        if not self.key:
            return self.on_list()
        with lock:
            found = objects.get(self.key)
        if not found:
            raise Refused("NoSuchKey")
        data, etag, _ = found
        if self.headers.get("Range") == "bytes=0-0" and data:
            return self.answer(206, data[:1], [("ETag", etag)])
        self.answer(200, data, [("ETag", etag)])

    on_HEAD = on_GET

    def on_DELETE(self):
        with lock:
            objects.pop(self.key, None)
            order.clear()
        self.answer(204)

    def on_list(self):
        query = dict(self.query)
        if query.get("list-type") != "2":
            raise Refused("InvalidArgument")
        # A token has what must be escaped in XML and in a query.
        after = query.get("continuation-token", "<&+ />")
        if after[:6] != "<&+ />":
            raise Refused("InvalidArgument")
        with lock:
            if not order:
                order.extend(sorted(objects))
            prefix = query.get("prefix", "")
            begin = max(bisect.bisect(order, after[6:]), bisect.bisect_left(order, prefix))
            end = min(bisect.bisect(order, prefix + chr(0x10ffff)), begin + state["page"])
            page = order[begin:end]
            is_cut = order[end:end + 1] != [] and order[end].startswith(prefix)
            items = "".join(
                f"<Contents><Key>{escape(n)}</Key><LastModified>"
                f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(objects[n][2]))}.000Z</LastModified>"
                f"<ETag>{escape(objects[n][1], {chr(34): '&quot;'})}</ETag><Size>{len(objects[n][0])}</Size>"
                f"<StorageClass>STANDARD</StorageClass></Contents>" for n in page)
        token = f"<NextContinuationToken>{escape('<&+ />' + page[-1])}</NextContinuationToken>" if is_cut else ""
        self.answer(200, f'<?xml version="1.0" encoding="UTF-8"?>\n<ListBucketResult xmlns="http://s3.amazonaws.com/doc/'
                         f'2006-03-01/"><Name>{BUCKET}</Name><Prefix/><IsTruncated>{str(is_cut).lower()}</IsTruncated>'
                         f'{items}{token}</ListBucketResult>'.encode("latin-1", "xmlcharrefreplace"))


class Server(socketserver.ThreadingTCPServer):
    daemon_threads = True
    allow_reuse_address = True
    request_queue_size = 64

    def process_request(self, request, client_address):
        with lock:
            state["connections"] += 1
        super().process_request(request, client_address)

    def handle_error(self, request, client_address):
        if not isinstance(sys.exc_info()[1], OSError):
            super().handle_error(request, client_address)


def obey(line):
    word, _, rest = line.partition(" ")
    order.clear()
    if word == "fault":
        count, name, argument = (rest + "  ").split(" ", 2)
        faults.extend([(name, argument.strip())] * int(count))
    elif word == "reset":
        objects.clear()
        faults.clear()
        state.update(initial)
    elif word in ("count", "connections"):
        return str(state[word])
    elif word == "header":
        return state["last"].get(rest, "")
    elif word == "seed":
        objects.update((f"many/{i:06d}", (b"", '"x"', time.time())) for i in range(int(rest)))
    elif word == "raw":
        objects[bytes.fromhex(rest).decode("latin-1")] = (b"", '"x"', time.time())
    else:
        state[word] = type(state[word])(rest)
    return "ok"


def main():
    server = Server(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(server.server_address[1], flush=True)
    for line in sys.stdin:
        with lock:
            reply = obey(line.rstrip("\n"))
        print(reply, flush=True)
    over.set()


main()
