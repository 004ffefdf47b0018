"""Ways to steal a secret. None may work; the table of docs/secrets.md, with which this is compared, says which of them are audited."""
import sys
from broker import *

build, tmp = sys.argv[1:3]
certificates(tmp, "api.test", "other.test")
net = Net(build, tmp)
net.hello()
net.add(secrets=[secret()])
api = serve(tmp, ADDRESS, 443, "api.test", "other.test")
api_port = serve(tmp, ADDRESS, 8443, "api.test", "other.test")
other = serve(tmp, OTHER, 443, "other.test", "api.test")
plain = serve(tmp, ADDRESS, 80)
servers = [api, api_port, other, plain]
TOKEN = f"Bearer {PLACEHOLDER}"
rows, failed = [], []


def raw(data, address=ADDRESS, port=443, sni="api.test", more=None):
    """Sends bytes from the sandbox and returns all that comes back."""
    result = []

    def talk():
        with open(f"/proc/{net.keeper.pid}/ns/net") as ns:
            enter(ns)
        got = b""
        try:
            connection = socket.create_connection((address, port), timeout=5)
            if sni:
                context = ssl.create_default_context(cafile=f"{tmp}/holt.crt")
                context.load_verify_locations(f"{tmp}/servers.crt")
                context.check_hostname = False
                connection = context.wrap_socket(connection, server_hostname=sni)
            connection.sendall(data)
            if more:
                got += connection.recv(65536)
                connection.sendall(more)
            while part := connection.recv(65536):
                got += part
        except OSError:
            pass
        result.append(got)

    thread = threading.Thread(target=talk)
    thread.start()
    thread.join()
    return result[0]


def get(target="/", headers=(), host="api.test", version="1.1", method="GET", body=""):
    lines = [f"{method} {target} HTTP/{version}", f"Host: {host}", *headers, "Connection: close"]
    if body:
        lines.append(f"Content-Length: {len(body)}")
    return ("\r\n".join(lines) + "\r\n\r\n").encode() + (body if isinstance(body, bytes) else body.encode())


FORMS = [VALUE, ROTATED]
FORMS += [base64.b64encode(b"x" * i + v.encode()).decode()[8:-8] for v in (VALUE, ROTATED) for i in range(3)]


def has_value(data):
    text = data if isinstance(data, str) else data.decode("latin-1")
    return any(form in text for form in FORMS)


def attempt(what, act, audited, may_reach=()):
    """The value must not come back to the sandbox, nor reach a server where it does not belong."""
    net.leaks()
    for server in servers:
        server.seen.clear()
    got = act()
    time.sleep(0.05)  # for what a server may see later
    reached = [s for s in servers for seen in s.seen if has_value(json.dumps(seen)) and s not in may_reach]
    leaks = net.leaks()
    ok = not has_value(got) and not reached and bool(leaks) == audited
    rows.append((len(rows) + 1, what, "kept" if not has_value(got) and not reached else "STOLEN", ", ".join(m["where"] for m in leaks) or "no"))
    if not ok:
        failed.append(f"{what}: {got[:300]!r} {leaks} {[s.seen for s in servers]}")


