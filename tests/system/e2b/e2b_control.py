"""The claims of e2b_control_test: `e2b_control.py CLAIM`.

The daemon is at $HOLT_HOST (a unix socket) and at $port on loopback; $state is its state directory."""
import base64, hashlib, http.client, json, os, subprocess, sys, time, uuid
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import quote, urlencode

TEMPLATE = "host"


def equal(wanted, got, of=""):
    assert wanted == got, f"wanted {wanted!r:.2000}, got {got!r:.2000} {of!s:.2000}"


def main_token():
    return open(os.path.join(os.environ["state"], "token")).read().strip()


def ask(verb, path, body=None, key="e2b_" + main_token(), **headers):
    """Status, headers and body (parsed) of one request, its body in chunks as fetch writes it."""
    connection = http.client.HTTPConnection("127.0.0.1", int(os.environ["port"]))
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    if key is not None:
        named["X-API-KEY"] = key
    chunks = None
    if body is not None:
        text = (body if isinstance(body, str) else json.dumps(body)).encode()
        named["Content-Type"] = "application/json"
        chunks = iter([text[:5], text[5:]] if len(text) > 5 else [text])
    connection.request(verb, path, chunks, named, encode_chunked=body is not None)
    response = connection.getresponse()
    data = response.read()
    connection.close()
    is_json = response.headers.get("Content-Type") == "application/json"
    return response.status, response.headers, json.loads(data) if is_json and data else data


def expect(status, *request, **headers):
    got, head, body = ask(*request, **headers)
    equal(status, got, body)
    if status == 204:
        equal(b"", body)
    if status >= 400 and status != 502:
        equal(status, body["code"])
        assert isinstance(body["message"], str) and body["message"], body
    return body


def create(version="/v2", **fields):
    return expect(201, "POST", version + "/sandboxes", {"templateID": TEMPLATE, **fields})


def kill(sandbox):
    expect(204, "DELETE", "/sandboxes/" + sandbox["sandboxID"])


def detail(sandbox):
    return expect(200, "GET", "/sandboxes/" + sandbox["sandboxID"])


def holt_id(sandbox):
    assert sandbox["sandboxID"].startswith("sb"), sandbox
    return "sb-" + sandbox["sandboxID"][2:]


def holt(*args):
    return subprocess.run(["holt", *args], check=True, capture_output=True, text=True).stdout


def run(sandbox, command):
    return holt("exec", holt_id(sandbox), "--", "sh", "-c", command)


def until(what, seconds=300):
    end = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < end, "it never came"
        time.sleep(0.05)


def metric(name):
    """The value of one that may have labels, 0 if it is not there."""
    page = ask("GET", "/metrics", key=None, Authorization="Bearer " + main_token())[2].decode()
    return sum(float(line.rsplit(" ", 1)[1]) for line in page.splitlines() if line.rsplit(" ", 1)[0] == name)


def envd(sandbox, verb="GET", path="/health", token=True, **headers):
    if token:
        headers["X_Access_Token"] = sandbox["envdAccessToken"] if token is True else token
    return ask(verb, path, None, None, E2b_Sandbox_Id=sandbox["sandboxID"], E2b_Sandbox_Port="49983", **headers)


def moment(text):
    from datetime import datetime
    return datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


# --- who ---------------------------------------------------------------------------------------------

def keys_are_tokens():
    secret = holt("token", "create", "--label", "sdk").strip().splitlines()[-1].split()[-1]
    assert secret.startswith("holt_"), secret
    for key in (main_token(), "e2b_" + main_token(), secret, "e2b_" + secret[5:]):
        expect(200, "GET", "/v2/sandboxes", key=key)
    for key in (None, "", "e2b_", "e2b_" + "0" * 64, "holt_" + "0" * 64, main_token()[:-1]):
        assert "holt token create" in expect(401, "GET", "/v2/sandboxes", key=key)["message"]
        expect(401, "POST", "/v2/sandboxes", {"templateID": TEMPLATE}, key=key)
    printed = holt("token", "create", "--e2b").strip()
    assert printed.startswith("e2b_") and len(printed) == 68, printed
    expect(200, "GET", "/v2/sandboxes", key=printed)
    expect(200, "GET", "/v2/sandboxes", key=None, Authorization="Bearer " + main_token())
    expect(204, "GET", "/health", key=None)
    team = expect(200, "GET", "/teams")
    equal([True], [each["isDefault"] for each in team])
    equal("e2b_" + main_token(), team[0]["apiKey"])


def a_token_that_may_only_look_changes_nothing():
    looker = holt("token", "create", "--read-only").strip().splitlines()[-1].split()[-1]
    sandbox = create()
    path = "/sandboxes/" + sandbox["sandboxID"]
    shown = expect(200, "GET", path, key=looker)
    assert "envdAccessToken" not in shown, shown
    equal(sandbox["envdAccessToken"], detail(sandbox)["envdAccessToken"])
    expect(403, "DELETE", path, key=looker)
    expect(403, "POST", path + "/connect", {}, key=looker)
    expect(403, "POST", "/v2/sandboxes", {"templateID": TEMPLATE}, key=looker)
    kill(sandbox)


def errors_have_their_code_in_them():
    for verb, path, body in [("GET", "/sandboxes/nosuch", None), ("DELETE", "/sandboxes/sb0000", None),
                             ("POST", "/sandboxes/sb0000/pause", {}), ("POST", "/v2/sandboxes/sb0000/connect", {}),
                             ("POST", "/sandboxes/sb0000/timeout", {"timeout": 1}), ("PUT", "/sandboxes/sb0000/network", {}),
                             ("GET", "/sandboxes/sb0000/metrics", None), ("POST", "/sandboxes/sb0000/snapshots", {}),
                             ("POST", "/sandboxes/sb0000/fork", {}), ("GET", "/sandboxes/sb0000/logs", None),
                             ("DELETE", "/templates/nosuch%3Adefault", None), ("GET", "/v2/nothing", None),
                             ("GET", "/sandboxes/..%2F..%2Fetc", None),
                             ("POST", "/v2/sandboxes", {"templateID": "nosuch"})]:
        expect(404, verb, path, body)
    equal(400, ask("GET", "/sandboxes/%00")[0])
    expect(405, "PATCH", "/v2/sandboxes", {})
    expect(413, "POST", "/v2/sandboxes", {"templateID": "x" * (5 << 20)})
    for body in ("{", "[]", '"text"', "null", "{}", '{"templateID":3}', '{"templateID":""}'):
        expect(400, "POST", "/v2/sandboxes", body)


