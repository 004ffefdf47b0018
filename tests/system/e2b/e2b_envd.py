"""The claims of e2b_envd_test: `e2b_envd.py CLAIM`. See e2b_control.py for where the daemon is."""
import base64, gzip, http.client, json, os, socket, struct, sys, time
from contextlib import contextmanager
from urllib.parse import urlencode

from e2b_control import create, envd, equal, expect, kill, run, signature, until


@contextmanager
def box(**fields):
    """A sandbox with the usual user, and another one."""
    sandbox = create(**fields)
    run(sandbox, "grep -q ^user: /etc/passwd || echo user:x:1000:1000::/home/user:/bin/sh >> /etc/passwd; "
        "echo jane:x:1234:2345::/home/jane:/bin/sh >> /etc/passwd; "
        "mkdir -p /home/user /home/jane; chown 1000:1000 /home/user; chown 1234:2345 /home/jane")
    try:
        yield sandbox
    finally:
        kill(sandbox)


def headers_of(sandbox, user=None, **more):
    headers = {"E2b-Sandbox-Id": sandbox["sandboxID"], "E2b-Sandbox-Port": "49983",
               "X-Access-Token": sandbox["envdAccessToken"]}
    if user is not None:
        headers["Authorization"] = "Basic " + base64.b64encode(f"{user}:".encode()).decode()
    headers.update({name.replace("_", "-"): value for name, value in more.items()})
    return headers


def connect_to():
    return http.client.HTTPConnection("127.0.0.1", int(os.environ["port"]))


def call(sandbox, method, message, user=None):
    """Status and message of a unary call."""
    connection = connect_to()
    connection.request("POST", "/" + method, json.dumps(message),
                       headers_of(sandbox, user, Content_Type="application/json"))
    response = connection.getresponse()
    data = json.loads(response.read())
    connection.close()
    return response.status, data


def well(sandbox, method, message, **more):
    status, reply = call(sandbox, method, message, **more)
    equal(200, status, reply)
    return reply


class Stream:
    """A server stream; iterating gives its messages. `error` is what its end says, None: all is well,
    "torn": it had no end, "reset": nor had its connection."""

    def __init__(self, sandbox, method, message, user=None, **headers):
        text = json.dumps(message).encode()
        self.connection = connect_to()
        self.connection.request("POST", "/" + method, struct.pack(">BI", 0, len(text)) + text,
                                headers_of(sandbox, user, Content_Type="application/connect+json", **headers))
        self.response = self.connection.getresponse()
        equal(200, self.response.status)
        equal("application/connect+json", self.response.headers["Content-Type"])
        self.error = "torn"

    def __iter__(self):
        while True:
            try:
                flags, size = struct.unpack(">BI", self.response.read(5))
                message = json.loads(self.response.read(size))
            except (http.client.IncompleteRead, struct.error):
                return
            except ConnectionError:
                self.error = "reset"
                return
            if flags == 2:
                self.error = message.get("error")
                equal(b"", self.response.read())
                return
            yield message

    def next(self):
        return next(iter(self))

    def close(self):
        self.response.close()
        self.connection.close()


def shell(text, **fields):
    return {"process": {"cmd": "/bin/bash", "args": ["-c", text], **fields}, "stdin": False}


def output(events):
    """What a process wrote, by stream, and its end."""
    wrote, end = {}, None
    for event in events:
        event = event["event"]
        for name, data in event.get("data", {}).items():
            wrote[name] = wrote.get(name, b"") + base64.b64decode(data)
        end = event.get("end", end)
    return {name: data.decode() for name, data in wrote.items()}, end


def start(sandbox, text, user=None, **fields):
    stream = Stream(sandbox, "process.Process/Start", shell(text, **fields), user)
    wrote, end = output(stream)
    equal(None, stream.error)
    return wrote.get("stdout", ""), wrote.get("stderr", ""), end


# --- processes ------------------------------------------------------------------------------------------

def envd_wants_its_token():
    with box() as sandbox:
        equal(204, envd(sandbox, token=False)[0])
        for token in (False, "", "0" * 64, sandbox["envdAccessToken"][:-1]):
            for path in ("/envs", "/metrics", "/process.Process/List"):
                verb = "GET" if path[1] in "em" else "POST"
                status, _, body = envd(sandbox, verb, path, token)
                equal((401, 401), (status, body["code"]))
        equal({}, envd(sandbox, "GET", "/envs")[2])
        metrics = envd(sandbox, "GET", "/metrics")[2]
        for field in ("ts", "cpu_count", "mem_total", "mem_used", "mem_cache", "disk_used", "disk_total"):
            assert isinstance(metrics[field], int), metrics
        assert 0 <= metrics["cpu_used_pct"] <= 100, metrics
        for path in ("/init", "/freeze"):
            equal(404, envd(sandbox, "POST", path)[0])
    equal((502, sandbox["sandboxID"]), (lambda r: (r[0], r[2]["sandboxId"]))(envd(sandbox)))


