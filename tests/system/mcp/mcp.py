"""The claims of mcp_test: `mcp.py CLAIM`.

The daemon is at $HOLT_HOST (a unix socket) and at $port on loopback; $state is its state directory, $seed that of
whatever is random. There is a sandbox named work."""
import concurrent.futures, hashlib, http.client, json, os, random, re, signal, socket, subprocess, sys, time

from api import Connection, call

ACCEPT = "application/json, text/event-stream"
VERSIONS = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"]
PARSE, REQUEST, METHOD, PARAMS, REFUSED, SESSION = -32700, -32600, -32601, -32602, -32000, -32001


def equal(wanted, got, of=""):
    assert wanted == got, f"wanted {wanted!r:.2000}, got {got!r:.2000} {of!s:.2000}"


def tcp():
    return http.client.HTTPConnection("127.0.0.1", int(os.environ["port"]))


def main_token():
    return open(os.path.join(os.environ["state"], "token")).read().strip()


def ask(connection, body=None, session=None, verb="POST", path="/mcp", **headers):
    """Status, headers and body (parsed where it is JSON) of one request."""
    named = {"Accept": ACCEPT, "Content-Type": "application/json", "Mcp-Session-Id": session}
    named.update({name.replace("_", "-"): value for name, value in headers.items()})
    if not isinstance(body, (bytes, str, type(None))):
        body = json.dumps(body)
    connection.request(verb, path, body, {name: value for name, value in named.items() if value is not None})
    response = connection.getresponse()
    data = response.read()
    is_json = response.headers.get("Content-Type") == "application/json"
    return response.status, response.headers, json.loads(data) if is_json and data else data


def message(method, id=None, **params):
    return {"jsonrpc": "2.0", "method": method, **({} if id is None else {"id": id}), **({"params": params} if params else {})}


def opened(connection, path="/mcp?sandbox=work", version=VERSIONS[0], **headers):
    """The id of a new session."""
    status, given, reply = ask(connection, message("initialize", 0, protocolVersion=version), path=path, **headers)
    equal((200, version), (status, reply["result"]["protocolVersion"]))
    return given["Mcp-Session-Id"]


def tool(id, name, arguments, **meta):
    return message("tools/call", id, name=name, arguments=arguments, **({"_meta": meta} if meta else {}))


def bash(connection, session, cmd):
    status, _, reply = ask(connection, tool("bash", "bash", {"cmd": cmd}), session)
    equal(200, status)
    if isinstance(reply, bytes):  # it took long enough to become a stream
        reply = events(reply)[-1]
    return reply["result"]["content"][0]["text"]


def error_of(reply):
    equal("2.0", reply["jsonrpc"])
    assert "result" not in reply and reply["error"]["message"], reply
    return reply.get("id"), reply["error"]["code"]