def what_is_not_e2bs_stays_holts():
    equal((200, b"ok\n"), (lambda r: (r[0], r[2]))(ask("GET", "/healthz", key=None)))
    status, head, body = ask("POST", "/holt.v1.HostService/Health", {}, key=None, Authorization="Bearer " + main_token())
    equal(200, status, body)
    status, head, body = ask("GET", "/metrics", key=None, Authorization="Bearer " + main_token())
    equal(200, status)
    assert b"holt_" in body
    equal(404, ask("GET", "/nothing", key=None, Authorization="Bearer " + main_token())[0])
    for path in ("/nothing", "/no/such/endpoint", "/v1/sandboxes"):
        expect(404, "GET", path)
        expect(401, "GET", path, key="e2b_" + "0" * 64)
    equal(b"ok\n", ask("GET", "/healthz")[2], "a key makes nothing of Holt's E2B's")
    equal(401, ask("GET", "/metrics")[0])
    equal("unauthenticated", ask("POST", "/holt.v1.HostService/Health", {})[2]["code"])


# --- create ------------------------------------------------------------------------------------------

def a_sandbox_is_made_as_asked():
    before = time.time()
    sandbox = create(timeout=77, metadata={"k": "v", "ü": "ß"}, envVars={"A": "1"}, unknown={"x": 1})
    assert sandbox["sandboxID"].isalnum() and sandbox["sandboxID"].islower(), sandbox
    assert len(sandbox["envdAccessToken"]) >= 32
    equal((TEMPLATE, TEMPLATE, None, None), (sandbox["templateID"], sandbox["alias"], sandbox["trafficAccessToken"], sandbox["domain"]))
    equal([0, 6], [int(n) for n in sandbox["envdVersion"].split(".")[:2]])
    got = detail(sandbox)
    equal({"k": "v", "ü": "ß"}, got["metadata"])
    equal("running", got["state"])
    equal({"onTimeout": "kill", "autoResume": False}, got["lifecycle"])
    assert got["allowInternetAccess"] in (True, False), got
    equal([], got["volumeMounts"])
    for name in ("cpuCount", "memoryMB"):
        assert isinstance(got[name], int) and got[name] > 0, (name, got)
    assert isinstance(got["diskSizeMB"], int), got
    started, ends = moment(got["startedAt"]), moment(got["endAt"])
    assert before - 1 <= started <= time.time() + 1 and abs(ends - started - 77) < 1, got
    equal("hi\n", run(sandbox, "echo hi"))
    old = create("", timeout=60, secure=True, allow_internet_access=False)
    assert old["envdAccessToken"] != sandbox["envdAccessToken"]
    private = create(network={"allowPublicTraffic": False})
    assert len(private["trafficAccessToken"]) >= 32 and private["trafficAccessToken"] != private["envdAccessToken"]
    status, head, named = ask("GET", "/sandboxes/" + sandbox["sandboxID"], Host="api.sbx.test:3443")
    equal((200, "sbx.test:3443"), (status, named["domain"]))
    for each in (sandbox, old, private):
        kill(each)


def every_sandbox_has_a_token():
    for wishes in ({}, {"secure": False}, {"secure": True}):
        sandbox = create("", timeout=60, **wishes)
        equal(sandbox["envdAccessToken"], detail(sandbox)["envdAccessToken"])
        equal((401, 200), (envd(sandbox, path="/envs", token=None)[0], envd(sandbox, path="/envs")[0]))
        again = expect(200, "POST", f"/sandboxes/{sandbox['sandboxID']}/connect", {})
        equal(sandbox["envdAccessToken"], again["envdAccessToken"])
        [fork] = expect(201, "POST", f"/sandboxes/{sandbox['sandboxID']}/fork", {})
        equal(401, envd(fork["sandbox"], path="/envs", token=None)[0])
        for each in (sandbox, fork["sandbox"]):
            kill(each)


def what_cannot_be_is_refused():
    for fields in ({"timeout": 10**9}, {"timeout": -1}, {"timeout": "5"}, {"metadata": {"a": 1}}, {"envVars": {"A=B": "1"}},
                   {"envVars": ["A"]}, {"autoPauseMemory": False}, {"metadata": {"a": "x" * 40000}},
                   {"autoPause": True, "autoPauseMemory": False, "autoResume": {"enabled": True}},
                   {"network": {"denyOut": ["example.org"]}}, {"network": {"allowOut": ["example.org"]}}, {"network": []}):
        expect(400, "POST", "/v2/sandboxes", {"templateID": TEMPLATE, **fields})
    expect(400, "POST", "/sandboxes", {"templateID": TEMPLATE, "network": {"allowPublicTraffic": False}})
    for name, remedy in (("base", "make it with 'holt template build base'"), ("base:v2", "holt template build base"),
                         ("code-interpreter-v1", "holt template build code-interpreter-v1"), ("mine", "holt template ls")):
        told = expect(404, "POST", "/v2/sandboxes", {"templateID": name})["message"]
        assert f"template '{name}' not found: " in told and remedy in told, told
    kill(create(network={"denyOut": ["0.0.0.0/0"], "allowOut": ["example.org", "10.0.0.0/8", "fd00::/8"]}))
    equal([], expect(200, "GET", "/v2/sandboxes"))


def a_killed_one_is_gone():
    sandbox = create()
    equal(204, envd(sandbox)[0])
    kill(sandbox)
    expect(404, "DELETE", "/sandboxes/" + sandbox["sandboxID"])
    expect(404, "GET", "/sandboxes/" + sandbox["sandboxID"])
    status, head, body = envd(sandbox)
    equal((502, {"sandboxId": sandbox["sandboxID"], "message": "The sandbox was not found", "code": 502}), (status, body))
    paused = create()
    expect(204, "POST", f"/sandboxes/{paused['sandboxID']}/pause", {})
    kill(paused)
    expect(404, "GET", "/sandboxes/" + paused["sandboxID"])