def a_process_is_streamed():
    with box() as sandbox:
        stream = Stream(sandbox, "process.Process/Start", shell("echo $$; echo no >&2; exit 3"))
        pid = stream.next()["event"]["start"]["pid"]
        wrote, end = output(stream)
        equal(({"stdout": f"{pid}\n", "stderr": "no\n"}, None), (wrote, stream.error))
        equal({"exitCode": 3, "exited": True, "status": "exit status 3", "error": "exit status 3"}, end)
        equal({"exitCode": 0, "exited": True, "status": "exit status 0"}, start(sandbox, "true")[2])
        big = start(sandbox, "head -c 3000000 /dev/zero | tr '\\0' x")[0]
        equal(3000000, len(big))
        equal("signal: terminated", start(sandbox, "kill $$")[2]["error"])


def an_environment_is_put_together():
    with box(envVars={"A": "sandbox", "B": "sandbox"}) as sandbox:
        equal({"A": "sandbox", "B": "sandbox"}, envd(sandbox, "GET", "/envs")[2])
        names = "$A $B $C $E2B_SANDBOX $E2B_SANDBOX_ID $USER $LOGNAME $HOME"
        equal(f"sandbox own x true {sandbox['sandboxID']} user user /home/user\n",
              start(sandbox, f"echo {names}", envs={"B": "own", "C": "x"})[0])
        equal("sandbox sandbox\n", start(sandbox, "echo $A $B $C")[0])
        equal("none\n", start(sandbox, "echo ${LANG-none}")[0])


def users_are_the_sandboxes_own():
    with box() as sandbox:
        who = "id -u; id -g; pwd; echo $HOME; echo again > /dev/stderr"
        equal(("1000\n", "/home/user"), (start(sandbox, "id -u")[0], start(sandbox, "pwd")[0].strip()))
        equal(("1234\n2345\n/home/jane\n/home/jane\n", "again\n"), start(sandbox, who, user="jane")[:2])
        equal("0\n/root\n", start(sandbox, "id -u; pwd", user="root")[0])
        equal("/home/jane/sub\n/tmp\n", start(sandbox, "mkdir sub; cd sub; pwd", user="jane")[0] +
              start(sandbox, "pwd", user="jane", cwd="/tmp")[0])
        equal("/home/jane/sub\n" * 2, start(sandbox, "pwd", user="jane", cwd="sub")[0] +
              start(sandbox, "pwd", user="jane", cwd="~/sub")[0])
        equal((401, "unauthenticated"), (lambda r: (r[0], r[1]["code"]))(
            call(sandbox, "filesystem.Filesystem/Stat", {"path": "/"}, user="ghost")))


def what_cannot_start_says_why():
    with box() as sandbox:
        for message, user, code, text in (
                ({"process": {"cmd": "/no/such"}}, None, "invalid_argument", "/no/such"),
                ({"process": {"cmd": "/bin/true", "cwd": "/none"}}, None, "invalid_argument",
                 "cwd '/none' does not exist"),
                ({"process": {"cmd": "/bin/true"}}, "ghost", "unauthenticated", "invalid username: 'ghost'"),
                ({"process": {"cmd": "/bin/true"}}, "a" * 300, "unauthenticated", "invalid username"),
                ({}, None, "invalid_argument", "process")):
            stream = Stream(sandbox, "process.Process/Start", message, user)
            equal([], list(stream))
            equal(code, stream.error["code"])
            assert text in stream.error["message"], stream.error
        for method in ("SendSignal", "SendInput", "Update", "CloseStdin"):
            message = {"process": {"pid": 99999}, "signal": "SIGNAL_SIGKILL", "input": {"stdin": ""},
                       "pty": {"size": {"cols": 1, "rows": 1}}}
            status, error = call(sandbox, "process.Process/" + method, message)
            equal((404, "not_found", "process with pid 99999 not found"),
                  (status, error["code"], error["message"]))
        equal(501, call(sandbox, "process.Process/StreamInput", {})[0])


def many_arguments_arrive():
    words = [str(number) for number in range(20000)]
    with box() as sandbox:
        stream = Stream(sandbox, "process.Process/Start", {
            "process": {"cmd": "/usr/bin/printf", "args": ["%s\\n", *words]}, "stdin": False})
        wrote, end = output(stream)
        equal(None, stream.error)
        equal(words, wrote["stdout"].split())
        equal("exit status 0", end["status"])
        stream = Stream(sandbox, "process.Process/Start", {
            "process": {"cmd": "/bin/true", "args": ["x" * 100000] * 25}, "stdin": False})
        list(stream)
        assert "too large" in stream.error["message"], stream.error


