"""The claims of stateless_test: `stateless.py CLAIM`. Revision 2026-07-28, which has no sessions.

The daemon is at $HOLT_HOST (a unix socket) and at $port on loopback; $state is its state directory, $seed that of
whatever is random. There is a sandbox named work."""
import base64, concurrent.futures, itertools, json, os, random, re, signal, subprocess, sys, time

from api import Connection, call
from mcp import (ODD, VERSIONS, bash, bridge, equal, error_of, events, eventually, is_answer, lines, main_token, message, opened,
                 sandboxes, tcp, token_create)
import mcp

VERSION = "2026-07-28"
META = "io.modelcontextprotocol/"
PARSE, REQUEST, METHOD, PARAMS, REFUSED, MISMATCH, UNSUPPORTED = -32700, -32600, -32601, -32602, -31000, -32020, -32022


def envelope(version=VERSION, capabilities={}, **more):
    return {META + "protocolVersion": version, META + "clientCapabilities": capabilities,
            META + "clientInfo": {"name": "holt-tests", "version": "1"}, **more}


def request(method, id=1, meta=None, **params):
    return {"jsonrpc": "2.0", "id": id, "method": method, "params": {**params, "_meta": envelope() if meta is None else meta}}


def headers_of(body):
    """As a client makes them of the body."""
    params = body.get("params") or {}
    name, meta = params.get("name", params.get("taskId")), params.get("_meta")
    return {"MCP-Protocol-Version": meta.get(META + "protocolVersion", VERSION) if isinstance(meta, dict) else VERSION,
            "Mcp-Method": body.get("method"), "Mcp-Name": name if isinstance(name, str) else None}


def ask(connection, body, path="/mcp?sandbox=work", **changed):
    headers = headers_of(body) if isinstance(body, dict) else {"MCP-Protocol-Version": VERSION}
    headers.update({name.replace("_", "-"): value for name, value in changed.items()})
    return mcp.ask(connection, body, path=path, **headers)


def result_of(answer):
    status, headers, reply = answer
    equal(200, status, reply)
    assert "Mcp-Session-Id" not in headers
    if isinstance(reply, bytes):
        reply = events(reply)[-1]
    return reply["result"]


def tool(name, arguments, id=1, **meta):
    return request("tools/call", id, envelope(**meta), name=name, arguments=arguments)


def run(connection, cmd, **options):
    return result_of(ask(connection, tool("bash", {"cmd": cmd}), **options))["content"][0]["text"]


def a_server_says_what_it_is():
    result = result_of(ask(Connection(), request("server/discover")))
    equal([VERSION, *VERSIONS], result["supportedVersions"])
    equal(("complete", "private"), (result["resultType"], result["cacheScope"]))
    equal("holt", result["_meta"][META + "serverInfo"]["name"])
    assert "tools" in result["capabilities"] and "/workspace" in result["instructions"] and result["ttlMs"] >= 0
    tools = result_of(ask(Connection(), request("tools/list")))
    equal(("complete", "private"), (tools["resultType"], tools["cacheScope"]))
    assert tools["ttlMs"] > 0 and "bash" in [each["name"] for each in tools["tools"]]
    equal(tools, result_of(ask(Connection(), request("tools/list"))))  # byte for byte, so that prompts are cached


def without(*keys):
    return {key: value for key, value in envelope().items() if key.removeprefix(META) not in keys}