# --- lifecycle ---------------------------------------------------------------------------------------

def pause_and_connect():
    sandbox = create(timeout=600)
    path = "/sandboxes/" + sandbox["sandboxID"]
    run(sandbox, "echo kept > /tmp/f; sleep 1000 >/dev/null 2>&1 & echo $! > /tmp/pid")
    expect(200, "POST", path + "/connect", {"timeout": 30})
    assert moment(detail(sandbox)["endAt"]) - time.time() > 500, "connecting shortens nothing"
    expect(200, "POST", "/v2" + path + "/connect", {"timeout": 1000})
    assert moment(detail(sandbox)["endAt"]) - time.time() > 900
    expect(409, "POST", path + "/resume", {"timeout": 10})
    expect(204, "POST", path + "/pause", {})
    equal("paused", detail(sandbox)["state"])
    assert json.loads(holt("inspect", holt_id(sandbox))).get("expiresAt") is None, "its time goes on"
    equal(502, envd(sandbox)[0])
    expect(409, "POST", path + "/pause", {})
    expect(404, "POST", path + "/timeout", {"timeout": 10})
    again = expect(201, "POST", "/v2" + path + "/connect", {"timeout": 40})
    for name in ("sandboxID", "envdAccessToken", "templateID"):
        equal(sandbox[name], again[name], name)
    left = moment(detail(sandbox)["endAt"]) - time.time()
    assert 20 < left < 45, left
    equal("kept\n", run(sandbox, "kill -0 $(cat /tmp/pid) && cat /tmp/f"))
    expect(204, "POST", path + "/pause", None)
    expect(201, "POST", path + "/resume", {"timeout": 50, "autoPause": True})
    equal("pause", detail(sandbox)["lifecycle"]["onTimeout"])
    kill(sandbox)


def a_pause_without_memory_is_a_new_start():
    sandbox = create()
    path = "/sandboxes/" + sandbox["sandboxID"]
    run(sandbox, "echo kept > /root/f; sleep 1000 >/dev/null 2>&1 &")
    boot = run(sandbox, "cat /proc/sys/kernel/random/boot_id")
    expect(204, "POST", path + "/pause", {"memory": False})
    equal("paused", detail(sandbox)["state"])
    expect(409, "POST", path + "/pause", {})
    equal(sandbox["envdAccessToken"], expect(201, "POST", path + "/connect", {"timeout": 100})["envdAccessToken"])
    equal("kept\n", run(sandbox, "cat /root/f"))
    assert boot != run(sandbox, "cat /proc/sys/kernel/random/boot_id")
    expect(204, "POST", path + "/pause", {})
    expect(201, "POST", "/v2" + path + "/connect", {"memory": False})
    equal("kept\n", run(sandbox, "cat /root/f"))
    kill(sandbox)


def timeouts_are_set_anew():
    sandbox = create(timeout=1000)
    path = "/sandboxes/" + sandbox["sandboxID"]
    expect(204, "POST", path + "/timeout", {"timeout": 60})
    left = moment(detail(sandbox)["endAt"]) - time.time()
    assert 40 < left < 61, left
    expect(204, "POST", path + "/refreshes", {"duration": 10})
    assert moment(detail(sandbox)["endAt"]) - time.time() > 30
    expect(204, "POST", path + "/refreshes", {"duration": 3600})
    assert moment(detail(sandbox)["endAt"]) - time.time() > 3000
    expect(400, "POST", path + "/refreshes", {"duration": 3601})
    expect(400, "POST", path + "/timeout", {})
    expect(400, "POST", path + "/timeout", {"timeout": 10**8})
    expect(204, "POST", path + "/timeout", {"timeout": 0})
    until(lambda: ask("GET", path)[0] == 404)


def a_timeout_kills_or_pauses():
    dying, pausing, stopping = create(timeout=1), create(timeout=1, autoPause=True), create(timeout=1, autoPause=True, autoPauseMemory=False)
    until(lambda: ask("GET", "/sandboxes/" + dying["sandboxID"])[0] == 404)
    for each, state in ((pausing, "paused"), (stopping, "stopped")):
        until(lambda: detail(each)["state"] == "paused")
        until(lambda: json.loads(holt("inspect", holt_id(each)))["state"] == state)  # E2B has no word for pausing
        expect(201, "POST", "/v2/sandboxes/" + each["sandboxID"] + "/connect", {"timeout": 100})
        equal("running", detail(each)["state"])
        kill(each)


def requests_wake_who_wants_that():
    sandbox = create(autoPause=True, autoResume={"enabled": True}, timeout=600)
    path = "/sandboxes/" + sandbox["sandboxID"]
    equal({"onTimeout": "pause", "autoResume": True}, detail(sandbox)["lifecycle"])
    expect(204, "POST", path + "/pause", {})
    for path in ("/health", "/envs", "/files?path=a", "/nothing"):
        for token in (None, "", "0" * 64):
            status, head, body = envd(sandbox, path=path, token=token)
            equal((403, 403), (status, body["code"]), "a stranger wakes nobody")
    url = "/files?path=/etc/hostname&signature=" + quote(signature(sandbox["envdAccessToken"], "/etc/hostname"))
    equal(403, ask("GET", url, key=None)[0], "nor does a signature")
    equal("paused", detail(sandbox)["state"])
    resumed = metric("holt_sandboxes_resumed_total")
    with ThreadPoolExecutor(20) as pool:
        equal([204] * 20, [each[0] for each in pool.map(lambda _: envd(sandbox), range(20))])
    equal("running", detail(sandbox)["state"])
    equal(resumed + 1, metric("holt_sandboxes_resumed_total"), "times that it was woken")
    assert moment(detail(sandbox)["endAt"]) - time.time() > 500
    kill(sandbox)
    sandbox = create(autoPause=True, autoResume={"enabled": True}, timeout=60)
    expect(204, "POST", f"/sandboxes/{sandbox['sandboxID']}/pause", {})
    equal(204, envd(sandbox)[0])
    assert 200 < moment(detail(sandbox)["endAt"]) - time.time() <= 300, detail(sandbox)
    kill(sandbox)