def an_end_waits_for_whoever_can_write():
    """A process that has left its pipes to another ends with that one, or at once when it is told to."""
    with box() as sandbox:
        def leave():
            stream = Stream(sandbox, "process.Process/Start", shell("sleep 1000 & echo $!; exit 4"))
            pid = stream.next()["event"]["start"]["pid"]
            left = int(base64.b64decode(stream.next()["event"]["data"]["stdout"]))
            until(lambda: start(sandbox, f"test -e /proc/{pid} || echo gone")[0] == "gone\n")
            equal([pid], [each["pid"] for each in well(sandbox, "process.Process/List", {})["processes"]])
            return stream, pid, left
        stream, pid, left = leave()
        equal("", start(sandbox, f"kill {left}")[1])
        equal(({}, 4), (lambda wrote, end: (wrote, end["exitCode"]))(*output(stream)))
        for signal in ("SIGNAL_SIGTERM", "SIGNAL_SIGKILL"):
            stream, pid, left = leave()
            well(sandbox, "process.Process/SendSignal", {"process": {"pid": pid}, "signal": signal})
            equal(({}, 4), (lambda wrote, end: (wrote, end["exitCode"]))(*output(stream)))
            equal("", start(sandbox, f"kill {left}")[1])
        equal("quiet\n", start(sandbox, "sleep 1000 >/dev/null 2>&1 & echo quiet")[0])
        late = Stream(sandbox, "process.Process/Connect", {"process": {"pid": pid}})
        equal((pid, 4), (late.next()["event"]["start"]["pid"], output(late)[1]["exitCode"]))


def a_connection_serves_one_command_after_the_other():
    """Also where a command has a deadline, which is what every SDK asks for."""
    with box() as sandbox:
        connection = connect_to()
        text = json.dumps(shell("true")).encode()
        ports = set()
        for _ in range(3):
            connection.request("POST", "/process.Process/Start", struct.pack(">BI", 0, len(text)) + text,
                               headers_of(sandbox, Content_Type="application/connect+json",
                                          Connect_Timeout_Ms="60000"))
            ports.add(connection.sock.getsockname())
            assert b'"exited":true' in connection.getresponse().read()
        equal(1, len(ports))
        connection.close()


def time_that_is_given_is_kept():
    with box() as sandbox:
        told = []
        for given_ms in (300, 3000, 30000):  # whose time is over too soon starts nothing
            stream = Stream(sandbox, "process.Process/Start", shell("sleep 1000"), Connect_Timeout_Ms=str(given_ms))
            told = list(stream)
            equal("deadline_exceeded", stream.error["code"])
            if told:
                break
        [pid] = [each["event"]["start"]["pid"] for each in told]
        until(lambda: well(sandbox, "process.Process/List", {})["processes"] == [])
        assert start(sandbox, f"kill -0 {pid} 2>/dev/null || echo dead")[0] == "dead\n"


def a_quiet_stream_says_that_it_lives():
    with box() as sandbox:
        stream = Stream(sandbox, "process.Process/Start", shell("sleep 1000"), Keepalive_Ping_Interval="1")
        stream.next()
        equal({"event": {"keepalive": {}}}, stream.next())
        stream.close()
        watch = Stream(sandbox, "filesystem.Filesystem/WatchDir", {"path": "/tmp"},
                       Keepalive_Ping_Interval="1")
        equal([{"start": {}}, {"keepalive": {}}], [watch.next(), watch.next()])
        watch.close()


def a_process_outlives_its_client_and_is_joined():
    with box() as sandbox:
        first = Stream(sandbox, "process.Process/Start", {"process": {"cmd": "/bin/cat"}, "tag": "cat"})
        pid = first.next()["event"]["start"]["pid"]
        first.close()
        listed = well(sandbox, "process.Process/List", {})["processes"]
        equal([(pid, "cat", "/bin/cat")], [(p["pid"], p["tag"], p["config"]["cmd"]) for p in listed])
        joined = Stream(sandbox, "process.Process/Connect", {"process": {"pid": pid}})
        by_tag = Stream(sandbox, "process.Process/Connect", {"process": {"tag": "cat"}})
        for stream in (joined, by_tag):
            equal(pid, stream.next()["event"]["start"]["pid"])
        well(sandbox, "process.Process/SendInput",
             {"process": {"pid": pid}, "input": {"stdin": base64.b64encode(b"hi").decode()}})
        for stream in (joined, by_tag):
            equal({"stdout": base64.b64encode(b"hi").decode()}, stream.next()["event"]["data"])
        well(sandbox, "process.Process/SendSignal", {"process": {"pid": pid}, "signal": "SIGNAL_SIGKILL"})
        equal("dead\n", start(sandbox, f"kill -0 {pid} 2>/dev/null || echo dead")[0])
        killed = {"exitCode": -1, "exited": False, "status": "signal: killed", "error": "signal: killed"}
        for stream in (joined, by_tag, Stream(sandbox, "process.Process/Connect", {"process": {"pid": pid}})):
            equal(({}, killed), output(stream))
            equal(None, stream.error)


def input_reaches_pipes_and_terminals():
    with box() as sandbox:
        def send(pid, data, name="stdin"):
            return call(sandbox, "process.Process/SendInput", {
                "process": {"pid": pid}, "input": {name: base64.b64encode(data).decode()}})
        cat = Stream(sandbox, "process.Process/Start", {"process": {"cmd": "/bin/cat"}})
        pid = cat.next()["event"]["start"]["pid"]
        equal(400, send(pid, b"x", "pty")[0])
        for _ in range(3):
            equal(200, send(pid, b"y" * 70000)[0])
        well(sandbox, "process.Process/CloseStdin", {"process": {"pid": pid}})
        equal(210000, len(output(cat)[0]["stdout"]))
        equal(("", ""), start(sandbox, "cat")[:2])
        shell_on = Stream(sandbox, "process.Process/Start", {
            "process": {"cmd": "/bin/bash", "args": ["--norc", "-i"], "envs": {"PS1": "", "TERM": "xterm"}},
            "pty": {"size": {"cols": 80, "rows": 24}}})
        pid = shell_on.next()["event"]["start"]["pid"]
        well(sandbox, "process.Process/Update",
             {"process": {"pid": pid}, "pty": {"size": {"cols": 100, "rows": 30}}})
        equal(200, send(pid, b"stty size; stat -c %u $(tty); exit 5\n", "pty")[0])
        wrote, end = output(shell_on)
        assert "30 100\r\n1000\r\n" in wrote["pty"], wrote
        equal(5, end["exitCode"])