auth = f"Authorization: {TOKEN}"
assert b"hello" in raw(get(headers=[auth])) and has_value(json.dumps(api.seen)), "the secret itself works"
attempt("another host, whose TLS is not ended", lambda: raw(get(headers=[auth], host="other.test"), OTHER, sni="other.test"), False)
attempt("another port", lambda: raw(get(headers=[auth], host="api.test:8443"), port=8443), False)
attempt("plain HTTP", lambda: raw(get(headers=[auth]), port=80, sni=None), True)
attempt("a header split by a folded line", lambda: raw(get(headers=["Authorization: Bearer", f" {PLACEHOLDER}"])), False)
attempt("base64 in another header", lambda: raw(get(headers=["X: " + base64.b64encode(f"k={PLACEHOLDER}".encode()).decode()])), True)
zipped = gzip.compress(f"take {PLACEHOLDER}".encode())
attempt("a compressed body", lambda: raw(get(method="POST", headers=["Content-Encoding: gzip", f"Content-Length: {len(zipped)}"]) + zipped), True)
attempt("the query", lambda: raw(get(f"/?key={PLACEHOLDER}")), True)
attempt("the body", lambda: raw(get(method="POST", body=f"key={PLACEHOLDER}")), True)
attempt("a redirect that carries it on", lambda: raw(get("/redirect", [auth])), True, [api])
attempt("the address of an attacker under the name of the host", lambda: raw(get(headers=[auth]), OTHER), False, [other])
attempt("HTTP/1.0", lambda: raw(get("/echo", [auth], version="1.0")), True, [api])
chunked = f"4\r\nbody\r\n0\r\nAuthorization: {TOKEN}\r\n\r\n".encode()
attempt("chunks with trailers", lambda: raw(get(method="POST", headers=["Transfer-Encoding: chunked"]) + chunked), False)
upgrade = ["Upgrade: websocket", "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==", "Sec-WebSocket-Version: 13"]
handshake = get("/websocket", upgrade).replace(b"Connection: close", b"Connection: Upgrade")
attempt("a WebSocket frame", lambda: raw(handshake, more=b"\x81" + bytes([len(PLACEHOLDER)]) + PLACEHOLDER.encode()), True)
mask = os.urandom(4)
masked = bytes(c ^ mask[i % 4] for i, c in enumerate(PLACEHOLDER.encode()))
attempt("a WebSocket frame with a mask", lambda: raw(handshake, more=b"\x81" + bytes([0x80 | len(PLACEHOLDER)]) + mask + masked), True)
parts = [b"\x01" + bytes([len(PLACEHOLDER) - 9]) + PLACEHOLDER[:-9].encode(), b"\x80\x09" + PLACEHOLDER[-9:].encode()]
attempt("two WebSocket frames", lambda: raw(handshake, more=b"".join(parts)), True)
given = get("/echo-websocket", [*upgrade, auth]).replace(b"Connection: close", b"Connection: Upgrade")
attempt("reflection in a WebSocket frame", lambda: raw(given), True, [api])
attempt("a Host that is not the name of the ClientHello", lambda: raw(get(headers=[auth], host="other.test")), False)
attempt("reflection by an echo service", lambda: raw(get("/echo", [auth])), True, [api])
for where, what in (("/echo-base64", "in base64"), ("/echo-gzip", "compressed"), ("/echo-header", "in a header"),
                    ("/echo-reason", "in the status line"), ("/echo-hint", "in an early hint"), ("/echo-slow", "byte by byte")):
    attempt(f"reflection {what}", lambda: raw(get(where, [auth])), True, [api])
attempt("reflection in extensions of chunks and trailers", lambda: raw(get("/echo-trailer", [auth])), False, [api])
attempt("TRACE", lambda: raw(get("/", [auth], method="TRACE")), False)
FORK = PLACEHOLDER[:-4] + "fork"
attempt("the placeholder of a fork", lambda: raw(get(headers=[f"Authorization: Bearer {FORK}"])), False)
net.secrets([secret(value=ROTATED, placeholder=FORK)])
attempt("a placeholder that was replaced", lambda: raw(get("/echo", [auth])), False)
attempt("reflection of a rotated value", lambda: raw(get("/echo", [f"Authorization: Bearer {FORK}"])), True, [api])
net.secrets([])
attempt("after the secret is removed", lambda: raw(get("/echo", [auth])), False)
net.set(secrets=[secret()], policy=net.policy(proxy=f"http://{PROXY}:3128"))
attempt("over a proxy that another has set", lambda: raw(get(headers=[auth])), True)
net.set(secrets=[secret()], caBundle=open(f"{tmp}/strange.crt").read())
attempt("with a CA bundle that another has set", lambda: raw(get(headers=[auth])), True)
rule = {**secret("set", "X-Key", "{}", value=TOKEN)}
del rule["placeholder"]
net.set(secrets=[rule])
attempt("by another's rule that sets a header to the placeholder", lambda: raw(get("/")), False)
rule["value"] = VALUE
net.set(secrets=[rule])
for where, what in (("/echo", ""), ("/echo-base64", ", in base64"), ("/echo-gzip", ", compressed")):
    attempt(f"reflection of a header that a rule sets{what}", lambda: raw(get(where)), True, [api])
net.set(secrets=[{**rule, "mayUseOwnPath": False}], caBundle=open(f"{tmp}/strange.crt").read())
attempt("a header that a rule sets, with a CA bundle that another has set", lambda: raw(get("/")), True)
net.end()
print(f"{'':3} {'way':68} {'value':8} audited")
for row in rows:
    print(f"{row[0]:3} {row[1]:68} {row[2]:8} {row[3]}")
documented = {}
for line in open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../../docs/secrets.md")).read().partition("| way | audited as |")[2].split("\n\n")[0].splitlines()[2:]:
    way, audited = [cell.strip() for cell in line.strip("|").split("|")]
    documented[way] = audited
for _, what, _, audited in rows:
    if documented.pop(what, None) != audited:
        failed.append(f"docs/secrets.md does not say that '{what}' is audited as: {audited}")
elsewhere = {"a DNS name", "the placeholder of a fork, by the original", "after the sandbox is removed"}  # in secret/clients_test
if set(documented) != elsewhere:
    failed.append(f"docs/secrets.md has ways that are not tried: {set(documented) - elsewhere}")
for line in failed:
    print(f"not ok: {line}")
print("ok: no way to steal a secret works") if not failed else sys.exit(1)