# --- lists -------------------------------------------------------------------------------------------

def lists_have_filters_order_and_pages():
    made = []
    for i in range(5):
        made.append(create(metadata={"n": str(i), "all": "yes"})["sandboxID"])
        time.sleep(0.01)
    expect(204, "POST", f"/sandboxes/{made[1]}/pause", {})

    def ids(query=""):
        return [each["sandboxID"] for each in expect(200, "GET", "/v2/sandboxes" + query)]

    equal(made[::-1], ids())
    equal(made, ids("?order=asc"))
    equal([made[1]], ids("?state=paused"))
    equal([made[i] for i in (4, 3, 2, 0)], ids("?state=running"))
    equal(made[::-1], ids("?state=running,paused"))
    equal([made[3]], ids("?metadata=" + quote("n=3&all=yes")))
    equal([], ids("?metadata=n%3D9"))
    equal(made[::-1], ids("?template=" + TEMPLATE))
    equal([], ids("?template=nosuch"))
    since = expect(200, "GET", "/sandboxes/" + made[2])["startedAt"]
    equal(made[:1:-1], ids("?startedAfter=" + quote(since)))
    for order in ("asc", "desc"):
        got, token, pages = [], "", 0
        while True:
            status, head, body = ask("GET", f"/v2/sandboxes?limit=2&order={order}" + (f"&nextToken={quote(token)}" if token else ""))
            equal(200, status, body)
            equal("4", head["X-Total-Running"])
            got += [each["sandboxID"] for each in body]
            pages += 1
            token = head["X-Next-Token"]
            if token is None:
                break
        equal((made if order == "asc" else made[::-1], 3), (got, pages))
    equal(None, ask("GET", "/v2/sandboxes?limit=5")[1]["X-Next-Token"])
    equal([made[i] for i in (4, 3, 2, 0)], [each["sandboxID"] for each in expect(200, "GET", "/sandboxes")])
    for query in ("?limit=0", "?limit=101", "?limit=x", "?state=dead", "?order=up", "?startedAfter=then"):
        expect(400, "GET", "/v2/sandboxes" + query)
    for each in made:
        expect(204, "DELETE", "/sandboxes/" + each)


def metadata_is_encoded_three_times():
    odd = {"a b&c=d": "e+f %20", "ü/?#": "1=2&3"}
    sandbox, other = create(metadata=odd), create(metadata={"a b&c=d": "other"})
    for wanted in (odd, {"a b&c=d": "e+f %20"}):
        form = urlencode({quote(key, safe=""): quote(value, safe="") for key, value in wanted.items()})
        got = expect(200, "GET", "/v2/sandboxes?metadata=" + quote(form, safe=""))
        equal([sandbox["sandboxID"]], [each["sandboxID"] for each in got])
    kill(sandbox)
    kill(other)


# --- others ------------------------------------------------------------------------------------------

def metrics_and_logs():
    sandbox = create()
    path = "/sandboxes/" + sandbox["sandboxID"]
    run(sandbox, "echo one")
    metric = expect(200, "GET", path + "/metrics")[-1]
    for name in ("timestamp", "timestampUnix", "cpuCount", "cpuUsedPct", "memUsed", "memTotal", "memCache", "diskUsed", "diskTotal"):
        assert name in metric, metric
    assert metric["memTotal"] > 0 and metric["diskTotal"] > 0 and metric["cpuUsedPct"] >= 0, metric
    now = int(time.time())
    assert expect(200, "GET", f"{path}/metrics?start={now - 60}&end={now + 600}")
    equal([], expect(200, "GET", f"{path}/metrics?start={now - 7200}&end={now - 3600}"))
    expect(400, "GET", f"{path}/metrics?start={now}&end={now - 60}")
    both = expect(200, "GET", "/sandboxes/metrics?sandbox_ids=" + sandbox["sandboxID"] + ",sb00")
    equal([sandbox["sandboxID"]], list(both["sandboxes"]))
    until(lambda: len(expect(200, "GET", path + "/logs")["logs"]) == 2)
    logs = expect(200, "GET", path + "/logs")
    line = json.loads(logs["logs"][0]["line"])
    equal(("info", "process", logs["logEntries"][0]["message"]), (line["level"], line["logger"], line["message"]))
    assert "echo one" in line["message"] and logs["logEntries"][0]["level"] == "info", logs
    for query, count in (("level=debug", 2), ("level=info", 2), ("level=warn", 0), ("search=one", 2), ("search=two", 0), ("direction=forward", 2)):
        equal(count, len(expect(200, "GET", f"/v2{path}/logs?{query}")["logs"]), query)
    for query in ("level=loud", "direction=up", "limit=1001", "cursor=now"):
        expect(400, "GET", f"/v2{path}/logs?{query}")
    equal(1, len(expect(200, "GET", path + "/logs?limit=1")["logs"]))
    equal([], expect(200, "GET", "/v2" + path + f"/logs?cursor={(now + 3600) * 1000}")["logs"])
    backward = expect(200, "GET", "/v2" + path + "/logs?direction=backward&limit=1")["logs"]
    equal(logs["logEntries"][1], backward[0])
    kill(sandbox)