# --- files ----------------------------------------------------------------------------------------------

def files_are_looked_at_and_moved():
    with box() as sandbox:
        def fs(method, user=None, **message):
            return call(sandbox, "filesystem.Filesystem/" + method, message, user)
        equal((404, "not_found"), (lambda r: (r[0], r[1]["code"]))(fs("Stat", path="none")))
        equal("/home/user/a/b", fs("MakeDir", path="a/b")[1]["entry"]["path"])
        equal(409, fs("MakeDir", path="a/b")[0])
        equal(400, fs("MakeDir", path="/etc/passwd")[0])
        equal(200, fs("MakeDir", path="/rooted/deep", user="jane")[0])
        equal("1234 2345\n" * 2, run(sandbox, "stat -c '%u %g' /rooted /rooted/deep"))
        start(sandbox, "cd a; echo text > f; chmod 4711 f; ln -s f to-f; ln -s none to-none; ln -s b to-b")
        entries = fs("ListDir", path="a", depth=0)[1]["entries"]
        equal(["b", "f", "to-b", "to-f", "to-none"], [entry["name"] for entry in entries])
        by_name = {entry["name"]: entry for entry in entries}
        equal(("FILE_TYPE_FILE", "5", 0o711, "urwx--x--x", "user"),
              tuple(by_name["f"][name] for name in ("type", "size", "mode", "permissions", "owner")))
        equal(("FILE_TYPE_FILE", 0o711, "Lrwxrwxrwx", "/home/user/a/f"),
              tuple(by_name["to-f"][name] for name in ("type", "mode", "permissions", "symlinkTarget")))
        equal("FILE_TYPE_DIRECTORY", by_name["to-b"]["type"])
        assert "type" not in by_name["to-none"], by_name
        start(sandbox, "mkdir -p a/b/c; echo > a/b/c/d")
        equal(["/home/user/a/b", "/home/user/a/b/c", "/home/user/a/f"],
              [entry["path"] for entry in fs("ListDir", path="~/a", depth=2)[1]["entries"]][:3])
        equal(["c"], [entry["name"] for entry in fs("ListDir", path="a/to-b", depth=1)[1]["entries"]])
        equal((400, 404), (fs("ListDir", path="a/f")[0], fs("ListDir", path="none")[0]))
        equal("/home/user/new/g", fs("Move", source="a/f", destination="new/g")[1]["entry"]["path"])
        equal(404, fs("Move", source="a/f", destination="new/g")[0])
        equal((200, 200), (fs("Remove", path="a")[0], fs("Remove", path="a")[0]))
        equal("new\n", start(sandbox, "ls")[0])


def changes_are_told():
    with box() as sandbox:
        start(sandbox, "mkdir w")
        watch = Stream(sandbox, "filesystem.Filesystem/WatchDir",
                       {"path": "w", "recursive": True, "includeEntry": True})
        equal({"start": {}}, watch.next())
        start(sandbox, "mkdir w/sub; echo x > w/sub/f; chmod 600 w/sub/f; mv w/sub/f w/sub/g; rm w/sub/g; "
              "echo > w/last")
        told = []
        while not told or told[-1][:2] != ("last", "CREATE"):
            event = watch.next()["filesystem"]
            told.append((event["name"], event["type"][len("EVENT_TYPE_"):], "entry" in event))
        kinds = {(name, kind) for name, kind, _ in told}
        for wanted in (("sub", "CREATE"), ("sub/g", "REMOVE"), ("last", "CREATE")):
            assert wanted in kinds, told
        assert not any(has for _, kind, has in told if kind in ("REMOVE", "RENAME")), told
        watch.close()
        for path, code in (("none", "not_found"), ("/etc/passwd", "invalid_argument")):
            stream = Stream(sandbox, "filesystem.Filesystem/WatchDir", {"path": path})
            equal(([], code), (list(stream), stream.error["code"]))


def a_new_file_is_told_as_by_envd():
    """What the tests of E2B's own client in Python expect of a poll after a write: no more, no less, at once."""
    with box() as sandbox:
        fs = lambda method, **fields: well(sandbox, "filesystem.Filesystem/" + method, fields)
        for number in range(50):
            path = f"/tmp/told{number}"
            fs("MakeDir", path=path)
            equal("4096", fs("Stat", path=path)["entry"]["size"])
            watcher = fs("CreateWatcher", path=path)["watcherId"]
            equal(200, files(sandbox, "POST", {"path": path + "/new", "username": "root"}, b"hello",
                             Content_Type="application/octet-stream")[0])
            told = [(event["name"], event["type"]) for event in fs("GetWatcherEvents", watcherId=watcher)["events"]]
            equal([("new", "EVENT_TYPE_" + each) for each in ("CREATE", "CHMOD", "WRITE")], told)
            fs("RemoveWatcher", watcherId=watcher)