# What is wrong with a body: the status, the id that can be told, the code.
WRONG = [
    (b"", 400, None, PARSE), (b"{", 400, None, PARSE), (b"nonsense", 400, None, PARSE), (b"\xff\xfe", 400, None, PARSE),
    (b'{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}', 400, None, PARSE), (b"[" * 100000, 400, None, PARSE),
    (b'{"a":' * 3000, 400, None, PARSE), (b'{"jsonrpc":"2.0","id":1,"method":"ping"} x', 400, None, PARSE),
    (b"1", 400, None, REQUEST), (b"null", 400, None, REQUEST), (b'"ping"', 400, None, REQUEST), (b"{}", 400, None, REQUEST),
    (b'{"id":1,"method":"ping"}', 400, 1, REQUEST), (b'{"jsonrpc":"1.0","id":1,"method":"ping"}', 400, 1, REQUEST),
    (b'{"jsonrpc":2.0,"id":1,"method":"ping"}', 400, 1, REQUEST), (b'{"jsonrpc":"2.0","id":1}', 400, 1, REQUEST),
    (b'{"jsonrpc":"2.0","id":1,"method":5}', 400, 1, REQUEST), (b'{"jsonrpc":"2.0","id":null,"method":"ping"}', 400, None, REQUEST),
    (b'{"jsonrpc":"2.0","id":true,"method":"ping"}', 400, None, REQUEST), (b'{"jsonrpc":"2.0","id":[1],"method":"ping"}', 400, None, REQUEST),
    (b'{"jsonrpc":"2.0","id":{},"method":"ping"}', 400, None, REQUEST),
    (b'{"jsonrpc":"2.0","id":"%s","method":"ping"}' % (b"x" * 257), 400, None, REQUEST),
    (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}', 400, 1, PARAMS),
    (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":"x"}', 400, 1, PARAMS),
    (message("no/such", 1), 200, 1, METHOD), (message("", 1), 200, 1, METHOD), (message("tools/call", 1), 200, 1, PARAMS),
    (message("tools/list", 1, cursor="x"), 200, 1, PARAMS), (message("resources/list", 1), 200, 1, METHOD),
    (message("tools/call", 1, name=5), 200, 1, PARAMS), (message("tools/call", 1, name="no_such"), 200, 1, PARAMS),
    (message("tools/call", 1, name="x" * 100000), 200, 1, PARAMS),
    (message("tools/call", 1, name="bash", arguments=[]), 200, 1, PARAMS),
    (message("tools/call", 1, name="bash", arguments="cmd"), 200, 1, PARAMS),
    (message("tools/call", 1, name="bash", _meta=1), 200, 1, PARAMS),
    (tool(1, "bash", {"cmd": "true"}, progressToken=[]), 200, 1, PARAMS),
    (tool(1, "bash", {"cmd": "true"}, progressToken="x" * 300), 200, 1, PARAMS),
    (tool(1, "bash", {"cmd": "true"}, **{"holt/toolCallId": 5}), 200, 1, PARAMS),
    (tool(1, "bash", {"cmd": "true"}, **{"holt/toolCallId": "x" * 129}), 200, 1, PARAMS),
    (tool(1, "bash", {"cmd": "true"}, **{"holt/toolCallId": "a\0b"}), 200, 1, PARAMS),
    (tool(1, "bash", {"cmd": "true"}, **{"holt/changed": 1}), 200, 1, PARAMS),
    (message("initialize", 1), 200, 1, PARAMS), (message("initialize", 1, protocolVersion=5), 200, 1, PARAMS),
]


def what_is_no_message_has_its_code():
    connection = Connection()
    session = opened(connection)
    for body, status, id, code in WRONG:
        got, _, reply = ask(connection, body, session)
        equal((status, (id, code)), (got, error_of(reply)), f"of {body!r:.200}")
    for body in [message("notifications/initialized"), message("notifications/no/such"), message("notifications/cancelled"),
                 message("notifications/cancelled", requestId=[]), {"jsonrpc": "2.0", "id": 1, "result": {}},
                 {"jsonrpc": "2.0", "id": "x", "error": {}}]:
        status, headers, reply = ask(connection, body, session)
        equal((202, b""), (status, reply), f"of {body}")
    equal({}, ask(connection, message("ping", 1), session)[2]["result"])


def what_headers_say_is_checked():
    connection = Connection()
    session = opened(connection)
    ping = message("ping", 1)
    for status, headers in [(406, {"Accept": "application/json"}), (406, {"Accept": "text/event-stream"}), (406, {"Accept": "text/html"}),
                            (200, {"Accept": "*/*"}), (200, {"Accept": None}), (415, {"Content-Type": "text/plain"}),
                            (415, {"Content-Type": None}), (200, {"Content-Type": "application/json; charset=utf-8"}),
                            (400, {"MCP-Protocol-Version": "1999-01-01"}), (400, {"MCP-Protocol-Version": ""}),
                            (200, {"MCP-Protocol-Version": VERSIONS[1]})]:
        got, _, reply = ask(connection, ping, session, **headers)
        equal(status, got, f"with {headers}")
        equal(status == 200, "result" in reply)
    for verb in ["GET", "PUT", "HEAD", "OPTIONS", "PATCH"]:
        status, headers, _ = ask(connection, None, session, verb)
        equal((405, "POST, DELETE"), (status, headers["Allow"]), verb)
    status, _, reply = ask(connection, b'"' + b"x" * 5_000_000, session)
    equal((413, (None, REFUSED)), (status, error_of(reply)))
    token = {"Authorization": "Bearer " + main_token()}
    for status, headers in [(401, {}), (401, {"Authorization": "Bearer x"}), (403, {**token, "Host": "evil.test"}),
                            (403, {**token, "Origin": "https://evil.test"}), (200, {**token, "Origin": "https://page.test"}),
                            (200, token)]:
        equal(status, ask(tcp(), message("initialize", 0, protocolVersion="x"), **headers)[0], f"with {headers}")


def ids_come_back_as_they_were():
    connection = Connection()
    session = opened(connection)
    for id in ["", "x" * 256, "\u00e9\u0000\n\"", "1", 1, 0, -5, 2**53, 2**63 - 1, 1.5]:
        _, _, reply = ask(connection, {"jsonrpc": "2.0", "id": id, "method": "ping"}, session)
        equal((id, type(id), {}), (reply["id"], type(reply["id"]), reply["result"]))


def revisions_are_agreed_on():
    connection = Connection()
    for wanted in VERSIONS + ["2099-01-01", ""]:
        _, _, reply = ask(connection, message("initialize", 0, protocolVersion=wanted))
        equal(wanted if wanted in VERSIONS else VERSIONS[0], reply["result"]["protocolVersion"])


def batches_are_for_the_revision_that_has_them():
    connection = Connection()
    for version in VERSIONS:
        session = opened(connection, version=version)
        status, _, reply = ask(connection, [message("ping", 1), message("ping", 2)], session)
        if version != "2025-03-26":
            equal((400, (None, REQUEST)), (status, error_of(reply)))
    session = opened(connection, version="2025-03-26")
    batch = [message("ping", "a"), message("notifications/initialized"), 5, message("no/such", 2),
             tool(3, "bash", {"cmd": "echo in a batch"}), message("initialize", 4, protocolVersion="x")]
    status, _, replies = ask(connection, batch, session)
    equal((200, ["a", None, 2, 3, 4]), (status, [each["id"] for each in replies]))
    assert "in a batch" in replies[3]["result"]["content"][0]["text"]
    equal([REQUEST, METHOD, METHOD], [replies[i]["error"]["code"] for i in (1, 2, 4)])
    equal(202, ask(connection, [message("notifications/initialized")], session)[0])
    for wrong in [[], [message("ping", i) for i in range(65)]]:
        equal((400, (None, REQUEST)), (lambda got: (got[0], error_of(got[2])))(ask(connection, wrong, session)))


def a_batch_is_answered_as_far_as_it_fits():
    """What is too long together is refused call by call, and not gathered first."""
    connection = Connection()
    session = opened(connection, version="2025-03-26")
    bash(Connection(), session, "printf '\\211PNG\\r\\n\\032\\n' >big.png && head -c 4000000 /dev/zero >>big.png")
    status, _, replies = ask(connection, [*(tool(i, "read_file", {"path": "big.png"}) for i in range(3)), message("ping", "end")], session)
    equal((200, [0, 1, 2, "end"]), (status, [each["id"] for each in replies]))
    equal("image/png", replies[0]["result"]["content"][0]["mimeType"])
    assert "longer than" in replies[1]["error"]["message"] and "longer than" in replies[2]["error"]["message"], str(replies[1:])[:500]
    equal({}, replies[3]["result"])
    bash(connection, session, "rm big.png")


def token_create(**fields):
    return call("TokenService/Create", **fields)["secret"]


def a_session_is_needed_and_belongs_to_its_token():
    ping = message("ping", 7)
    mine = {"Authorization": "Bearer " + main_token()}
    other = {"Authorization": "Bearer " + token_create(label="other")}
    session = opened(tcp(), **mine)
    for status, code, given, headers in [(400, REFUSED, None, mine), (404, SESSION, "0" * 32, mine), (404, SESSION, "", mine),
                                         (404, SESSION, session[:-1], mine), (404, SESSION, session + "0", mine),
                                         (404, SESSION, session, other)]:
        got, _, reply = ask(tcp(), ping, given, **headers)
        equal((status, (7, code)), (got, error_of(reply)), f"with {given}")
    equal(404, ask(Connection(), ping, session)[0], "over the unix socket")
    equal(404, ask(tcp(), None, session, "DELETE", **other)[0])
    equal(200, ask(tcp(), ping, session, **mine)[0])
    equal(400, ask(tcp(), None, None, "DELETE", **mine)[0])
    equal(200, ask(tcp(), None, session, "DELETE", **mine)[0])
    equal(404, ask(tcp(), ping, session, **mine)[0])
    equal(404, ask(tcp(), None, session, "DELETE", **mine)[0])


def there_are_only_so_many_sessions():
    """Whoever was not there for longest makes room. There may be others than these."""
    connection = Connection()
    first, second = opened(connection), opened(connection)
    sessions = []
    for i in range(1023):
        sessions.append(opened(connection))
        if i % 100 == 0:
            equal(200, ask(connection, message("ping", 1), first)[0])
    equal(404, ask(connection, message("ping", 1), second)[0])
    equal(200, ask(connection, message("ping", 1), first)[0])
    equal(200, ask(connection, message("ping", 1), sessions[-1])[0])
    for session in [first, *sessions]:
        assert ask(connection, None, session, "DELETE")[0] in (200, 404)


def who_opens_many_sessions_drives_out_nobody_else():
    connection, greedy = Connection(), tcp()
    looks = {"Authorization": "Bearer " + token_create(readOnly=True)}
    mine = opened(connection)
    sessions = [opened(greedy, **looks) for _ in range(1025)]
    equal(200, ask(connection, message("ping", 1), mine)[0])
    equal(404, ask(greedy, message("ping", 1), sessions[0], **looks)[0])
    equal(200, ask(greedy, message("ping", 1), sessions[-1], **looks)[0])
    for session in sessions:  # of which some are gone
        assert ask(greedy, None, session, "DELETE", **looks)[0] in (200, 404)
    equal(200, ask(connection, None, mine, "DELETE")[0])


def where_a_session_works_is_said_at_its_beginning():
    connection = Connection()
    for query in ["sandbox=../x", "sandbox=", "sandbox", "template=A", "sandox=work", "read-only=yes", "sandbox=work&template=host"]:
        status, _, reply = ask(connection, message("initialize", 1, protocolVersion="x"), path="/mcp?" + query)
        equal((400, (1, PARAMS)), (status, error_of(reply)), query)
    session = opened(connection, "/mcp?sandbox=nobody")
    _, _, reply = ask(connection, tool(1, "bash", {"cmd": "true"}), session)
    equal((1, REFUSED), error_of(reply))
    equal(("not_found", "SessionNotFound"), (reply["error"]["data"]["code"], reply["error"]["data"]["cause"]))
    session = opened(connection, "/mcp?template=no-such-template")
    _, _, reply = ask(connection, tool(1, "bash", {"cmd": "true"}), session)
    equal("TemplateNotFound", reply["error"]["data"]["cause"])


def sandboxes():
    return {each["id"] for each in call("SandboxService/List").get("sandboxes", [])}


def who_may_only_look_gets_nothing_made():
    token = {"Authorization": "Bearer " + token_create(readOnly=True)}
    before = sandboxes()
    session = opened(tcp(), "/mcp", **token)
    _, _, reply = ask(tcp(), tool(1, "list_snapshots", {}), session, **token)
    equal("permission_denied", reply["error"]["data"]["code"])
    session = opened(tcp(), **token)
    for each in ["bash", "write_file", "rollback", "fork"]:
        _, _, reply = ask(tcp(), tool(1, each, {}), session, **token)
        equal("permission_denied", reply["error"]["data"]["code"], each)
    names = [each["name"] for each in ask(tcp(), message("tools/list", 1), session, **token)[2]["result"]["tools"]]
    assert "list_snapshots" in names and "bash" not in names
    equal(before, sandboxes())


def long_answers_come_whole():
    """Over both transports, in both forms."""
    connection = Connection()
    session = opened(connection)
    bash(connection, session, "(printf '\\211PNG\\r\\n\\032\\n'; head -c 5000000 /dev/urandom) > /tmp/long.png")
    sum = bash(connection, session, "base64 -w 0 /tmp/long.png | sha256sum").split()[0]
    asked = [tool(1, "read_file", {"path": "/tmp/long.png"}), tool(2, "read_file", {"path": "/tmp/long.png"}, progressToken=1)]
    out, _ = bridge("--sandbox", "work").communicate(BEGINNING + lines(*asked), timeout=600)
    answers = [ask(connection, asked[0], session)[2], *events(ask(connection, asked[1], session)[2]),
               *(json.loads(line) for line in out.splitlines()[1:])]
    equal([1, 2, 1, 2], [each["id"] for each in answers[:2]] + sorted(each["id"] for each in answers[2:]))
    for each in answers:
        equal(sum, hashlib.sha256(each["result"]["content"][0]["data"].encode()).hexdigest())


def a_cancellation_may_be_faster_than_its_call():
    connection = Connection()
    session = opened(connection)
    equal(202, ask(connection, message("notifications/cancelled", requestId="early"), session)[0])
    status, _, body = ask(connection, tool("early", "bash", {"cmd": "touch /tmp/early"}), session)
    equal((202, b""), (status, body))
    assert "none" in bash(Connection(), session, "test -e /tmp/early || echo none")
    status, _, reply = ask(Connection(), tool("early", "bash", {"cmd": "echo once"}), session)
    assert "once" in reply["result"]["content"][0]["text"]


def begun(session, name, **meta):
    """A call that does not end by itself, and has begun: its connection."""
    connection = Connection()
    body = json.dumps(tool(name, "bash", {"cmd": f"echo $$ > /tmp/{name}; sleep 100000; true", "timeout_ms": 86400000}, **meta))
    connection.request("POST", "/mcp", body, {"Accept": ACCEPT, "Content-Type": "application/json", "Mcp-Session-Id": session})
    eventually(lambda: "begun" in bash(Connection(), session, f"test -s /tmp/{name} && echo begun"))
    return connection


def eventually(is_true):
    for _ in range(6000):
        if is_true():
            return
        time.sleep(0.01)
    raise AssertionError("never came true")


def is_gone(session, name):
    return "gone" in bash(Connection(), session, f"kill -0 $(cat /tmp/{name}) 2>/dev/null || echo gone")


def a_cancelled_call_is_not_answered():
    session = opened(Connection())
    for name, meta, expected in [("plain", {}, (202, b"")), ("told", {"progressToken": 1}, (200, b""))]:
        connection = begun(session, name, **meta)
        assert not is_gone(session, name)
        equal(202, ask(Connection(), message("notifications/cancelled", requestId="another"), session)[0])
        assert not is_gone(session, name)
        equal(202, ask(Connection(), message("notifications/cancelled", requestId=name, reason="tired"), session)[0])
        response = connection.getresponse()
        said = response.status, response.read()
        if said[1].strip() == b"":
            equal(expected, said, name)
        else:  # it took long enough to need a sign of life
            equal((200, []), (said[0], events(said[1])), name)
        eventually(lambda: is_gone(session, name))


def a_silent_call_gives_signs_of_life():
    """Of which a client without interest in progress need know nothing."""
    session = opened(Connection())
    silent = {"cmd": "until test -e /tmp/heard; do sleep 0.1; done; echo done"}
    asked = [tool(1, "bash", silent), tool(2, "bash", silent, progressToken="t"), tool(3, "shell", silent, progressToken="s"),
             tool(4, "bash", silent, **{"holt/toolCallId": "silent"}), tool(5, "bash", silent, **{"holt/toolCallId": "silent"})]

    def first_sign(request):
        connection = Connection()
        connection.request("POST", "/mcp", json.dumps(request), {"Accept": ACCEPT, "Content-Type": "application/json", "Mcp-Session-Id": session})
        response = connection.getresponse()
        equal((200, "text/event-stream"), (response.status, response.headers["Content-Type"]))
        body = b""
        while b"still running" not in body:
            body += response.readline()
            assert not response.isclosed(), body
        return response, body

    with concurrent.futures.ThreadPoolExecutor() as pool:
        begun_ones = list(pool.map(first_sign, asked))
        bash(Connection(), session, "touch /tmp/heard")
        bodies = list(pool.map(lambda each: each[1] + each[0].read(), begun_ones))
    for request, body in zip(asked, bodies):
        *told, last = events(body)
        assert "done" in last["result"]["content"][0]["text"], last
        if "progressToken" in request["params"].get("_meta", {}):
            assert any(re.fullmatch(r"still running, no output for \d+ s", each["params"]["message"]) for each in told), told
            numbers = [each["params"]["progress"] for each in told]
            equal(sorted(set(numbers)), numbers)
        else:
            equal([], told)
    assert bodies[0].startswith(b": still running\n\n"), bodies[0]


def the_end_of_a_session_ends_its_calls():
    session, other = opened(Connection()), opened(Connection())
    connection = begun(session, "ended")
    equal(200, ask(Connection(), None, session, "DELETE")[0])
    connection.getresponse().read()
    eventually(lambda: is_gone(other, "ended"))


def a_client_that_goes_away_ends_its_call():
    session = opened(Connection())
    begun(session, "left").close()
    eventually(lambda: is_gone(session, "left"))


# --- mutations ----------------------------------------------------------------------------------------------------------

GOOD = [message("initialize", 1, protocolVersion=VERSIONS[0], capabilities={}, clientInfo={"name": "x", "version": "1"}),
        message("ping", "p"), message("tools/list", 2), message("notifications/cancelled", requestId=1, reason="x"),
        tool(3, "bash", {"cmd": "true"}, progressToken="t"), tool(4, "multi_edit", {"path": "a", "edits": [{"old_string": "a", "new_string": "b"}]}),
        tool(5, "git_add", {"paths": ["a", "b"]}, **{"holt/toolCallId": "x", "holt/changed": True}), [message("ping", 6), message("ping", 7)]]
ODD = [b"\x00", b"\xff", b"\\u0000", b"\\ud800", b"{", b"}", b"[", b"]", b'"', b",", b":", b"null", b"1e999", b"-", b"9" * 30, b"\n", b"\\",
       b'"id":1,', b'"jsonrpc":"2.0",', b"[[[[", b'"params":{},']


def mutated(rng):
    text = bytearray(json.dumps(rng.choice(GOOD)).encode())
    for _ in range(rng.randrange(1, 6)):
        at = rng.randrange(len(text) + 1)
        what = rng.randrange(4)
        if what == 0:
            text[at:at + rng.randrange(1, 12)] = b""
        elif what == 1:
            text[at:at] = rng.choice(ODD)
        elif what == 2 and at < len(text):
            text[at] = rng.randrange(256)
        else:
            text[at:at] = text[rng.randrange(len(text) + 1):][:rng.randrange(1, 40)]
        if not text:
            text = bytearray(b" ")
    return bytes(text)


def is_answer(reply):
    if isinstance(reply, list):
        return bool(reply) and all(is_answer(each) for each in reply)
    return reply["jsonrpc"] == "2.0" and ("result" in reply) != ("error" in reply) and "id" in reply


def events(body):
    return [json.loads(line[5:]) for line in body.decode().split("\n") if line.startswith("data:")]


def mutated_messages_are_answered():
    """Nobody has the sandbox that they are about, so nothing happens by them."""
    rng = random.Random(int(os.environ["seed"]))
    print("seed", os.environ["seed"])
    connection = Connection()
    path = "/mcp?sandbox=nobody"
    sessions = [opened(connection, path), opened(connection, path, "2025-03-26")]
    for _ in range(5000):
        text = mutated(rng)
        status, headers, reply = ask(connection, text, rng.choice(sessions), path=path)
        if headers.get("Content-Type") == "text/event-stream":
            assert all(is_answer(each) for each in events(reply)), (text, reply)  # none of one that was cancelled
        elif status == 202:
            equal(b"", reply, f"of {text}")
        else:
            assert status in (200, 400) and is_answer(reply), (text, status, reply)


# --- stdio --------------------------------------------------------------------------------------------------------------

def bridge(*args, **options):
    return subprocess.Popen(["holt", "mcp", *args], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options)


def lines(*messages):
    return b"".join((each if isinstance(each, bytes) else json.dumps(each).encode()) + b"\n" for each in messages)


BEGINNING = lines(message("initialize", 0, protocolVersion=VERSIONS[0]), message("notifications/initialized"))


def stdio_says_nothing_but_messages():
    """Whatever the lines are. A line in the middle that is too long is refused, and the next is read."""
    rng = random.Random(int(os.environ["seed"]) + 1)
    print("seed", os.environ["seed"])
    wrong = [body for body, _, _, _ in WRONG if isinstance(body, bytes)] + [mutated(rng).replace(b"\n", b" ") for _ in range(300)]
    for some in range(0, len(wrong), 50):  # more might be under way at a time than there may be
        process = bridge("--sandbox", "nobody")
        out, err = process.communicate(BEGINNING + lines(*wrong[some:some + 50]) + b"\n \r\n"
                                       + lines(b"x" * 5_000_000, message("ping", "last")), timeout=600)
        equal(0, process.returncode, err.decode(errors="replace"))
        replies = [json.loads(line) for line in out.splitlines()]
        assert all(is_answer(each) for each in replies), replies
        assert any(not isinstance(each, list) and each.get("id") == "last" and "result" in each for each in replies), replies
        assert any("longer than" in str(each) for each in replies)
    process = bridge("--sandbox", "work")
    out, _ = process.communicate(lines(message("ping", 1)))  # before there is a session
    equal((1, REFUSED), error_of(json.loads(out)))


def stdio_keeps_its_session_when_another_is_refused():
    process = bridge("--sandbox", "work")
    out, _ = process.communicate(BEGINNING + lines(message("initialize", "wrong", protocolVersion=1), message("ping", "last")), timeout=600)
    replies = {reply["id"]: reply for reply in map(json.loads, out.splitlines())}
    equal(PARAMS, replies["wrong"]["error"]["code"])
    equal({}, replies["last"].get("result"), replies)


def stdio_answers_all_before_it_ends():
    """Several at a time, each when it is done; the last line needs no end."""
    process = bridge("--sandbox", "work")
    slow = tool("slow", "bash", {"cmd": "until [ -e /tmp/quick ]; do sleep 0.02; done; rm /tmp/quick; echo slowly"})
    out, err = process.communicate(BEGINNING + lines(slow) + lines(tool("quick", "bash", {"cmd": "touch /tmp/quick"})).rstrip(), timeout=600)
    equal((0, b""), (process.returncode, err))
    equal([0, "quick", "slow"], sorted((json.loads(line)["id"] for line in out.splitlines()), key=str))


def stdio_reaches_other_machines():
    there = {**os.environ, "HOLT_HOST": "http://127.0.0.1:" + os.environ["port"]}
    for secret, expected in [(main_token(), [("result", 0), ("result", 1)]), ("wrong", [("error", 0), ("error", 1)])]:
        process = bridge("--sandbox", "work", env={**there, "HOLT_TOKEN": secret})
        out, _ = process.communicate(BEGINNING + lines(tool(1, "bash", {"cmd": "true"}, progressToken=1)), timeout=600)
        replies = [json.loads(line) for line in out.splitlines()]
        equal(expected, [("error" if "error" in each else "result", each["id"]) for each in replies])
        equal(0, process.returncode)


def stdio_removes_what_was_made_for_it_alone():
    before = sandboxes()
    process = bridge("--rm", cwd=os.environ["tmp"])
    process.stdin.write(BEGINNING + lines(tool(1, "bash", {"cmd": "echo made"})))
    process.stdin.flush()
    replies = [json.loads(process.stdout.readline()) for _ in range(2)]
    assert "made" in replies[1]["result"]["content"][0]["text"]
    equal(1, len(sandboxes() - before))
    process.communicate(timeout=600)
    equal((0, before), (process.returncode, sandboxes()))


def stdio_begun(name):
    process = bridge("--sandbox", "work")
    process.stdin.write(BEGINNING + lines(tool(1, "bash", {"cmd": f"echo $$ > /tmp/{name}; sleep 100000; true", "timeout_ms": 86400000})))
    process.stdin.flush()
    session = opened(Connection())
    eventually(lambda: "begun" in bash(Connection(), session, f"test -s /tmp/{name} && echo begun"))
    return process, session


def stdio_ends_when_nobody_reads():
    process, session = stdio_begun("unread")
    process.stdout.close()
    process.wait(600)
    eventually(lambda: is_gone(session, "unread"))


def stdio_ends_at_a_signal():
    process, session = stdio_begun("signalled")
    process.stdin.close()  # which alone does not end a call
    assert not is_gone(session, "signalled")
    process.send_signal(signal.SIGTERM)
    equal(128 + signal.SIGTERM, process.wait(600))
    eventually(lambda: is_gone(session, "signalled"))


if __name__ == "__main__":
    globals()[sys.argv[1]]()