def metrics_have_a_past():
    sandbox = create()
    path = f"/sandboxes/{sandbox['sandboxID']}/metrics"
    born = int(moment(detail(sandbox)["startedAt"]))
    load = subprocess.Popen(["holt", "exec", holt_id(sandbox), "--", "sh", "-c", "while :; do :; done"])
    past = []

    def has_worked():
        past[:] = expect(200, "GET", path)
        return len(past) >= 2 and past[-1]["cpuUsedPct"] > 0

    until(has_worked)
    load.kill()
    load.wait()
    times = [each["timestampUnix"] for each in past]
    equal(sorted(set(times)), times, "oldest first, each once")
    for each in past:
        equal(0, each["timestampUnix"] % 5)
        equal(each["timestampUnix"], moment(each["timestamp"]))
        assert born - 5 <= each["timestampUnix"] <= time.time() and 0 <= each["cpuUsedPct"] <= 100, each
        assert each["memUsed"] > 0 and each["diskTotal"] > 0, each
    equal(past[:1], expect(200, "GET", f"{path}?start={times[0]}&end={times[0]}"))
    equal(past[1:], [each for each in expect(200, "GET", f"{path}?start={times[0] + 1}") if each["timestampUnix"] <= times[-1]])
    equal([], expect(200, "GET", f"{path}?start={born - 100}&end={born - 50}"))
    expect(204, "POST", f"/sandboxes/{sandbox['sandboxID']}/pause", {})
    equal(past, expect(200, "GET", f"{path}?end={times[-1]}"), "one that sleeps has one too")
    kill(sandbox)
    expect(404, "GET", path)


def a_network_is_replaced_and_keeps_no_password():
    proxy = {"address": "10.0.0.1:1080", "username": "u", "password": "hunter2"}
    sandbox = create(network={"denyOut": ["10.0.0.0/8"], "maskRequestHost": "x.test:${PORT}", "egressProxy": proxy})
    path = "/sandboxes/" + sandbox["sandboxID"]
    network = detail(sandbox)["network"]
    equal(["10.0.0.0/8"], network["denyOut"])
    equal({"address": "10.0.0.1:1080", "username": "u"}, network["egressProxy"])
    expect(204, "PUT", path + "/network", {"allowOut": ["192.0.2.1"]})
    equal({"allowOut": ["192.0.2.1"], "maskRequestHost": "x.test:${PORT}"}, detail(sandbox)["network"])
    expect(400, "PUT", path + "/network", {"denyOut": ["nowhere"]})
    for field in ("allow_internet_access", "allowInternetAccess"):
        expect(400, "PUT", path + "/network", {field: "false"})
    expect(204, "PUT", path + "/network", {"deny_out": ["192.0.2.1"]})
    equal({"denyOut": ["192.0.2.1"], "maskRequestHost": "x.test:${PORT}"}, detail(sandbox)["network"])
    expect(204, "PUT", path + "/network", {})
    equal({"maskRequestHost": "x.test:${PORT}"}, detail(sandbox)["network"])
    kill(sandbox)


def snapshots_outlive_their_sandbox():
    sandbox = create(metadata={"a": "b"})
    path = "/sandboxes/" + sandbox["sandboxID"]
    run(sandbox, "echo one > /root/f")
    first = expect(201, "POST", path + "/snapshots", {})
    named = expect(201, "POST", path + "/snapshots", {"name": "snap1"})
    assert "snap1" in named["names"][0] and named["snapshotID"].endswith(":default"), named
    run(sandbox, "echo two > /root/f")
    equal("running", detail(sandbox)["state"])
    kill(sandbox)
    listed = expect(200, "GET", "/snapshots?sandboxID=" + sandbox["sandboxID"])
    equal([named, first], listed)
    equal([named], expect(200, "GET", "/snapshots?name=snap1"))
    status, head, body = ask("GET", "/snapshots?limit=1")
    equal([named], body)
    equal([first], expect(200, "GET", "/snapshots?limit=1&nextToken=" + quote(head["X-Next-Token"])))
    copies = [create(templateID=each["snapshotID"]) for each in (first, named)]
    for each in copies:
        equal("one\n", run(each, "cat /root/f"))
    again = expect(201, "POST", f"/sandboxes/{copies[0]['sandboxID']}/snapshots", {"name": "snap1"})
    equal(named["snapshotID"], again["snapshotID"])
    expect(400, "POST", f"/sandboxes/{copies[0]['sandboxID']}/snapshots", {"name": "Not a name"})
    expect(409, "POST", f"/sandboxes/{copies[0]['sandboxID']}/snapshots", {"name": TEMPLATE})
    for each in (first, named):
        expect(204, "DELETE", "/templates/" + quote(each["snapshotID"], safe=""))
        expect(404, "DELETE", "/templates/" + quote(each["snapshotID"], safe=""))
        expect(404, "POST", "/v2/sandboxes", {"templateID": each["snapshotID"]})
    equal([], expect(200, "GET", "/snapshots"))
    equal("one\n", run(copies[1], "cat /root/f"))
    for each in copies:
        kill(each)
    # What stood on them is gone: the next deletion takes their templates along.
    last = create()
    gone = expect(201, "POST", f"/sandboxes/{last['sandboxID']}/snapshots", {})
    expect(204, "DELETE", "/templates/" + quote(gone["snapshotID"], safe=""))
    kill(last)
    assert "snapshot-" not in holt("template", "ls"), holt("template", "ls")


def forks_have_tokens_of_their_own():
    sandbox = create(metadata={"a": "b"}, envVars={"A": "1"}, timeout=900)
    path = "/sandboxes/" + sandbox["sandboxID"]
    run(sandbox, "echo one > /root/f")
    forks = [each["sandbox"] for each in expect(201, "POST", path + "/fork", {"count": 3, "timeout": 60})]
    equal(4, len({each["envdAccessToken"] for each in forks + [sandbox]}))
    run(sandbox, "echo two > /root/f")
    for each in forks:
        got = detail(each)
        equal({"a": "b"}, got["metadata"])
        assert moment(got["endAt"]) - time.time() < 61, got
        equal("one\n", run(each, "cat /root/f"))
        kill(each)
    equal(1, len(expect(201, "POST", path + "/fork", None)))
    for count in (0, 101, -1, "2"):
        expect(400, "POST", path + "/fork", {"count": count})
    for each in expect(200, "GET", "/v2/sandboxes"):
        expect(204, "DELETE", "/sandboxes/" + each["sandboxID"])