def watchers_keep_what_happens():
    with box() as sandbox:
        def fs(method, **message):
            return call(sandbox, "filesystem.Filesystem/" + method, message)
        watcher = fs("CreateWatcher", path="/tmp")[1]["watcherId"]
        equal([], fs("GetWatcherEvents", watcherId=watcher)[1]["events"])
        start(sandbox, "echo > /tmp/f")
        seen = []
        until(lambda: seen.extend(fs("GetWatcherEvents", watcherId=watcher)[1]["events"]) or
              {"name": "f", "type": "EVENT_TYPE_WRITE"} in seen)
        with box() as other:
            equal(404, call(other, "filesystem.Filesystem/RemoveWatcher", {"watcherId": watcher})[0])
        equal((200, 404), (fs("RemoveWatcher", watcherId=watcher)[0],
                           fs("GetWatcherEvents", watcherId=watcher)[0]))
        equal(404, fs("CreateWatcher", path="/none")[0])
        equal(200, fs("CreateWatcher", path="/etc")[0])


def many_watch_and_files_are_served_all_the_same():
    with box() as sandbox:
        def fs(method, **message):
            return call(sandbox, "filesystem.Filesystem/" + method, message)
        run(sandbox, "mkdir -p /tmp/w/sub /tmp/other")
        streams = [Stream(sandbox, "filesystem.Filesystem/WatchDir", {"path": "/tmp/w", "recursive": True})
                   for _ in range(20)]
        for stream in streams:
            equal({"start": {}}, stream.next())
        watchers = [fs("CreateWatcher", path="/tmp/w" if i % 2 else "/tmp/other")[1]["watcherId"]
                    for i in range(236)]
        status, error = fs("CreateWatcher", path="/tmp/w")
        equal((429, "resource_exhausted"), (status, error["code"]))
        equal(200, files(sandbox, "POST", {"path": "/tmp/w/new"}, b"x", **BYTES)[0])
        equal((200, b"x"), files(sandbox, "GET", {"path": "/tmp/w/new"}))
        for stream in streams:
            equal({"name": "new", "type": "EVENT_TYPE_CREATE"}, stream.next()["filesystem"])
        def heard(i):
            found = []
            until(lambda: found.extend(fs("GetWatcherEvents", watcherId=watchers[i])[1]["events"]) or found)
            return found[0]
        equal("new", heard(1)["name"])
        equal("new", heard(235)["name"])
        equal([], fs("GetWatcherEvents", watcherId=watchers[0])[1]["events"])
        # Who goes takes nothing from those who watch the same.
        for each in watchers[1:]:
            equal(200, fs("RemoveWatcher", watcherId=each)[0])
        for stream in streams[1:]:
            stream.close()
        until(lambda: fs("CreateWatcher", path="/tmp/w")[0] == 200)
        run(sandbox, "mkdir /tmp/w/sub/deep; echo x > /tmp/w/sub/deep/file; echo y > /tmp/other/o")
        until(lambda: streams[0].next()["filesystem"]["name"] == "sub/deep/file")
        equal("o", heard(0)["name"])
        streams[0].close()


def files(sandbox, verb, query, body=None, signed=False, **headers):
    connection = connect_to()
    named = headers_of(sandbox, **headers)
    if signed:
        named = {name: value for name, value in named.items()
                 if name not in ("E2b-Sandbox-Id", "E2b-Sandbox-Port", "X-Access-Token")}
    chunks = None if body is None else iter([body[at:at + 10000] for at in range(0, len(body), 10000)])
    connection.request(verb, "/files?" + urlencode(query), chunks, named, encode_chunked=body is not None)
    response = connection.getresponse()
    data = response.read()
    connection.close()
    is_json = response.headers.get("Content-Type") == "application/json"
    return response.status, json.loads(data) if is_json else data


def form(*parts):
    text = b"".join(b'--XX\r\nContent-Disposition: form-data; name="%s"; filename="%s"\r\n'
                    b"Content-Type: application/octet-stream\r\n\r\n%s\r\n" % part for part in parts)
    return text + b"--XX--\r\n", {"Content_Type": "multipart/form-data; boundary=XX"}


BYTES = {"Content_Type": "application/octet-stream"}