# A request, what is different in its headers, the status and the code.
WRONG = [
    (request("server/discover", meta={}), {}, 400, PARAMS),
    ({"jsonrpc": "2.0", "id": 1, "method": "server/discover"}, {}, 400, PARAMS),
    ({"jsonrpc": "2.0", "id": 1, "method": "server/discover"}, {"MCP-Protocol-Version": None, "Mcp-Method": None}, 400, PARAMS),
    ({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}, {}, 400, PARAMS),
    ({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": 1}}, {"MCP-Protocol-Version": VERSION}, 400, PARAMS),
    (request("tools/list", meta=without("protocolVersion")), {"MCP-Protocol-Version": VERSION}, 400, PARAMS),
    (request("tools/list", meta=without("clientCapabilities")), {}, 400, PARAMS),
    (request("tools/list", meta=envelope(capabilities=[])), {}, 400, PARAMS),
    (request("tools/list", meta=envelope(version=5)), {"MCP-Protocol-Version": VERSION}, 400, PARAMS),
    (request("tools/list", meta={**envelope(), META + "clientInfo": "x"}), {}, 400, PARAMS),
    (request("tools/list", meta={**envelope(), META + "clientInfo": {"name": "x"}}), {}, 400, PARAMS),
    (request("tools/list", meta={**envelope(), META + "logLevel": "loud"}), {}, 400, PARAMS),
    (request("tools/list"), {"MCP-Protocol-Version": None}, 400, MISMATCH),
    (request("tools/list"), {"MCP-Protocol-Version": VERSIONS[0]}, 400, MISMATCH),
    (request("tools/list", meta=envelope(version="v999.0.0")), {"MCP-Protocol-Version": VERSION}, 400, MISMATCH),
    (request("tools/list"), {"Mcp-Method": None}, 400, MISMATCH),
    (request("tools/list"), {"Mcp-Method": "TOOLS/LIST"}, 400, MISMATCH),
    (request("tools/list"), {"Mcp-Method": "tools/call"}, 400, MISMATCH),
    (tool("bash", {}), {"Mcp-Name": None}, 400, MISMATCH),
    (tool("bash", {}), {"Mcp-Name": "Bash"}, 400, MISMATCH),
    (tool("bash", {}), {"Mcp-Name": "=?base64?YmFzaA=?="}, 400, MISMATCH),
    (tool("bash", {}), {"Mcp-Name": "=?base64?!!!!?="}, 400, MISMATCH),
    (request("tools/list", meta=envelope(version="v999.0.0")), {}, 400, UNSUPPORTED),
    (request("tools/list", meta=envelope(version="2099-01-01")), {}, 400, UNSUPPORTED),
    (request("tools/list", meta=envelope(version=VERSIONS[0])), {}, 400, UNSUPPORTED),
    *((request(method), {}, 404, METHOD) for method in ["initialize", "ping", "logging/setLevel", "resources/subscribe", "no/such",
                                                         "resources/list", "prompts/list", ""]),
    (request("tools/call", name="no_such"), {}, 200, PARAMS), (request("tools/call", name=5), {}, 200, PARAMS),
    (request("tools/call", name="no_such\n\u00e9"), {"Mcp-Name": "=?base64?" + base64.b64encode("no_such\n\u00e9".encode()).decode() + "?="}, 200, PARAMS),
    (request("tools/list", cursor="x"), {}, 200, PARAMS), (request("subscriptions/listen"), {}, 200, PARAMS),
    ({**request("tools/list"), "jsonrpc": "1.0"}, {}, 400, REQUEST),
]


def what_is_missing_or_differs_has_its_code():
    connection = Connection()
    for body, changed, status, code in WRONG:
        got, headers, reply = ask(connection, body, **{name.replace("-", "_"): value for name, value in changed.items()})
        equal((status, (1, code)), (got, error_of(reply)), f"of {body} with {changed}")
        assert "Mcp-Session-Id" not in headers
        if code == UNSUPPORTED:
            equal({"supported": [VERSION, *VERSIONS], "requested": body["params"]["_meta"][META + "protocolVersion"]}, reply["error"]["data"])
    for changed in [{"Mcp-Name": "  bash "}, {"Mcp-Name": "=?base64?YmFzaA==?="}, {"Mcp-Session-Id": "0" * 32}, {"Last-Event-Id": "1"}]:
        assert "done" in result_of(ask(connection, tool("bash", {"cmd": "echo done"}),
                                       **{name.replace("-", "_"): value for name, value in changed.items()}))["content"][0]["text"]
    # One that a later revision may have, from a client that speaks no other.
    status, _, reply = mcp.ask(connection, message("tools/list", 1), MCP_Protocol_Version="1999-01-01")
    equal((400, (1, UNSUPPORTED)), (status, error_of(reply)))


def what_is_no_request_is_no_call():
    connection = Connection()
    equal((202, b""), ask(connection, {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}})[::2])
    for body, id, code in [({"jsonrpc": "2.0", "id": 1, "result": {}}, None, REQUEST), ([request("tools/list")], None, REQUEST),
                           ([message("ping", 1), request("tools/list")], None, REQUEST), (b"{", None, PARSE), ([], None, REQUEST)]:
        status, _, reply = ask(connection, body)
        equal((400, (id, code)), (status, error_of(reply)), body)
    for body in [[request("tools/list")], {"jsonrpc": "2.0", "id": 1, "result": {}}]:
        assert "id" not in ask(connection, body)[2], "null is no id in this revision"


def a_subscription_is_acknowledged_and_over():
    """No list changes, so there is nothing to wait for."""
    status, headers, body = ask(Connection(), request("subscriptions/listen", "sub", notifications={"toolsListChanged": True}))
    equal((200, "text/event-stream"), (status, headers["Content-Type"]))
    first, last = events(body)
    equal(("notifications/subscriptions/acknowledged", {}, "sub"),
          (first["method"], first["params"]["notifications"], first["params"]["_meta"][META + "subscriptionId"]))
    equal(("sub", "complete", "sub"), (last["id"], last["result"]["resultType"], last["result"]["_meta"][META + "subscriptionId"]))


def a_token_and_a_workspace_have_a_sandbox():
    before = sandboxes()
    mine, other = ({"Authorization": "Bearer " + secret} for secret in (main_token(), token_create(label="stateless")))
    run(tcp(), "echo mine >mark", path="/mcp", **mine)
    assert "mine" in run(tcp(), "cat mark", path="/mcp", **mine)
    assert "No such file" in run(tcp(), "cat mark", path="/mcp", **other)
    assert "No such file" in run(tcp(), "cat mark", path="/mcp?workspace=second", **mine)
    assert "mine" in run(tcp(), "cat mark", path="/mcp", **mine)
    made = sandboxes() - before
    equal(3, len(made))
    fork = text_of(result_of(ask(tcp(), tool("fork", {}), path="/mcp", **mine))).strip()
    assert "mine" in text_of(result_of(ask(tcp(), tool("bash", {"cmd": "cat mark", "sandbox": fork}), path="/mcp", **mine)))
    call("SandboxService/Destroy", sandboxId=fork)
    with concurrent.futures.ThreadPoolExecutor() as pool:  # the first calls come together
        found = set(pool.map(lambda _: run(tcp(), "cat /proc/sys/kernel/random/boot_id; hostname", path="/mcp?workspace=many", **mine)
                             .split("[exit")[0], range(6)))
    equal((1, 4), (len(found), len(sandboxes() - before)))
    for each in sandboxes() - before:
        call("SandboxService/Destroy", sandboxId=each)


# A workspace whose daemon is killed twice in between, the second time after its sandbox was destroyed.
LASTING = "/mcp?workspace=lasting"


def lasting():
    return run(Connection(), "cat mark; hostname", path=LASTING).split()


def workspace_mark():
    run(Connection(), "echo kept >mark", path=LASTING)


def a_workspace_is_found_again_after_kill_9():
    before = sandboxes()
    equal("kept", lasting()[0])
    equal(before, sandboxes())


def workspace_destroy():
    call("SandboxService/Destroy", sandboxId=next(each for each in lasting() if each.startswith("sb-")))


def a_workspace_that_was_destroyed_is_new_after_kill_9():
    before = sandboxes()
    assert "kept" not in lasting()
    equal(1, len(sandboxes() - before))
    workspace_destroy()
    assert "kept" not in lasting()  # and without a kill


def a_read_only_client_gets_nothing_made():
    before = sandboxes()
    secret = {"Authorization": "Bearer " + token_create(readOnly=True)}
    names = [each["name"] for each in result_of(ask(tcp(), request("tools/list"), **secret))["tools"]]
    assert "read_file" in names and "bash" not in names
    names = [each["name"] for each in result_of(ask(Connection(), request("tools/list"), path="/mcp?read-only=true"))["tools"]]
    assert "bash" not in names
    for body, path in [(tool("read_file", {"path": "a"}), "/mcp"), (tool("bash", {"cmd": "true"}), "/mcp?sandbox=work")]:
        status, _, reply = ask(tcp(), body, path=path, **secret)
        equal((200, (1, REFUSED)), (status, error_of(reply)))
    equal(before, sandboxes())


def a_client_without_a_token_hears_what_is_missing():
    for headers, wanted in [({}, 'Bearer realm="holt", error_description='), ({"Authorization": "Bearer x"}, 'Bearer realm="holt", error="invalid_token"')]:
        status, given, _ = ask(tcp(), request("server/discover"), **headers)
        equal(401, status)
        assert given["WWW-Authenticate"].startswith(wanted) and "no OAuth" in given["WWW-Authenticate"], given["WWW-Authenticate"]
        assert "resource_metadata" not in given["WWW-Authenticate"]


def begun(name, **meta):
    """A connection with a call under way whose shell has written its pid to a file."""
    connection = Connection()
    body = tool("bash", {"cmd": f"echo $$ >{name}.new; mv {name}.new {name}; echo begun; sleep 100000; true"}, **meta)
    connection.request("POST", "/mcp?sandbox=work", json.dumps(body),
                       {"Content-Type": "application/json", "Accept": mcp.ACCEPT, **headers_of(body)})
    eventually(lambda: "begun" in run(Connection(), f"test -e {name} && echo begun"))
    return connection


def is_gone(name):
    return "gone" in run(Connection(), f"kill -0 $(cat {name}) 2>&1 || echo gone")


def a_client_that_goes_away_ends_its_call():
    for name, meta in [("left", {}), ("left-with-progress", {"progressToken": 1})]:
        begun(name, **meta).close()
        eventually(lambda: is_gone(name))


def progress_comes_before_the_result():
    _, headers, body = ask(Connection(), tool("bash", {"cmd": "echo one; sleep 0.3; echo two"}, progressToken="t"))
    equal("text/event-stream", headers["Content-Type"])
    *told, last = events(body)
    equal(("t", "one"), (told[0]["params"]["progressToken"], told[0]["params"]["message"]))
    equal(("complete", False), (last["result"]["resultType"], last["result"]["isError"]))


def clients_of_two_revisions_work_in_one_sandbox():
    connection, old = Connection(), Connection()
    session = opened(old)
    run(connection, "echo new >shared; echo >turns")
    bash(old, session, "cat shared >copied; echo old >shared")
    equal(["old", "new"], run(connection, "cat shared copied").split()[:2])
    with concurrent.futures.ThreadPoolExecutor() as pool:
        jobs = [pool.submit(run, Connection(), f"echo {i} >>turns") if i % 2 else
                pool.submit(bash, Connection(), session, f"echo {i} >>turns") for i in range(10)]
        [job.result() for job in jobs]
    equal("11", run(connection, "wc -l <turns").split()[0])


def text_of(result):
    return result["content"][0]["text"]


def a_handle_is_a_sandbox():
    """Of both kinds of revisions, by id and by name; what is no handle is for the model to read."""
    connection, old = Connection(), Connection()
    session = opened(old)
    made = text_of(result_of(ask(connection, tool("create_sandbox", {"name": "second"})))).split()[1]
    assert made in text_of(result_of(ask(connection, tool("list_sandboxes", {}))))
    for handle in [made, "second"]:
        text_of(result_of(ask(connection, tool("bash", {"cmd": f"echo {handle} >>own", "sandbox": handle}))))
        reply = mcp.ask(old, mcp.tool(1, "bash", {"cmd": "cat own", "sandbox": handle}), session)[2]["result"]
        assert handle in reply["content"][0]["text"] and "sandbox" not in reply.get("_meta", {}), reply
    assert "No such file" in run(connection, "cat own")
    call("SandboxService/Stop", sandboxId=made)
    assert "second" in text_of(result_of(ask(connection, tool("bash", {"cmd": "cat own", "sandbox": made}))))
    fork = text_of(result_of(ask(connection, tool("fork", {"sandbox": made})))).strip()
    assert "second" in text_of(result_of(ask(connection, tool("bash", {"cmd": "cat own", "sandbox": fork}))))
    for wrong in ["no-such", "", 5, None, "../x", "x" * 1000, ["second"]]:
        for result in [result_of(ask(connection, tool("bash", {"cmd": "true", "sandbox": wrong}))),
                       mcp.ask(old, mcp.tool(1, "bash", {"cmd": "true", "sandbox": wrong}), session)[2]["result"]]:
            assert result["isError"] and "list_sandboxes" in text_of(result), (wrong, result)
    for arguments in [{"name": 5}, {"name": "a/b"}, {"template": "no-such"}, {"template": []}, {"name": "second"}, {"nam": "x"}]:
        assert result_of(ask(connection, tool("create_sandbox", arguments)))["isError"], arguments
    assert "it takes none" in text_of(result_of(ask(connection, tool("list_sandboxes", {"sandbox": "second"}))))
    for each in [made, fork]:
        call("SandboxService/Destroy", sandboxId=each)
    assert result_of(ask(connection, tool("bash", {"cmd": "true", "sandbox": made})))["isError"]


def a_handle_of_another_owner_does_not_exist():
    connection = Connection()
    mine = call("SandboxService/Get", sandboxId="work")["sandbox"]["id"]
    other = {"Authorization": "Bearer " + token_create(owner="other")}
    listed = text_of(result_of(ask(tcp(), tool("list_sandboxes", {}), **other)))
    assert mine not in listed and "work" not in listed, listed
    unknown = result_of(ask(tcp(), tool("bash", {"cmd": "true", "sandbox": "sb-0123456789"}), **other))
    for handle in [mine, "work", mine[:8]]:
        result = result_of(ask(tcp(), tool("bash", {"cmd": "true", "sandbox": handle}), **other))
        equal(text_of(unknown), text_of(result).replace(f"'{handle}'", "'sb-0123456789'"))
        equal((1, REFUSED), error_of(ask(tcp(), tool("bash", {"cmd": "true"}), path=f"/mcp?sandbox={handle}", **other)[2]))
    made = text_of(result_of(ask(tcp(), tool("create_sandbox", {"name": "work"}), **other))).split()[1]
    assert made != mine
    run(connection, "rm -f theirs")
    result_of(ask(tcp(), tool("bash", {"cmd": "echo >theirs", "sandbox": "work"}), **other))
    assert "No such file" in run(connection, "cat theirs")
    call("SandboxService/Destroy", sandboxId=made)


def a_read_only_client_creates_no_sandbox():
    secret = {"Authorization": "Bearer " + token_create(readOnly=True)}
    names = [each["name"] for each in result_of(ask(tcp(), request("tools/list"), **secret))["tools"]]
    assert "list_sandboxes" in names and "create_sandbox" not in names
    equal((1, REFUSED), error_of(ask(tcp(), tool("create_sandbox", {}), **secret)[2]))
    assert "work" in text_of(result_of(ask(tcp(), tool("list_sandboxes", {}), **secret)))


def every_annotation_says_what_the_tool_does():
    """What changes no file, no process and no sandbox may be called read-only, and nothing else. Each tool is called twice, and
    what is different afterwards is compared with its annotations."""
    connection = Connection()

    def use(name, arguments):
        return result_of(ask(connection, tool(name, arguments)))

    def state():
        """What can be seen of the world: files, processes that run, snapshots, sandboxes, ports."""
        files = run(connection, "find /workspace /root -path '*/.git/*' -prune -o -type f -exec sha256sum {} + | sort")
        refs = run(connection, "cd repo && git for-each-ref && git diff --cached --name-only")
        running = [line.split("  (")[0] for line in text_of(use("process_list", {})).splitlines() if "  running  " in line]
        return {"files": files.rsplit("[exit", 1)[0], "refs": refs.rsplit("[exit", 1)[0], "running": running,
                "snapshots": text_of(use("list_snapshots", {})), "sandboxes": text_of(use("list_sandboxes", {})),
                "ports": text_of(use("network_status", {})).split("\n", 1)[1]}

    run(connection, "git config --global user.name t; git config --global user.email t@t; git config --global init.defaultBranch main;"
                    "git init -q --bare /root/origin.git; git clone -q /root/origin.git repo 2>/dev/null; cd repo; echo a >f; git add f;"
                    "git commit -qm a; git push -q origin HEAD; cd ..; echo text >file; seq 1 100000 >long")
    use("snapshot", {"name": "first"})
    run(connection, "echo later >file")
    process = text_of(use("process_start", {"cmd": "sleep 100000"})).split()[1]
    handle = use("bash", {"cmd": "cat long"})["_meta"]["holt/result"]["truncated"]["handle"]
    # The arguments, and whether the tool changes something, takes something away, or does more when it is repeated.
    calls = {
        "read_file": {"path": "file"}, "write_file": {"path": "file", "content": "new"}, "list_dir": {}, "grep": {"pattern": "x"},
        "edit_file": {"path": "long", "old_string": "99999", "new_string": "x99999", "replace_all": True},
        "multi_edit": {"path": "long", "edits": [{"old_string": "88888", "new_string": "x88888"}]},
        "glob": {"pattern": "*"}, "bash": {"cmd": "date +%N >>file"}, "shell": {"cmd": "date +%N >>file"},
        "process_start": {"cmd": "sleep 100000"}, "process_list": {}, "process_logs": {"process_id": process},
        "process_wait": {"process_id": process, "timeout_ms": 1}, "process_kill": {"process_id": process}, "git_status": {"repo": "repo"}, "git_diff": {"repo": "repo"},
        "git_log": {"repo": "repo"}, "git_show": {"repo": "repo"}, "git_add": {"repo": "repo", "paths": ["g"]},
        "git_commit": {"repo": "repo", "message": "b"}, "git_push": {"repo": "repo", "args": ["origin", "HEAD:refs/heads/other"]},
        "git_fetch": {"repo": "repo"}, "git_pull": {"repo": "repo", "args": ["origin", "main"]},
        "git_clone": {"args": ["/root/origin.git", "copy"]}, "list_snapshots": {}, "snapshot": {}, "diff": {}, "fork": {},
        "rollback": {"snapshot": "first"}, "read_output": {"handle": handle}, "network_status": {}, "expose_port": {"port": 8099},
        "list_sandboxes": {}, "create_sandbox": {},
    }
    outside = {"git_fetch", "git_pull"}  # whose effect depends on what others have pushed
    tools = {each["name"]: each["annotations"] for each in result_of(ask(connection, request("tools/list")))["tools"]}
    unknown = set(tools) - set(calls)
    assert unknown <= {"run_code"}, f"say here what {unknown} do"
    run(connection, "echo g >repo/g")
    for name in calls:
        before = state()
        first = use(name, calls[name])
        between = state()
        use(name, calls[name])
        after = state()
        hints = tools[name]
        changed = {key for key in before if before[key] != between[key]}
        assert not first["isError"], (name, first)
        equal(hints["readOnlyHint"], not changed and name not in outside, f"{name} changed {changed}")
        if hints["idempotentHint"]:
            equal(between, after, name)
        elif name not in outside | {"process_kill", "git_push", "git_clone", "git_commit", "rollback", "multi_edit"}:
            assert between != after, f"{name} is idempotent"
        lost = [line for key in ("files", "running") for line in before[key] if isinstance(before[key], list) and line not in between[key]]
        lost += set(before["files"].splitlines()) - set(between["files"].splitlines())
        if lost:
            assert hints["destructiveHint"], f"{name} took {lost} away"
        assert not (hints["readOnlyHint"] and (hints["destructiveHint"] or not hints["idempotentHint"])), name
        equal(hints["openWorldHint"], name in {"bash", "shell", "process_start", "git_push", "git_clone", "git_fetch", "git_pull", "expose_port"},
              f"{name} acts on something outside of Holt")
    for each in sandboxes() - {"work"}:
        if each != call("SandboxService/Get", sandboxId="work")["sandbox"]["id"]:
            call("SandboxService/Destroy", sandboxId=each)


TASKS = {"extensions": {META + "tasks": {}}}


def a_long_call_is_a_task():
    """For a client that can poll one; another one waits for the result."""
    connection = Connection()

    def tasks(method, capabilities=TASKS, **params):
        return ask(Connection(), request(method, 1, envelope(capabilities=capabilities), **params))

    assert META + "tasks" in result_of(ask(connection, request("server/discover")))["capabilities"]["extensions"]
    assert "content" in result_of(ask(connection, tool("bash", {"cmd": "echo short"}, capabilities=TASKS)))
    slow = "i=0; while [ ! -e go ]; do i=$((i+1)); echo $i; sleep 0.1; done; echo done"
    run(connection, "rm -f go")
    created = result_of(ask(connection, tool("bash", {"cmd": slow}, capabilities=TASKS)))
    equal(("task", "working"), (created["resultType"], created["status"]))
    assert created["createdAt"].endswith("Z") and created["ttlMs"] > 0 and created["pollIntervalMs"] > 0
    task = created["taskId"]
    equal(("complete", "working"), (lambda got: (got["resultType"], got["status"]))(result_of(tasks("tasks/get", taskId=task))))
    equal({"complete"}, {result_of(tasks("tasks/update", taskId=task, inputResponses={}))["resultType"]})
    for method in ["tasks/get", "tasks/update", "tasks/cancel"]:
        status, _, reply = tasks(method, {}, taskId=task)
        equal((400, (1, -32021)), (status, error_of(reply)))
        assert META + "tasks" in reply["error"]["data"]["requiredCapabilities"]["extensions"]
        for wrong in ["", "x", task[:-1], task + "0", task.split(":")[1], "sb-000000:" + task.split(":")[1], task.split(":")[0] + ":own"]:
            equal((200, (1, PARAMS)), (lambda got: (got[0], error_of(got[2])))(tasks(method, taskId=wrong)), wrong)
    equal((1, -32021), error_of(tasks("subscriptions/listen", {}, notifications={"taskIds": [task]})[2]))
    other = {"Authorization": "Bearer " + token_create(owner="other")}
    body = request("tasks/get", 1, envelope(capabilities=TASKS), taskId=task)
    equal((1, PARAMS), error_of(ask(tcp(), body, **other)[2]))
    run(connection, "touch go")
    eventually(lambda: result_of(tasks("tasks/get", taskId=task))["status"] == "completed")
    result = result_of(tasks("tasks/get", taskId=task))["result"]
    assert "done" in result["content"][0]["text"] and result["isError"] is False and result["_meta"]["holt/result"]["exitCode"] == 0, result
    result_of(tasks("tasks/cancel", taskId=task))  # which has no effect any more
    # A task that is cancelled ends what it has started; so does a client that goes away before there is a task.
    created = result_of(ask(connection, tool("bash", {"cmd": "echo $$ >pid-of-task; while :; do echo; sleep 0.1; done"}, capabilities=TASKS)))
    result_of(tasks("tasks/cancel", taskId=created["taskId"]))
    eventually(lambda: is_gone("pid-of-task"))
    eventually(lambda: result_of(tasks("tasks/get", taskId=created["taskId"]))["status"] != "working")
    begun("left-with-tasks", capabilities=TASKS).close()
    eventually(lambda: is_gone("left-with-tasks"))
    _, headers, _ = ask(connection, tool("bash", {"cmd": "echo x"}, capabilities=TASKS, progressToken=1))
    equal("text/event-stream", headers["Content-Type"])


PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


def results_are_for_models():
    connection = Connection()

    def use(name, arguments, **meta):
        return result_of(ask(connection, tool(name, arguments, **meta)))

    bar = r"for i in 10 20 100; do printf '\r\033[K\033[32m%d%%\033[0m' $i; done; echo; printf '\033]0;title\007red\033[1;31m!\033[0m\r\n'; echo warn >&2"
    equal(["100%", "red!", "[stderr]", "warn"], text_of(use("bash", {"cmd": bar})).splitlines()[:4])
    equal(["100%", "red!", "[stderr]", "warn"], text_of(use("shell", {"cmd": bar})).splitlines()[:4])
    process = text_of(use("process_start", {"cmd": bar})).split()[1]
    use("process_wait", {"process_id": process})
    equal(["100%", "red!", "[stderr]", "warn"], text_of(use("process_logs", {"process_id": process})).splitlines()[:4])
    # A long one is read again from the disk, and cut with a handle.
    cut = use("bash", {"cmd": r"i=0; while [ $i -lt 60000 ]; do printf '%d\r\033[31mline %d\033[0m\n' $i $i; i=$((i+1)); done"})
    assert "\x1b" not in text_of(cut) and "\r" not in text_of(cut)
    handle = cut["_meta"]["holt/result"]["truncated"]["handle"]
    assert f"read_output handle={handle}" in text_of(cut)
    equal("line 0", text_of(use("read_output", {"handle": handle, "limit": 20})).splitlines()[0])
    # Neither a terminal nor input: what asks for one ends.
    equal(["dumb", "none", "[exit"], text_of(use("bash", {"cmd": "echo $TERM; read x || echo none"})).split()[:3])
    assert "not a tty" in text_of(use("bash", {"cmd": "tty"}))
    silent = use("bash", {"cmd": "sleep 100000", "timeout_ms": 5500})
    assert "no output for 5 s" in text_of(silent) and silent["_meta"]["holt/result"]["timedOut"], silent
    use("bash", {"cmd": f"echo {PNG} | base64 -d >dot.png"})
    image, = use("read_file", {"path": "dot.png"})["content"]
    equal(("image", "image/png", PNG), (image["type"], image["mimeType"], image["data"]))
    for name, arguments, remedy in [("read_file", {"path": "no/such"}, "no/such"), ("edit_file", {"path": "dot", "old_string": "a"}, "new_string"),
                                    ("process_logs", {"process_id": "p999"}, "process_start"), ("rollback", {"snapshot": "x"}, "list_snapshots"),
                                    ("read_output", {"handle": "o999"}, "only the latest"), ("bash", {"command_line": "x"}, "cmd")]:
        result = use(name, arguments)
        assert result["isError"] and remedy in text_of(result), (name, result)
    _, _, body = ask(connection, tool("bash", {"cmd": r"printf '\033[31m1%%\r2%%\033[0m'; sleep 0.5"}, progressToken=1))
    equal("2%", events(body)[0]["params"]["message"])


def full_screen_programs_end_or_say_that_they_are_silent():
    """Real ones, in bash and in shell; a person at the terminal of that shell keeps its TERM."""
    connection = Connection()
    equal("dumb 'x' 1", text_of(result_of(ask(connection, tool("shell", {"cmd": "A=1; echo $TERM \"'x'\" $A"})))).splitlines()[0])
    stays = subprocess.run(["holt", "sh", "work", "main", "echo $TERM $A"], capture_output=True, text=True, check=True).stdout
    equal("xterm-256color 1\n", stays)

    def use(name, cmd, **more):
        return result_of(ask(Connection(), tool(name, {"cmd": cmd, **more})))

    present = {name for name in ["vi", "less", "top"] if "yes" in run(connection, f"command -v {name} >/dev/null && echo yes")}
    assert present, "the root has neither vi nor less nor top"
    for name, (program, cmd, said) in itertools.product(["bash", "shell"], [("less", "less /etc/passwd", "root:"), ("top", "top; true", "top: ")]):
        if program in present:
            result = use(name, cmd)
            text = text_of(result)
            assert said in text and "\x1b" not in text and not result["_meta"]["holt/result"].get("timedOut"), text
    if "vi" not in present:
        return
    with concurrent.futures.ThreadPoolExecutor() as pool:  # vi reads its commands from the terminal or not at all
        for result in pool.map(lambda name: use(name, "vi file", timeout_ms=15000), ["bash", "shell"]):
            text = text_of(result)
            assert result["_meta"]["holt/result"]["timedOut"] and re.search("; no output for [0-9]+ s: it may wait for input", text), text
            assert "\x1b" not in text and "limit of a call" not in text, text
    assert "again" in text_of(use("shell", "echo again"))


def logs_go_on_where_they_ended():
    """Also where a result ends before the output does."""
    connection = Connection()
    run(connection, "rm -f written")
    process = text_of(result_of(ask(connection, tool("process_start", {
        "cmd": "yes 0123456 | head -c 17825792; echo >&2 problem; touch written; exec sleep 100000"})))).split()[1]
    eventually(lambda: "yes" in run(connection, "test -e written && echo yes"))
    offsets = [text_of(result_of(ask(connection, tool("process_logs", {"process_id": process, **since})))).splitlines()[-1]
               for since in [{}, {"offset": 16777216, "stderr_offset": 8}, {"offset": 17825792, "stderr_offset": 0}]]
    equal([f"[for what comes next: offset={out} stderr_offset=8]" for out in [16777216, 17825792, 17825792]], offsets)
    result_of(ask(connection, tool("process_kill", {"process_id": process, "signal": "KILL"})))
    result_of(ask(connection, tool("process_wait", {"process_id": process})))
    over = [text_of(result_of(ask(connection, tool("process_logs", {"process_id": process, **since})))).splitlines()[-1]
            for since in [{}, {"offset": 16777216, "stderr_offset": 8}]]
    assert "offset=16777216" in over[0] and "has ended" in over[1], over


DOCS = os.path.join(os.path.dirname(__file__), "../../../docs/mcp.md")


def results_are_as_long_as_docs_say():
    """Estimates of four bytes a token, as the daemon's own. The docs may be one percent off; durations in results have more
    digits or fewer."""
    documented = dict(re.findall(r"^\| (.*) \| (\d+) \|$", open(DOCS).read().split("## Size")[1], re.MULTILINE))
    counts = token_counts()
    equal(set(documented), set(counts))
    for name, count in counts.items():
        assert abs(count - int(documented[name])) <= 1 + int(documented[name]) // 100, f"docs/mcp.md says {documented[name]} tokens for {name}, which has {count}"


def tokens_print():
    for name, count in token_counts().items():
        print(f"tokens: {count:5} {name}")


def token_counts():
    connection = Connection()
    run(connection, "mkdir -p count; cd count; for i in $(seq 50); do echo line $i >f$i; done; seq -f 'text of line %g' 100 >hundred")

    def listed(path):
        return json.dumps(result_of(ask(connection, request("tools/list"), path=path))["tools"], separators=(",", ":"))

    def use(name, **arguments):
        return text_of(result_of(ask(connection, tool(name, arguments))))

    tools = len(json.loads(listed("/mcp")))
    texts = {"instructions, without a network": result_of(ask(connection, request("server/discover")))["instructions"],
             f"`tools/list`, all {tools} tools": listed("/mcp"), "`tools/list`, read-only": listed("/mcp?read-only=true"),
             "`bash` with one word of output": use("bash", cmd="echo hello"),
             "`read_file`, 100 lines of 17 bytes": use("read_file", path="count/hundred"), "`list_dir`, 50 files": use("list_dir", path="count"),
             "`grep`, 20 matches": use("grep", pattern="line", path="count", max_results=20),
             "`edit_file`": use("edit_file", path="count/f1", old_string="line", new_string="row"),
             "`bash` with 1 MiB of output": use("bash", cmd="yes 'a line of output' | head -c 1048576")}
    return {name: len(text.encode()) // 4 for name, text in texts.items()}


GOOD = [request("server/discover"), request("tools/list"), request("subscriptions/listen", notifications={"toolsListChanged": True}),
        tool("bash", {"cmd": "true"}, progressToken="t"), tool("read_file", {"path": "a", "sandbox": "b"}),
        {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1, "_meta": envelope()}},
        request("tasks/get", taskId="x"), *(request(method, 1, envelope(capabilities=TASKS), taskId=task, **more)
          for method, more in [("tasks/get", {}), ("tasks/cancel", {}), ("tasks/update", {"inputResponses": {}})]
          for task in ["work:task-19a96a6f2b1-0123456789abcdef", "nobody:task-19a96a6f2b1-0123456789abcdef"])]


def mutated(rng):
    body = rng.choice(GOOD)
    text = json.dumps(body).encode()
    for _ in range(rng.randrange(4)):
        at = rng.randrange(len(text) + 1)
        kind = rng.randrange(4)
        if kind == 0:
            text = text[:at] + rng.choice(ODD) + text[at:]
        elif kind == 1:
            text = text[:at] + text[at + rng.randrange(1, 20):]
        elif kind == 2:
            text = text[:at] + bytes([rng.randrange(256)]) + text[at + 1:]
        else:
            other = json.dumps(rng.choice(GOOD)).encode()
            text = text[:at] + other[rng.randrange(len(other)):]
    return body, text


def mutated_messages_are_answered():
    """Nobody has the sandbox that they are about, so nothing happens by them."""
    rng = random.Random(int(os.environ["seed"]))
    print("seed", os.environ["seed"])
    connection = Connection()
    for _ in range(5000):
        body, text = mutated(rng)
        headers = {name: value for name, value in headers_of(body).items() if rng.randrange(8)}
        if rng.randrange(8) == 0:
            headers[rng.choice(["MCP-Protocol-Version", "Mcp-Method", "Mcp-Name"])] = rng.choice(
                ["", VERSION, VERSIONS[0], "tools/call", "x" * 4000, "=?base64?", "=?base64??=", "=?base64?YQ==?=", "\u00e9", "\t"])
        status, given, reply = mcp.ask(connection, text, path="/mcp?sandbox=nobody", **{n.replace("-", "_"): v for n, v in headers.items()})
        if given.get("Content-Type") == "text/event-stream":
            assert all(is_answer(each) or each["method"].startswith("notifications/") for each in events(reply)), (text, reply)
        elif status == 202:
            equal(b"", reply, f"of {text}")
        else:
            assert status in (200, 400, 404) and is_answer({"id": None, **reply}), (text, status, reply)


# --- stdio --------------------------------------------------------------------------------------------------------------

def replies_of(process, *messages):
    out, err = process.communicate(lines(*messages), timeout=600)
    equal(0, process.returncode, err)
    return [json.loads(line) for line in out.splitlines()]


def stdio_speaks_it_without_a_beginning():
    replies = {each.get("id"): each for each in replies_of(
        bridge("--sandbox", "work"), request("server/discover", "d"), request("tools/list", "l"), tool("bash", {"cmd": "echo here"}, "b"),
        request("ping", "p"), request("tools/list", "v", envelope(version="2099-01-01")), request("tools/list", "m", {}),
        request("tools/call", "n", name="no\r\nX: y"), tool("bash", {"cmd": "echo \u00e9"}, "u"))}
    equal([VERSION, *VERSIONS], replies["d"]["result"]["supportedVersions"])
    equal("complete", replies["l"]["result"]["resultType"])
    assert "here" in replies["b"]["result"]["content"][0]["text"] and "\u00e9" in replies["u"]["result"]["content"][0]["text"]
    equal([METHOD, UNSUPPORTED, PARAMS], [replies[id]["error"]["code"] for id in "pvn"])
    equal(-32000, replies["m"]["error"]["code"])  # without a revision it is a message of a session, which has not begun


def stdio_speaks_both_at_a_time():
    replies = {each.get("id"): each for each in replies_of(
        bridge("--sandbox", "work"), request("server/discover", "probe"), message("initialize", "i", protocolVersion=VERSIONS[0]),
        message("ping", "ping"), request("tools/list", "l"), mcp.tool("t", "bash", {"cmd": "echo old"}))}
    equal((VERSIONS[0], {}), (replies["i"]["result"]["protocolVersion"], replies["ping"]["result"]))
    assert "resultType" in replies["l"]["result"] and "resultType" not in replies["t"]["result"]


def stdio_in(directory, *args):
    """A bridge that serves a new directory, and how to ask it."""
    directory = os.path.join(os.environ["tmp"], directory)
    os.mkdir(directory)
    open(os.path.join(directory, "README"), "w").write("of the user\n")
    process = bridge(*args, cwd=directory)

    def ask(body):
        process.stdin.write(lines(body))
        process.stdin.flush()
        return json.loads(process.stdout.readline())

    return process, ask


def made_for(directory):
    return [each["id"] for each in call("SandboxService/List").get("sandboxes", []) if each.get("name", "").startswith(f"mcp-{directory}-")]


def stdio_makes_a_sandbox_only_for_what_needs_one():
    process, ask = stdio_in("lazy")
    assert "work" in text_of(ask(tool("list_sandboxes", {}))["result"])
    made = text_of(ask(tool("create_sandbox", {}))["result"]).split()[1]
    assert "there" in text_of(ask(tool("bash", {"cmd": "echo there", "sandbox": made}))["result"])
    assert ask(tool("bash", {"cmd": "true", "sandbox": "no-such"}))["result"]["isError"]
    equal([], made_for("lazy"))
    ask(tool("bash", {"cmd": "true"}))
    for each in [made, *made_for("lazy")]:
        call("SandboxService/Destroy", sandboxId=each)
    process.communicate(timeout=600)


def stdio_makes_its_sandbox_again():
    """When somebody has removed it under a bridge that runs, for clients of both kinds."""
    process, ask = stdio_in("again", "--workspace", ".")
    ask(message("initialize", 0, protocolVersion=VERSIONS[0]))
    for body in [tool("bash", {"cmd": "cat README; echo x >>README"}), mcp.tool(1, "bash", {"cmd": "cat README; echo x >>README"})] * 2:
        assert text_of(ask(body)["result"]).startswith("of the user\n[exit code 0")  # copied again
        only, = made_for("again")
        call("SandboxService/Destroy", sandboxId=only)
    process.communicate(timeout=600)
    named = bridge("--sandbox", "gone")  # that one is not the bridge's to make
    reply, = replies_of(named, tool("bash", {"cmd": "true"}))
    assert "gone" in reply["error"]["message"], reply


def stdio_begun(name, **meta):
    process = bridge("--sandbox", "work")
    process.stdin.write(lines(tool("bash", {"cmd": f"echo $$ >{name}.new; mv {name}.new {name}; echo begun; sleep 100000; true"}, name, **meta)))
    process.stdin.flush()
    eventually(lambda: "begun" in run(Connection(), f"test -e {name} && echo begun"))
    return process


def stdio_cancels_what_it_is_told():
    for name, meta in [("cancelled", {}), ("cancelled-with-progress", {"progressToken": 1})]:
        process = stdio_begun(name, **meta)
        process.stdin.write(lines(message("notifications/cancelled", requestId=name)))
        process.stdin.flush()
        eventually(lambda: is_gone(name))
        replies = replies_of(process, request("tools/list", "last"))
        equal(["last"], [each["id"] for each in replies if "id" in each])


def stdio_ends_calls_at_a_signal():
    process = stdio_begun("signalled")
    process.send_signal(signal.SIGTERM)
    equal(128 + signal.SIGTERM, process.wait(600))
    eventually(lambda: is_gone("signalled"))


if __name__ == "__main__":
    globals()[sys.argv[1]]()