def built(name, size={}, **build):
    """A template of that name, built."""
    made = expect(202, "POST", "/v3/templates", {"name": name, **size})
    equal(made["buildID"], str(uuid.UUID(made["buildID"])))  # as the clients in Python read it
    path = f"/templates/{made['templateID']}/builds/{made['buildID']}"
    expect(202, "POST", "/v2" + path, {"fromTemplate": TEMPLATE, "steps": [{"type": "USER", "args": ["root"]}], **build})
    until(lambda: expect(200, "GET", path + "/status")["status"] not in ("waiting", "building"))
    status = expect(200, "GET", path + "/status")
    equal("ready", status["status"], status)
    return made


def sandboxes_are_as_large_as_their_template():
    template = built("small", {"cpuCount": 1, "memoryMB": 192})
    sandbox = create(templateID="small", timeout=600)
    path = "/sandboxes/" + sandbox["sandboxID"]
    snapshot = expect(201, "POST", path + "/snapshots", {})
    others = [expect(201, "POST", path + "/fork", {})[0]["sandbox"], create(templateID=snapshot["snapshotID"])]
    for each in [sandbox] + others:
        got = detail(each)
        equal((1, 192), (got["cpuCount"], got["memoryMB"]))
        assert got["diskSizeMB"] > 0, got
        [metric] = expect(200, "GET", f"/sandboxes/{each['sandboxID']}/metrics")
        equal((1, 192 << 20), (metric["cpuCount"], metric["memTotal"]))
        stats = json.loads(holt("inspect", holt_id(each)))
        equal((str(192 << 20), 1000), (str(stats["limits"]["memoryBytes"]), stats["limits"]["cpuMillis"]))
        # What is told is what holds.
        done = subprocess.run(["holt", "exec", holt_id(each), "--", "python3", "-c", "b'x' * (400 << 20)"], capture_output=True, text=True)
        assert done.returncode != 0, done
        kill(each)
    expect(204, "DELETE", "/templates/" + quote(snapshot["snapshotID"], safe=""))
    expect(204, "DELETE", "/templates/" + template["templateID"])


def what_a_template_starts_is_started_wherever_one_begins():
    template = built("starts", startCmd="echo began >> /root/began; exec sleep 1000", readyCmd="grep -qx sleep /proc/[0-9]*/comm")
    sandbox = create(templateID="starts", timeout=900)
    path = "/sandboxes/" + sandbox["sandboxID"]

    def begins(times, each):  # and once where it was built
        equal("began\n" * (times + 1), run(each, "cat /root/began"))
        assert "sleep 1000" in holt("ps", holt_id(each)), holt("ps", holt_id(each))

    begins(1, sandbox)
    expect(204, "POST", path + "/pause", {"memory": False})
    expect(201, "POST", path + "/connect", {})
    begins(2, sandbox)
    expect(204, "POST", path + "/pause", {})
    expect(201, "POST", path + "/connect", {})
    begins(2, sandbox)
    forks = [each["sandbox"] for each in expect(201, "POST", path + "/fork", {"count": 2})]
    snapshot = expect(201, "POST", path + "/snapshots", {})
    copy = create(templateID=snapshot["snapshotID"])
    for each in forks + [copy]:
        begins(3, each)
    for each in forks + [copy, sandbox]:
        kill(each)
    expect(204, "DELETE", "/templates/" + quote(snapshot["snapshotID"], safe=""))
    expect(204, "DELETE", "/templates/" + template["templateID"])


def a_full_host_says_when_to_come_again():
    """Of a daemon that has room for three."""
    sandbox = create()
    forks = expect(201, "POST", f"/sandboxes/{sandbox['sandboxID']}/fork", {"count": 4})
    equal([True, True, False, False], ["sandbox" in each for each in forks])
    for each in forks[2:]:
        equal(429, each["error"]["code"])
        assert "limit" in each["error"]["message"], each
    for verb, path, body in (("POST", "/v2/sandboxes", {"templateID": TEMPLATE}), ("POST", f"/sandboxes/{sandbox['sandboxID']}/fork", {})):
        status, head, body = ask(verb, path, body)
        equal((429, 429, "1"), (status, body["code"], head["Retry-After"]))
    for each in forks[:2]:
        equal("hi\n", run(each["sandbox"], "echo hi"))
        kill(each["sandbox"])
    kill(sandbox)


def all_at_once(works):
    """What the works say, in their order; they run at the same time."""
    from concurrent.futures import ThreadPoolExecutor
    with ThreadPoolExecutor(len(works)) as pool:
        return [each.result() for each in [pool.submit(work) for work in works]]


def pages_go_on_behind_what_is_gone():
    sandbox = create()
    ids = [expect(201, "POST", f"/sandboxes/{sandbox['sandboxID']}/snapshots", {})["snapshotID"] for _ in range(3)][::-1]
    status, head, body = ask("GET", "/snapshots?limit=1")
    equal(ids[:1], [each["snapshotID"] for each in body])
    expect(204, "DELETE", "/templates/" + quote(ids[0], safe=""))
    equal(ids[1:], [each["snapshotID"] for each in expect(200, "GET", "/snapshots?nextToken=" + quote(head["X-Next-Token"]))])
    names = ["first", "second", "third"]
    for name in names:
        expect(201, "POST", "/secrets", {"name": name, "value": "v"})
        time.sleep(0.002)  # they are in the order of their milliseconds
    status, head, body = ask("GET", "/secrets?limit=2")
    equal(names[:2], [each["name"] for each in body])
    expect(204, "DELETE", "/secrets/second")
    equal(names[2:], [each["name"] for each in expect(200, "GET", "/secrets?nextToken=" + quote(head["X-Next-Token"]))])
    equal(None, ask("GET", "/secrets?limit=2")[1]["X-Next-Token"])
    for name in ("first", "third"):
        expect(204, "DELETE", "/secrets/" + name)
    for each in ids[1:]:
        expect(204, "DELETE", "/templates/" + quote(each, safe=""))
    kill(sandbox)