def forms_and_bytes_become_files():
    noise = os.urandom(1 << 20) + b"\r\n--X" * 1000
    with box() as sandbox:
        body, headers = form((b"file", b"d/one", noise), (b"other", b"no", b"x"), (b"file", b"/tmp/two", b""))
        equal((200, [{"name": "one", "path": "/home/user/d/one", "type": "file"},
                     {"name": "two", "path": "/tmp/two", "type": "file"}]),
              files(sandbox, "POST", {}, body, **headers))
        equal((200, noise), files(sandbox, "GET", {"path": "d/one"}))
        equal((200, b""), files(sandbox, "GET", {"path": "/tmp/two"}))
        equal("user 644\nuser 755\n", start(sandbox, "stat -c '%U %a' d/one d")[0])
        body, headers = form((b"file", b"ignored", b"x"))
        equal("/root/by", files(sandbox, "POST", {"path": "by", "username": "root"}, body, **headers)[1][0]["path"])
        equal(200, files(sandbox, "POST", {"path": "o"}, b"plain", **BYTES)[0])
        equal(200, files(sandbox, "POST", {"path": "o"}, noise, **BYTES)[0])
        equal((200, noise), files(sandbox, "GET", {"path": "o"}))
        packed = gzip.compress(noise[:500000]) + gzip.compress(noise[500000:])
        equal(200, files(sandbox, "POST", {"path": "z"}, packed, Content_Encoding="gzip", **BYTES)[0])
        equal((200, noise), files(sandbox, "GET", {"path": "z"}))
        body, headers = form((b"file", b"packed", noise))
        equal(200, files(sandbox, "POST", {}, gzip.compress(body), Content_Encoding="gzip", **headers)[0])
        equal((200, noise), files(sandbox, "GET", {"path": "packed"}))
        equal("root\n", run(sandbox, "echo root > /etc/own; chmod 600 /etc/own; cat /etc/own"))
        equal((200, b"root\n"), files(sandbox, "GET", {"path": "/etc/own"}))


def what_is_said_of_a_file_comes_back():
    with box() as sandbox:
        status, reply = files(sandbox, "POST", {"path": "m"}, b"x", X_Metadata_Kind="a b", X_Metadata_N="1", **BYTES)
        equal((200, {"kind": "a b", "n": "1"}), (status, reply[0]["metadata"]))
        look = lambda: well(sandbox, "filesystem.Filesystem/Stat", {"path": "m"})["entry"]["metadata"]
        equal({"kind": "a b", "n": "1"}, look())
        run(sandbox, "python3 -c 'import os; os.setxattr(\"/home/user/m\", \"user.e2b.own\", b\"2\")'")
        equal("2", look()["own"])
        equal(200, files(sandbox, "POST", {"path": "m"}, b"x", X_Metadata_New="3", **BYTES)[0])
        equal({"new": "3"}, look())
        equal([{"name": "m", "path": "/home/user/m", "type": "file"}],
              files(sandbox, "POST", {"path": "m"}, b"x", **BYTES)[1])
        equal({}, look())
        longest = {"X_Metadata_" + "k" * 246: "v"}
        equal(200, files(sandbox, "POST", {"path": "m"}, b"x", **longest, **BYTES)[0])
        equal({"k" * 246: "v"}, look())
        for name, value in (("Long", "v" * 5000), ("k" * 247, "v"), ("Bytes", "\xe9"), ("", "v")):
            status, error = files(sandbox, "POST", {"path": "m"}, b"x", **{"X_Metadata_" + name: value}, **BYTES)
            equal((400, 400), (status, error["code"]), name)


def files_that_cannot_be_are_refused():
    with box() as sandbox:
        equal((404, "path '/home/user/none' does not exist"),
              (lambda r: (r[0], r[1]["message"]))(files(sandbox, "GET", {"path": "none"})))
        equal(400, files(sandbox, "GET", {"path": "/etc"})[0])
        status, error = files(sandbox, "GET", {"path": "x", "username": "ghost"})
        assert status == 401 and error["message"].startswith("error looking up user 'ghost'"), error
        for query, body, headers in (
                ({}, b"x", BYTES), ({"path": "/etc"}, b"x", BYTES),
                ({"path": "x"}, b"x", {"Content_Type": "text/plain"}),
                ({"path": "x"}, b"no gzip", {"Content_Encoding": "gzip", **BYTES}),
                ({"path": "x"}, gzip.compress(b"cut")[:-3], {"Content_Encoding": "gzip", **BYTES}),
                ({"path": "x"}, b"x", {"Content_Encoding": "br", **BYTES}),
                ({"path": "x"}, b"no form", {"Content_Type": "multipart/form-data; boundary=x"}),
                ({"path": "x"}, b"no form", {"Content_Type": "multipart/form-data"})):
            status, error = files(sandbox, "POST", query, body, **headers)
            equal((400, 400), (status, error["code"]), (query, headers))


def signed_urls_open_one_file():
    with box() as sandbox:
        token = sandbox["envdAccessToken"]
        sign = lambda *rest: {"signature": signature(token, *rest)}
        files(sandbox, "POST", {"path": "s"}, b"signed", **BYTES)
        equal((200, b"signed"), files(sandbox, "GET", {"path": "s", **sign("s")}, signed=True))
        soon, past = str(int(time.time()) + 100), str(int(time.time()) - 100)
        for until_s, wanted in ((soon, 200), (past, 401)):
            query = {"path": "s", "signature_expiration": until_s, **sign("s", "read", "", until_s)}
            status, body = files(sandbox, "GET", query, signed=True)
            equal(wanted, status, body)
        equal("signature is already expired", body["message"])
        body, headers = form((b"file", b"up", b"brought"))
        equal(401, files(sandbox, "POST", {"path": "up", **sign("up", "read")}, body, signed=True, **headers)[0])
        query = {"path": "up", "username": "root", **sign("up", "write", "root")}
        equal((200, "/root/up"), (lambda r: (r[0], r[1][0]["path"]))(
            files(sandbox, "POST", query, body, signed=True, **headers)))
        equal("brought", run(sandbox, "cat /root/up"))
        for token_shown, more, text in (("", {}, "missing signature query parameter"),
                                        ("0" * 64, {"signature": "v1_bad"}, "invalid signature")):
            status, body = files(sandbox, "GET", {"path": "s", **more}, X_Access_Token=token_shown)
            equal((401, text), (status, body["message"]))


