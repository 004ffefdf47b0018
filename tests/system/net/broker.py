"""holt-net alone, by the messages of src/egress/control.h: a sandbox's network namespace, servers
with TLS in another one, and what they see."""
import array, base64, ctypes, gzip, hashlib, http.server, json, os, socket, ssl, struct, subprocess, sys, threading, time

LIBC = ctypes.CDLL(None, use_errno=True)
CLONE_NEWNET = 0x40000000
ADDRESS = "93.184.216.34"
OTHER = "93.184.216.35"
PROXY = "93.184.216.36"
VALUE = "sk-live-Zq8+/7Yw2nB5vK1mR4tX9cD3fG6hJ0pL"
ROTATED = "sk-next-Aa1Bb2Cc3Dd4Ee5Ff6Gg7Hh8Ii9Jj0Kk"
PLACEHOLDER = "holt-placeholder-0123456789abcdef0123456789abcdef"


def run(*words, **more):
    return subprocess.run(words, check=True, capture_output=True, text=True, **more).stdout


def enter(pid_or_fd):
    fd = pid_or_fd if isinstance(pid_or_fd, int) else pid_or_fd.fileno()
    if LIBC.setns(fd, CLONE_NEWNET) != 0:
        raise OSError(ctypes.get_errno(), "setns")


def certificates(tmp, *names):
    """A CA for the servers, one for holt-net, and a certificate for each name."""
    for ca in ("servers", "holt", "strange"):
        run("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout",
            f"{tmp}/{ca}.key", "-out", f"{tmp}/{ca}.crt", "-days", "30", "-subj", f"/CN=Test {ca} CA")
    for name in names:
        issuer = "strange" if name.startswith("strange") else "servers"
        san = "DNS:other-name.test" if name.startswith("wrong") else f"DNS:{name}"
        with open(f"{tmp}/ext", "w") as f:
            f.write(f"subjectAltName={san}\n")
        run("openssl", "req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", f"{tmp}/{name}.key",
            "-out", f"{tmp}/csr", "-subj", f"/CN={name}")
        run("openssl", "x509", "-req", "-in", f"{tmp}/csr", "-CA", f"{tmp}/{issuer}.crt", "-CAkey", f"{tmp}/{issuer}.key",
            "-CAcreateserial", "-days", "30", "-extfile", f"{tmp}/ext", "-out", f"{tmp}/{name}.crt")