def many_at_once_lose_nothing():
    secret = expect(201, "POST", "/secrets", {"name": "shared", "value": "v"})
    versions = all_at_once([lambda: expect(200, "POST", "/secrets/shared", {"value": "w"})["currentVersion"]] * 16)
    equal(list(range(2, 18)), sorted(versions))
    names = [f"many-{i}" for i in range(16)]
    all_at_once([lambda name=name: expect(201, "POST", "/secrets", {"name": name, "value": "v"}) for name in names])
    equal(sorted(names + ["shared"]), sorted(each["name"] for each in expect(200, "GET", "/secrets")))
    equal([201] + [409] * 7, sorted(all_at_once([lambda: ask("POST", "/secrets", {"name": "same", "value": "v"})[0]] * 8)))
    equal([204] + [404] * 7, sorted(all_at_once([lambda: ask("DELETE", "/secrets/same")[0]] * 8)))
    all_at_once([lambda name=name: expect(204, "DELETE", "/secrets/" + name) for name in names + [secret["secretID"]]])
    equal([], expect(200, "GET", "/secrets"))
    holt("create", "--name", "unknown", "-q")
    [listed] = expect(200, "GET", "/v2/sandboxes")
    tokens = all_at_once([lambda: expect(200, "POST", f"/sandboxes/{listed['sandboxID']}/connect", {})["envdAccessToken"]] * 16)
    equal(1, len(set(tokens)), "each was told the token that it has")
    equal(200, envd({**listed, "envdAccessToken": tokens[0]}, path="/envs")[0])
    kill(listed)
    sandbox = create()
    path = f"/sandboxes/{sandbox['sandboxID']}/snapshots"
    # One name is one snapshot's, whoever comes last; those without one are all there.
    made = all_at_once([lambda: expect(201, "POST", path, {"name": "moving"})] * 4 + [lambda: expect(201, "POST", path, {})] * 4)
    equal(sorted({each["snapshotID"] for each in made}), sorted(each["snapshotID"] for each in expect(200, "GET", "/snapshots")))
    ids = sorted({each["snapshotID"] for each in made})
    equal(5, len(ids))
    for each in ids:
        equal([204] + [404] * 3, sorted(all_at_once([lambda: ask("DELETE", "/templates/" + quote(each, safe=""))[0]] * 4)))
    kill(sandbox)
    assert "snapshot-" not in holt("template", "ls"), holt("template", "ls")


def secrets_are_never_told():
    made = expect(201, "POST", "/secrets", {"name": "Api-Key", "value": "hunter2", "metadata": {"a": "b"}})
    equal(("api-key", 1, {"a": "b"}), (made["name"], made["currentVersion"], made["metadata"]))
    expect(409, "POST", "/secrets", {"name": "api-key", "value": "x"})
    for body in ({"name": "x"}, {"value": "x"}, {"name": "sec_1", "value": "x"}, {"name": "a b", "value": "x"}):
        expect(400, "POST", "/secrets", body)
    equal(2, expect(200, "POST", "/secrets/" + made["secretID"], {"value": "hunter3"})["currentVersion"])
    for path in ("/secrets", "/secrets/api-key", "/secrets/" + made["secretID"]):
        assert "hunter" not in json.dumps(expect(200, "GET", path))
    equal(0o600, os.stat(os.path.join(os.environ["state"], "e2b-secrets.json")).st_mode & 0o777)
    expect(204, "DELETE", "/secrets/api-key")
    expect(404, "GET", "/secrets/api-key")
    expect(404, "DELETE", "/secrets/" + made["secretID"])
    equal([], expect(200, "GET", "/secrets"))


def content(volume, verb, what, path, body=None, token=None, **query):
    """The content of a volume, asked with its own token; a body is bytes, or JSON."""
    connection = http.client.HTTPConnection("127.0.0.1", int(os.environ["port"]))
    text = body if isinstance(body, (bytes, type(None))) else json.dumps(body).encode()
    connection.request(verb, f"/volumecontent/{volume['volumeID']}/{what}?" + urlencode({"path": path, **query}), text,
                       {"Authorization": "Bearer " + (token or volume["token"])})
    response = connection.getresponse()
    data = response.read()
    connection.close()
    is_json = response.headers.get("Content-Type") == "application/json"
    return response.status, json.loads(data) if is_json and data else data


def volumes_hold_files():
    volume = expect(201, "POST", "/volumes", {"name": "data"})
    expect(409, "POST", "/volumes", {"name": "data"})
    expect(400, "POST", "/volumes", {"name": "../data"})
    equal(volume, expect(200, "GET", "/volumes/" + volume["volumeID"]))
    equal([{"volumeID": volume["volumeID"], "name": "data"}], expect(200, "GET", "/volumes"))
    for token in ("wrong", main_token(), "0" * 64):
        equal(401, content(volume, "GET", "path", "/", token=token)[0])
        equal(401, content(volume, "PUT", "file", "/f", b"x", token=token)[0])
    status, made = content(volume, "POST", "dir", "/d/e", mode=0o750, force="true")
    equal((201, "directory", "/d/e", "e", 0o750), (status, made["type"], made["path"], made["name"], made["mode"]))
    equal(404, content(volume, "POST", "dir", "/x/y")[0])
    equal(409, content(volume, "POST", "dir", "/d")[0])
    status, written = content(volume, "PUT", "file", "/d/f", b"text", mode=0o600, uid=1000, gid=1001)
    equal((201, 4, 0o600, 1000, 1001), (status, *(written[name] for name in ("size", "mode", "uid", "gid"))))
    equal(409, content(volume, "PUT", "file", "/d/f", b"other")[0])
    equal((200, b"text"), content(volume, "GET", "file", "/d/f"))
    large = os.urandom(3 << 20)
    equal(201, content(volume, "PUT", "file", "d/f", large, force="true")[0])
    equal((200, large), content(volume, "GET", "file", "/d/f"))
    equal((201, 0), (lambda r: (r[0], r[1]["size"]))(content(volume, "PUT", "file", "/empty", b"")))
    equal((200, b""), content(volume, "GET", "file", "/empty"))
    equal(["/d", "/empty"], [each["path"] for each in content(volume, "GET", "dir", "/")[1]])
    equal(["/d", "/d/e", "/d/f", "/empty"], [each["path"] for each in content(volume, "GET", "dir", "/", depth=2)[1]])
    changed = content(volume, "PATCH", "path", "/d/f", {"mode": 0o644, "uid": 0})[1]
    equal((0o644, 0, 1001), (changed["mode"], changed["uid"], changed["gid"]))
    # Links are what sandboxes leave in it: see e2b_volume_test.
    for path in ("/../../token", "/d/../../../../../../../etc/passwd"):
        equal(404, content(volume, "GET", "file", path)[0], path)
    equal(400, content(volume, "GET", "file", "/d")[0])
    equal(204, content(volume, "DELETE", "path", "/d")[0])
    equal(404, content(volume, "GET", "path", "/d/f")[0])
    equal(404, content(volume, "DELETE", "path", "/d")[0])
    equal(400, content(volume, "DELETE", "path", "/")[0])
    expect(204, "DELETE", "/volumes/" + volume["volumeID"])
    expect(404, "DELETE", "/volumes/" + volume["volumeID"])
    equal(401, content(volume, "GET", "path", "/")[0])