def a_kill_breaks_what_is_streamed():
    sandbox = create()
    process = Stream(sandbox, "process.Process/Start", {"process": {"cmd": "/bin/sleep", "args": ["1000"]}})
    watch = Stream(sandbox, "filesystem.Filesystem/WatchDir", {"path": "/tmp"})
    process.next(), watch.next()
    kill(sandbox)
    equal(([], "torn", [], "torn"), (list(process), process.error, list(watch), watch.error))
    equal(502, envd(sandbox)[0])
    equal(502, call(sandbox, "process.Process/List", {})[0])
    equal(502, files(sandbox, "GET", {"path": "x"})[0])


def torn(connection):
    """Whether a connection ends without a word, in the middle of whatever it had to say."""
    try:
        while connection.recv(1 << 20):
            pass
        return False
    except ConnectionResetError:
        return True


def transfers_break_with_their_sandbox():
    def begin(sandbox, verb, body):
        connection = socket.create_connection(("127.0.0.1", int(os.environ["port"])))
        head = headers_of(sandbox, Host="localhost", Content_Type="application/octet-stream",
                          **({"Transfer_Encoding": "chunked"} if body else {}))
        connection.sendall((f"{verb} /files?path=/tmp/{verb} HTTP/1.1\r\n" + "".join(
            f"{name}: {value}\r\n" for name, value in head.items()) + "\r\n").encode() + body)
        return connection

    for end in (kill, lambda sandbox: expect(204, "POST", f"/sandboxes/{sandbox['sandboxID']}/pause", {})):
        sandbox = create()
        run(sandbox, "head -c 64M /dev/zero > /tmp/GET")
        down, up = begin(sandbox, "GET", b""), begin(sandbox, "POST", b"40000\r\n" + bytes(0x40000))
        assert down.recv(9, socket.MSG_WAITALL) == b"HTTP/1.1 "
        until(lambda: run(sandbox, "ls /tmp | grep POST || true"))
        end(sandbox)
        equal((True, True), (torn(down), torn(up)))
        if end is not kill:
            kill(sandbox)


def a_full_disk_is_507():
    """Also by what is small on the way: a bomb fills the disk it is told to fill, and nothing else."""
    big = os.urandom(1 << 20) * 40  # more than the quota
    body, headers = form((b"file", b"form", big))
    for data, named in ((big, BYTES), (body, headers),
                        (gzip.compress(bytes(1 << 20), 9) * 100, {"Content_Encoding": "gzip", **BYTES})):
        sandbox = create()
        try:
            status, error = files(sandbox, "POST", {"path": "/tmp/big"}, data, **named)
            equal((507, 507), (status, error["code"]), error)
            equal(204, envd(sandbox)[0])
            run(sandbox, "rm /tmp/big")
            until(lambda: files(sandbox, "POST", {"path": "/tmp/small"}, b"fits", **BYTES)[0] == 200)
        finally:
            kill(sandbox)


def raw(sandbox, method, body, kind="application/connect+json", **headers):
    """Status and body of a call that is written by hand."""
    connection = connect_to()
    connection.request("POST", "/" + method, body, headers_of(sandbox, Content_Type=kind, **headers))
    response = connection.getresponse()
    data = response.read()
    connection.close()
    return response.status, data


def refused_in_stream(answer):
    status, data = answer
    flags, size = struct.unpack(">BI", data[:5])
    equal((200, 2, len(data) - 5), (status, flags, size), data)
    return json.loads(data[5:])["error"]["code"]