class Net:
    """holt-net with one sandbox, whose connections come from a namespace of its own."""

    def __init__(self, build, tmp):
        self.tmp = tmp
        self.host_ns = open("/proc/self/ns/net")
        run("ip", "link", "set", "lo", "up")
        for address in (ADDRESS, OTHER, PROXY):
            run("ip", "address", "add", f"{address}/32", "dev", "lo")
        self.keeper = subprocess.Popen(["unshare", "--net", "sleep", "infinity"])
        while os.readlink(f"/proc/{self.keeper.pid}/ns/net") == os.readlink("/proc/self/ns/net"):
            time.sleep(0.01)
        self.guest("ip", "link", "set", "lo", "up")
        for address in (ADDRESS, OTHER, PROXY):
            self.guest("ip", "address", "add", f"{address}/32", "dev", "lo")
        mine, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        mine.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
        self.control = mine

        def prepare():
            os.dup2(its.fileno(), 3)

        self.process = subprocess.Popen([f"{build}/holt-net"], preexec_fn=prepare, close_fds=False,
                                        env={**os.environ, "SSL_CERT_FILE": f"{tmp}/servers.crt"})
        its.close()
        self.messages, self.arrived = [], threading.Condition()
        threading.Thread(target=self.receive, daemon=True).start()
        self.wait("ready")
        self.machine = 0

    def guest(self, *words, **more):
        return run("nsenter", f"--net=/proc/{self.keeper.pid}/ns/net", *words, **more)

    def receive(self):
        while True:
            try:
                data = self.control.recv(1 << 20)
            except OSError:
                data = None # it was closed here
            if not data:
                return
            with self.arrived:
                self.messages.append(json.loads(data))
                self.arrived.notify_all()

    def wait(self, what, accept=lambda message: True):
        with self.arrived:
            for _ in range(100):
                for i, message in enumerate(self.messages):
                    if message["do"] == what and accept(message):
                        return self.messages.pop(i)
                self.arrived.wait(0.1)
        raise AssertionError(f"no message '{what}': {self.messages}")

    def leaks(self):
        """Those of all that has happened so far: messages come in their order."""
        self.send({"do": "remove", "machine": 999})
        self.wait("done", lambda m: m["machine"] == 999)
        with self.arrived:
            found = [m for m in self.messages if m["do"] == "leak"]
            self.messages = [m for m in self.messages if m["do"] != "leak"]
            return found

    def hello(self, **more):
        config = {"resolvers": [], "hasIpv6": False, "bounds": {"connectsPerSecond": 100000}, **more}
        if "ca" not in config:
            config["ca"] = {"certificate": open(f"{self.tmp}/holt.crt").read(), "key": open(f"{self.tmp}/holt.key").read()}
        self.send({"do": "hello", "config": config})

    def send(self, message, fds=()):
        rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else []
        self.control.sendmsg([json.dumps(message).encode()], rights)

    def policy(self, mode="open", allow=(), deny=(), proxy=None):
        own = [f"{a}" for a in (ADDRESS, OTHER, PROXY)]
        sandbox = {"from": "sandbox", "mode": mode, "allow": list(allow) + own if mode == "open" else list(allow), "deny": list(deny), "allowWins": False}
        if proxy:
            sandbox["proxy"] = proxy
        return {"layers": [{"from": "holt.conf", "mode": "open", "allow": own, "deny": []}, sandbox]}

    def add(self, ports=(443, 8443, 80), **more):
        """A sandbox; one listener serves all ports by a redirect, so each port is one machine here."""
        self.ports = {}
        with open(f"/proc/{self.keeper.pid}/ns/net") as ns:
            done = threading.Event()

            def make():
                enter(ns)
                for port in ports:
                    listener = socket.socket(socket.AF_INET6)
                    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                    listener.bind(("::", port))
                    listener.listen(512)
                    listener.setblocking(False)
                    self.ports[port] = (listener, socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
                done.set()

            threading.Thread(target=make).start()
            done.wait()
        for port, (listener, resolver) in self.ports.items():
            self.machine += 1
            self.send({"do": "add", "machine": self.machine, "id": f"sb-{port}", "owner": "alice", "llmToken": "0" * 32,
                       "llmAddress": "192.0.2.54", "policy": more.pop("policy", None) or self.policy(),
                       **more}, [listener.fileno(), resolver.fileno()])
            self.wait("done", lambda m: m["machine"] == self.machine)
            listener.close()
            resolver.close()
        self.more = more

    def set(self, **more):
        """Replaces policy, secrets, transforms and bundle of all machines."""
        message = {"policy": self.policy(), **more}
        for machine in range(1, self.machine + 1):
            self.send({"do": "set", "machine": machine, **message})
            self.wait("done", lambda m: m["machine"] == machine)

    def secrets(self, secrets):
        for machine in range(1, self.machine + 1):
            self.send({"do": "secrets", "machine": machine, "secrets": secrets})
            self.wait("done", lambda m: m["machine"] == machine)

    def remove(self):
        """Ends the sandbox."""
        for machine in range(1, self.machine + 1):
            self.send({"do": "remove", "machine": machine})
            self.wait("done", lambda m: m["machine"] == machine)

    def end(self):
        assert self.process.poll() is None, "holt-net has died"
        self.control.shutdown(socket.SHUT_RDWR)  # a close alone does nothing while the other thread receives
        self.control.close()
        self.process.wait()
        self.keeper.kill()
        self.keeper.wait()


def secret(place="header", field="Authorization", template="Bearer {}", hosts=("api.test:443",), value=VALUE, placeholder=PLACEHOLDER, **more):
    return {"name": "API", "id": "sec-1", "placeholder": placeholder, "value": value, "hosts": list(hosts), "place": place,
            "field": field, "template": template, "mayUseOwnPath": False, **more}


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        pass

    def body(self):
        if self.headers.get("Transfer-Encoding") == "chunked":
            data = b""
            while size := int(self.rfile.readline().split(b";")[0], 16):
                data += self.rfile.read(size)
                self.rfile.readline()
            while self.rfile.readline().strip():
                pass
            return data
        return self.rfile.read(int(self.headers.get("Content-Length", 0)))

    def answer(self, data, headers=(), status=200):
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    def handle_any(self):
        where = self.path.split("?")[0]
        if where == "/expect":
            self.connection_headers = None
        body = b"" if where == "/big-up" else self.body()
        self.server.seen.append({"method": self.command, "target": self.path, "version": self.request_version, "headers": self.headers.items(),
                                 "body": body.decode("latin-1")})
        echo = "\n".join(f"{k}: {v}" for k, v in self.headers.items()).encode()
        if where == "/echo":
            self.answer(echo)
        elif where == "/echo-base64":
            self.answer(base64.b64encode(b"x" + echo))
        elif where == "/echo-gzip":
            self.answer(gzip.compress(echo), [("Content-Encoding", "gzip")])
        elif where == "/echo-br":
            self.answer(echo, [("Content-Encoding", "br")])
        elif where == "/echo-header":
            self.answer(b"no", [("X-Echo", self.headers.get("Authorization", ""))])
        elif where == "/echo-reason":
            self.send_response(200, self.headers.get("Authorization", ""))
            self.send_header("Content-Length", "0")
            self.end_headers()
        elif where == "/echo-slow":
            self.send_response(200)
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            for i in range(len(echo)):
                self.wfile.write(b"1\r\n" + echo[i:i + 1] + b"\r\n")
                self.wfile.flush()
            self.wfile.write(b"0\r\n\r\n")
        elif where == "/echo-hint":
            self.wfile.write(b"HTTP/1.1 103 Early Hints\r\nLink: <" + self.headers.get("Authorization", "").encode() + b">\r\n\r\n")
            self.answer(b"no")
        elif where == "/echo-trailer":
            self.send_response(200)
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            self.wfile.write(b"2;" + echo.replace(b"\n", b";") + b"\r\nno\r\n0\r\nX-Echo: " + self.headers.get("Authorization", "").encode() + b"\r\n\r\n")
        elif where == "/redirect":
            self.answer(b"", [("Location", f"https://other.test/?k={self.headers.get('Authorization')}")], 302)
        elif where == "/big":
            size = int(self.path.split("?")[1])
            self.send_response(200)
            self.send_header("Content-Length", str(size))
            self.end_headers()
            block = b"0123456789abcdef" * 4096
            while size > 0:
                self.wfile.write(block[:size])
                size -= len(block)
        elif where == "/big-up":
            digest, left = hashlib.sha256(), int(self.headers["Content-Length"])
            while left > 0:
                data = self.rfile.read(min(left, 65536))
                digest.update(data)
                left -= len(data)
            self.answer(digest.hexdigest().encode())
        elif where == "/trailers":
            self.send_response(200)
            self.send_header("Transfer-Encoding", "chunked")
            self.send_header("Trailer", "X-End")
            self.end_headers()
            self.wfile.write(b"5;ext=1\r\nhello\r\n0\r\nX-End: 1\r\n\r\n")
        elif where == "/until-close":
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"until close")
            self.close_connection = True
        elif where == "/cut":
            self.send_response(200)
            self.send_header("Content-Length", "1000")
            self.end_headers()
            self.wfile.write(b"short")
            self.wfile.flush()
            self.connection.shutdown(socket.SHUT_RDWR)
            self.close_connection = True
        elif where == "/204":
            self.send_response(204)
            self.end_headers()
        elif where == "/304":
            self.send_response(304)
            self.send_header("ETag", '"1"')
            self.end_headers()
        elif where in ("/websocket", "/echo-websocket"):
            key = self.headers["Sec-WebSocket-Key"] + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
            self.send_response(101)
            self.send_header("Upgrade", "websocket")
            self.send_header("Connection", "Upgrade")
            self.send_header("Sec-WebSocket-Accept", base64.b64encode(hashlib.sha1(key.encode()).digest()).decode())
            self.end_headers()
            if where == "/echo-websocket":
                self.connection.sendall(b"\x81\x7e" + struct.pack(">H", len(echo)) + echo)
            while data := self.connection.recv(4096):
                self.connection.sendall(data)
            self.close_connection = True
        else:
            self.answer(b"hello " + body)

    do_GET = do_POST = do_PUT = do_HEAD = do_DELETE = do_OPTIONS = do_TRACE = handle_any


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 256

    def handle_error(self, request, client_address):
        pass


def serve(tmp, address, port, *names):
    """A server with TLS for the names (none: plain). Its .seen has what came."""
    server = Server((address, port), Handler)
    server.seen = []
    if names:
        contexts = {}
        for name in names:
            contexts[name] = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            contexts[name].load_cert_chain(f"{tmp}/{name}.crt", f"{tmp}/{name}.key")
            contexts[name].set_alpn_protocols(["http/1.1"])
        first = contexts[names[0]]

        def choose(connection, name, context):
            connection.context = contexts.get(name, first)

        first.sni_callback = choose
        server.socket = first.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server