# --- routing -----------------------------------------------------------------------------------------

def where_a_request_belongs():
    sandbox = create()
    id, token = sandbox["sandboxID"], sandbox["envdAccessToken"]
    equal(204, envd(sandbox, token=None)[0], "whether it runs may be asked by all")
    equal(401, envd(sandbox, path="/nothing", token=None)[0])
    equal(401, envd(sandbox, path="/nothing", token="x" * 64)[0])
    equal(404, envd(sandbox, path="/nothing")[0])
    equal(204, ask("GET", "/health", key=None, E2b_Sandbox_Id=id)[0], "envd's port is what is meant without one")
    equal(204, ask("GET", "/health", key=None, Host=f"49983-{id}.localhost:7070")[0])
    equal(204, ask("GET", "/health", key=None, Host=f"49983-{id}.sbx.test")[0])
    equal(403, ask("GET", "/health", key=None, Host=f"49983-{id}.evil.test")[0])
    equal(403, ask("GET", "/health", key=None, Host="evil.test")[0])
    equal(403, envd(sandbox, Origin="https://evil.test")[0])
    equal(400, ask("GET", "/health", key=None, E2b_Sandbox_Id=id, E2b_Sandbox_Port="70000")[0])
    for port in ("3000", "49999"):
        status, head, body = ask("GET", "/", key=None, E2b_Sandbox_Id=id, E2b_Sandbox_Port=port)
        equal((502, int(port)), (status, body["port"]))
    for wrong in ("nosuch", "..", "sb-" + id[2:], "x" * 500):
        equal(502, ask("GET", "/health", key=None, E2b_Sandbox_Id=wrong)[0])
    equal(502, ask("GET", "/", key=None, Host="3000-nosuch.localhost")[0])
    kill(sandbox)


def signature(token, path, operation="read", user="", expiration=None):
    text = f"{path}:{operation}:{user}:{token}" + ("" if expiration is None else f":{expiration}")
    return "v1_" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode().rstrip("=")


def a_signature_finds_its_sandbox():
    sandbox, other = create(), create()
    good = signature(sandbox["envdAccessToken"], "/tmp/a b")
    path = "/files?path=" + quote("/tmp/a b") + "&signature="
    status, head, body = ask("GET", path + quote(good, safe=""), key=None)
    assert status not in (403, 502) and "invalid signature" not in str(body), (status, body)
    for bad in (signature("0" * 64, "/tmp/a b"), signature(sandbox["envdAccessToken"], "/tmp/b"), "v1_", ""):
        equal((401, "invalid signature"), (lambda r: (r[0], r[2]["message"]))(ask("GET", path + quote(bad, safe=""), key=None)))
    expect(204, "POST", f"/sandboxes/{sandbox['sandboxID']}/pause", {})
    equal(502, ask("GET", path + quote(good, safe=""), key=None)[0])
    kill(sandbox)
    kill(other)


def sandboxes_of_holt_can_be_connected_to():
    holt("create", "--name", "own", "-q")
    [listed] = expect(200, "GET", "/v2/sandboxes")
    equal((TEMPLATE, {}, "running"), (listed["templateID"], listed["metadata"], listed["state"]))
    equal(401, envd({**listed, "envdAccessToken": ""}, path="/envs", token="x")[0])
    connected = expect(200, "POST", f"/v2/sandboxes/{listed['sandboxID']}/connect", {"timeout": 5})
    equal(204, envd(connected)[0])
    equal(connected["envdAccessToken"], expect(200, "POST", f"/sandboxes/{listed['sandboxID']}/connect", {})["envdAccessToken"])
    assert json.loads(holt("inspect", "own")).get("expiresAt") is None, "it was given no time"
    kill(connected)


def remember_one():
    sandbox = create(metadata={"old": "yes"}, autoPause=True, timeout=500)
    expect(204, "POST", f"/sandboxes/{sandbox['sandboxID']}/timeout", {"timeout": 4000})
    run(sandbox, "echo kept > /root/f")
    expect(201, "POST", f"/sandboxes/{sandbox['sandboxID']}/snapshots", {"name": "kept"})
    expect(201, "POST", "/secrets", {"name": "kept", "value": "v"})
    json.dump(sandbox, open(os.path.join(os.environ["tmp"], "remembered"), "w"))


def what_was_remembered_is_there():
    sandbox = json.load(open(os.path.join(os.environ["tmp"], "remembered")))
    got = expect(200, "POST", f"/v2/sandboxes/{sandbox['sandboxID']}/connect", {"timeout": 10})
    equal(sandbox["envdAccessToken"], got["envdAccessToken"])
    shown = detail(sandbox)
    equal(({"old": "yes"}, "pause"), (shown["metadata"], shown["lifecycle"]["onTimeout"]))
    assert moment(shown["endAt"]) - time.time() > 3000, shown
    equal("kept\n", run(sandbox, "cat /root/f"))
    expect(200, "GET", "/secrets/kept")
    copy = create(templateID="kept")
    equal("kept\n", run(copy, "cat /root/f"))
    kill(copy)
    kill(sandbox)
    expect(204, "DELETE", "/templates/kept%3Adefault")
    expect(204, "DELETE", "/secrets/kept")


if __name__ == "__main__":
    globals()[sys.argv[1]]()