def what_is_malformed_is_refused():
    with box() as sandbox:
        text = json.dumps(shell("true")).encode()
        def envelope(flags, size, data):
            return struct.pack(">BI", flags, size) + data
        for body, code in (
                (envelope(0, len(text) + 1, text), "invalid_argument"),        # the length lies
                (envelope(0, len(text) - 1, text), "invalid_argument"),
                (envelope(0, 0xffffffff, text), "resource_exhausted"),
                (envelope(1, len(text), gzip.compress(text)), "invalid_argument"),  # packed
                (envelope(2, len(text), text), "invalid_argument"),            # an end
                (envelope(0, len(text), text) * 2, "invalid_argument"),        # two
                (b"", "invalid_argument"), (b"\0\0", "invalid_argument"), (text, "invalid_argument"),
                (envelope(0, 3, b"{]}"), "invalid_argument"), (envelope(0, 2, b"[]"), "invalid_argument"),
                (envelope(0, 4, b"\xff\xfe{}"), "invalid_argument"),
                (envelope(0, 20000, b'{"a":' * 4000), "invalid_argument")):
            equal(code, refused_in_stream(raw(sandbox, "process.Process/Start", body)), body[:60])
        equal("invalid_argument", refused_in_stream(raw(
            sandbox, "process.Process/Start", envelope(0, len(text), text), Connect_Timeout_Ms="soon")))
        for process in ({"cmd": "a\0b"}, {"cmd": ""}, {"cmd": 7}, {"cmd": "/bin/true", "args": ["a\0"]},
                        {"cmd": "/bin/true", "args": "x"}, {"cmd": "/bin/true", "envs": {"A=B": "x"}},
                        {"cmd": "/bin/true", "envs": {"A": 1}}, {"cmd": "/bin/true", "cwd": "\0"}):
            stream = Stream(sandbox, "process.Process/Start", {"process": process})
            equal(([], "invalid_argument"), (list(stream), stream.error["code"]), process)
        for method, body in (("process.Process/List", b"{"), ("process.Process/List", b"[]"),
                             ("filesystem.Filesystem/Stat", b'{"path": 7}'),
                             ("filesystem.Filesystem/Stat", b'{"path": "a\\u0000b"}'),
                             ("filesystem.Filesystem/Stat", json.dumps({"path": "x" * 5000}).encode()),
                             ("filesystem.Filesystem/ListDir", b'{"path": "/", "depth": -1}'),
                             ("process.Process/SendSignal", b'{"process": {"pid": 1}, "signal": "SIGNAL_HUP"}'),
                             ("process.Process/SendInput", b'{"process": {"pid": 1}}'),
                             ("process.Process/SendInput", b'{"process": {"pid": 1}, "input": {"stdin": "?"}}'),
                             ("process.Process/Update", b'{"process": {"pid": 1}, "pty": {"size": {"rows": 70000}}}')):
            status, data = raw(sandbox, method, body, "application/json")
            equal((400, "invalid_argument"), (status, json.loads(data)["code"]), (method, body[:60]))
        # What is not known is passed over, and names may be written as in the definition.
        equal(200, call(sandbox, "process.Process/List", {"more": {"of": ["it"]}})[0])
        made = well(sandbox, "filesystem.Filesystem/CreateWatcher", {"path": "/tmp", "include_entry": True, "x": 1})
        equal({"events": []}, well(sandbox, "filesystem.Filesystem/GetWatcherEvents", {"watcher_id": made["watcherId"]}))
        equal([], well(sandbox, "process.Process/List", {})["processes"])


def descriptors():
    return len(os.listdir(f"/proc/{os.environ['pid']}/fd"))


def who_leaves_in_the_middle_leaves_nothing():
    with box() as sandbox:
        def cut(verb, target, body, **more):
            connection = socket.create_connection(("127.0.0.1", int(os.environ["port"])))
            head = headers_of(sandbox, Host="localhost", **more)
            connection.sendall((f"{verb} {target} HTTP/1.1\r\n" + "".join(
                f"{name}: {value}\r\n" for name, value in head.items()) + "\r\n").encode() + body)
            connection.close()
        files(sandbox, "POST", {"path": "/tmp/big"}, bytes(1 << 22), **BYTES)
        before = descriptors()
        part, headers = form((b"file", b"/tmp/cut", bytes(300000)))
        for _ in range(20):
            cut("POST", "/process.Process/Start", b"\0\0\0\0\x50{", Content_Length="85",
                Content_Type="application/connect+json")
            cut("POST", "/files?path=/tmp/half", bytes(200000), Content_Length="400000", **BYTES)
            cut("POST", "/files", part[:200000], Content_Length=str(len(part)), **headers)
            cut("POST", "/files?path=/tmp/zip", gzip.compress(bytes(1 << 20))[:500], Content_Length="900",
                Content_Encoding="gzip", **BYTES)
            cut("GET", "/files?path=/tmp/big", b"")
        equal((400, "the form has no end"), (lambda r: (r[0], r[1]["message"]))(
            files(sandbox, "POST", {}, part[:-8], **headers)))
        # Workers that wait for the next call are no loss.
        until(lambda: descriptors() <= before + 2 * 16)
        equal((200, bytes(1 << 22)), files(sandbox, "GET", {"path": "/tmp/big"}))
        equal([], well(sandbox, "process.Process/List", {})["processes"])


def large_files_pass_without_being_kept():
    """A hundred mebibytes each way, in less memory than that."""
    def peak():
        with open(f"/proc/{os.environ['pid']}/status") as status:
            return int(next(line for line in status if line.startswith("VmHWM")).split()[1]) // 1024
    block, count = os.urandom(1 << 20), 100
    with box() as sandbox:
        before = peak()
        connection = connect_to()
        connection.request("POST", "/files?path=/tmp/large", (block for _ in range(count)),
                           headers_of(sandbox, **BYTES), encode_chunked=True)
        equal(200, (lambda response: response.read() and response.status)(connection.getresponse()))
        connection.request("GET", "/files?path=/tmp/large", headers=headers_of(sandbox))
        response = connection.getresponse()
        equal(str(count << 20), response.headers["Content-Length"])
        for _ in range(count):
            assert response.read(1 << 20) == block
        equal(b"", response.read())
        connection.close()
        assert peak() - before < 32, (before, peak())


if __name__ == "__main__":
    globals()[sys.argv[1]]()
