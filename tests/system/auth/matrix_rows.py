"""A row for every method of holt.v1 and every route of E2B: how one owner asks for what another one has.

{words} are replaced by the values of the first owner's objects, or by values of the same form that stand for nothing.
A test fails if a method or a route has no row here (matrix.py, every_call_has_a_row)."""
import re

from matrix_world import SOURCE

AT = {"sandboxId": "{sandbox}"}
FILE = {**AT, "path": "/workspace/secret"}
PROCESS = {"args": ["true"]}
ID = {**AT, "processId": "{process}"}
OWN = {"sandboxId": "own"}  # every owner has one of this name, and a stopped one
RESTING = {"sandboxId": "own-stopped"}


class Lists:
    """Requests whose replies have what the caller may see, and nothing else."""

    def __init__(self, *requests, named=(), limit=None):
        self.requests, self.named, self.limit = requests or ({},), named, limit


class Makes:
    """Requests that name no object of another owner, and make one of the caller's."""

    def __init__(self, *requests):
        self.requests, self.named = requests, ()


class Host:
    """Requests about the whole host, which only its admins may make."""

    def __init__(self, *requests):
        self.requests, self.named = requests, ()


def named(row):
    """The requests of a row that name an object of another owner."""
    return row if isinstance(row, list) else row.named


def requests(row):
    """All requests of a row."""
    return row if isinstance(row, list) else (*row.requests, *row.named)


# What names an object of another owner. The reply must be the same as for an object that does not exist.
HOLT = {
    "AgentService/List": Lists(),
    "AgentService/Get": Lists({"name": "shell"}),
    "ConsoleService/CreateLogin": Makes({}),
    "ConsoleService/ListSessions": Lists(),
    "ConsoleService/RevokeSession": [{"id": "{login}"}],
    "EventService/Watch": Lists({"since": 0, "noFollow": True}, named=[{"sandboxId": "{sandbox}", "since": 0, "noFollow": True}]),
    "FileService/Stat": [FILE],
    "FileService/List": [{**AT, "path": "/workspace"}],
    "FileService/Read": [FILE],
    "FileService/Write": [{**AT, "path": "/workspace/new", "data": "eA=="}],
    "FileService/MakeDir": [{**AT, "path": "/workspace/new-dir"}],
    "FileService/Move": [{**FILE, "to": "/workspace/moved"}],
    "FileService/Remove": [FILE],
    "FileService/Watch": [{**AT, "path": "/workspace"}],
    "FileService/Pull": [{**AT, "path": "/workspace"}],
    "FileService/Push": [{**AT, "path": "/workspace", "entry": {"path": "x", "type": "file"}}],
    "HostService/Health": Lists(),
    "HostService/Capabilities": Lists(),
    "HostService/Metrics": Lists(),
    "HostService/History": Host({}, {"seconds": 60}),
    "HostService/Doctor": Host({}),
    "HostService/Audit": Lists({}, {"verify": True}, named=[{"sandboxId": "{sandbox}"}]),
    "NetworkService/Get": [AT],
    "NetworkService/Set": [{**AT, "policy": {"mode": "none"}}, {**AT, "remove": ["a.test"]}],
    "NetworkService/Log": [AT],
    "NetworkService/Test": [{**AT, "target": "a.test"}],
    "NetworkService/Learn": [AT],
    "NetworkService/GetTemplate": [{"template": "{template}"}, {"template": "{owner}/{template}"}],
    "NetworkService/SetTemplate": [{"template": "{template}", "policy": {"mode": "open"}}, {"template": "{owner}/{template}"}],
    "ModelService/List": Lists(),
    "ModelService/Usage": Lists({}, named=[AT, {"owner": "{owner}"}]),
    "OwnerService/Get": [{"owner": "{owner}"}],
    "OwnerService/List": Lists(),
    "OwnerService/Set": [{"owner": "{owner}"}],
    "OwnerService/Remove": [{"owner": "{owner}"}],
    "PortService/Forward": [{**AT, "port": 8000}],
    "PortService/List": Lists({}, named=[AT]),
    "PortService/Preview": [{**AT, "port": 8000}],
    "ProcessService/Exec": [{**AT, "process": PROCESS}],
    "ProcessService/Start": [{**AT, "process": PROCESS}],
    "ProcessService/Launch": [{**AT, "process": PROCESS, "port": 8001}],
    "ProcessService/Get": [ID],
    "ProcessService/List": [AT],
    "ProcessService/Attach": [ID],
    "ProcessService/Wait": [{**ID, "timeoutMs": 1}],
    "ProcessService/SendInput": [{**ID, "data": "eA=="}],
    "ProcessService/Signal": [{**ID, "signal": 10}],
    "ProcessService/Resize": [{**ID, "size": {"rows": 1, "columns": 1}}],
    "SandboxService/Create": [{"template": "{template}"}, {"template": "{owner}/{template}"}, {"template": "{built_template}"},
                              {"volumes": [{"volume": "{volume}", "path": "/v"}]},
                              {"volumes": [{"volume": "{volume_name}", "path": "/v"}]},
                              {"codebase": {"codebase": "{codebase}"}}, {"codebase": {"codebase": "{codebase_name}"}},
                              {"secrets": ["{secret}"]},
                              {"secrets": ["{owner}/{secret_name}"]}],
    "SandboxService/Get": [AT],
    "SandboxService/List": Lists({}, {"labels": {"word": "kestrel"}}),
    "SandboxService/Update": [{**AT, "labels": {"a": "b"}}, {**AT, "name": "changed"}, {**AT, "ttlMs": 3600000},
                              {**RESTING, "volumes": {"mounts": [{"volume": "{volume}", "path": "/v"}]}},
                              {**RESTING, "volumes": {"mounts": [{"volume": "{volume_name}", "path": "/v"}]}}],
    "SandboxService/Pause": [AT, {**AT, "deep": True}],
    "SandboxService/Resume": [AT, {**AT, "process": PROCESS}],
    "SandboxService/Stop": [AT],
    "SandboxService/Start": [AT],
    "SandboxService/Destroy": [AT],
    "SandboxService/Fork": [AT, {**AT, "from": "{snapshot}"}],
    "SandboxService/Stats": Lists({}, named=[{"sandboxIds": ["{sandbox}"]}]),
    "SandboxService/WatchStats": Lists({"intervalMs": 100}, named=[{"sandboxIds": ["{sandbox}"], "intervalMs": 100}], limit=1),
    "SandboxService/Run": [{"sandbox": {"template": "{template}"}, "process": PROCESS}],
    "RegistryService/Login": Makes({"registry": "other.example", "username": "ann", "password": "x"}),
    "RegistryService/Logout": [{"registry": "{owner}/registry.example"}],
    "RegistryService/List": Lists(),
    "BackupService/Create": [AT, {**AT, "snapshot": "{snapshot}"}],
    "BackupService/List": Lists({}, named=[AT]),
    "BackupService/Remove": [{"name": "{backup}"}],
    "BackupService/Restore": [{"name": "{backup}"}],
    "BackupService/Collect": Lists(),
    "SecretService/Set": Makes({"name": "made", "value": "made-value", "hosts": ["api.example.com"]}),
    "SecretService/Rotate": [{"secret": "{secret}", "value": "other"}, {"secret": "{owner}/{secret_name}", "value": "other"}],
    "SecretService/List": Lists(),
    "SecretService/Remove": [{"secret": "{secret}"}, {"secret": "{owner}/{secret_name}"}],
    "ShellService/Run": [{**AT, "name": "main", "command": "true"}],
    "ShellService/Open": [{**AT, "name": "other"}],
    "ShellService/Get": [{**AT, "name": "main"}],
    "ShellService/List": [AT],
    "ShellService/Remove": [{**AT, "name": "main"}],
    "SnapshotService/TurnComplete": [AT],
    "SnapshotService/Create": [{**AT, "name": "new"}],
    "SnapshotService/Rollback": [{**AT, "snapshot": "{snapshot}"}],
    "SnapshotService/List": [AT],
    "SnapshotService/Update": [{**AT, "snapshot": "{snapshot}", "note": "seen"}],
    "SnapshotService/Remove": [{**AT, "snapshot": "{snapshot}"}],
    "SnapshotService/Diff": [{**AT, "from": "{snapshot}"}, {**AT, "from": "template"},
                             {**OWN, "toSandboxId": "{sandbox}"}, {**AT, "toSandboxId": "own"}],
    "TemplateService/Import": Host({"name": "new", "path": "/no/such/path"}),
    "TemplateService/Pull": Makes({"reference": "other.example/new:1"}),
    "TemplateService/Build": [{"name": "made", "dockerfile": "FROM host\nCOPY secret /secret", "sandboxId": "{sandbox}"}],
    "TemplateService/Push": [{"name": "{template}", "reference": "other.example/new:1"}],
    "TemplateService/List": Lists({}, {"all": True}),
    "TemplateService/Remove": [{"name": "{template}"}, {"name": "{built_template}"}],
    "TemplateService/Prune": Makes({"dryRun": True}, {"all": True, "dryRun": True}),
    "TemplateService/Share": [{"name": "{template}", "public": True}, {"name": "{owner}/{template}", "owners": ["bob"]}],
    "TemplateService/SetRuntime": [{"name": "{template}", "runtimeMin": "native"}, {"name": "{owner}/{template}"}],
    "TemplateService/Commit": [{**AT, "name": "new"}],
    "TokenService/Create": [{"portsOf": "{sandbox}"}, {"owner": "{owner}"}],
    "TokenService/List": Lists(),
    "TokenService/Remove": [{"id": "{token}"}],
    "ToolService/Execute": [{**AT, "tool": "bash", "params": {"command": "true"}},
                            {**AT, "tool": "read_file", "params": {"file_path": "/workspace/secret"}}],
    "ToolService/ExecuteStream": [{**AT, "tool": "bash", "params": {"command": "true"}}],
    "ToolService/List": Lists(),
    "ToolService/ReadOutput": [{**AT, "handle": "{handle}"}],
    "CodebaseService/Add": [{"name": "new", "source": "{volume}"}, {"name": "newer", "source": "{volume_name}"}],
    "CodebaseService/List": Lists(),
    "CodebaseService/Remove": [{"codebase": "{codebase}"}, {"codebase": "{codebase_name}"}],
    "CodebaseService/Log": [{"codebase": "{codebase}"}, {"codebase": "{codebase_name}"}],
    "CodebaseService/Apply": Host({"codebase": "{codebase}"}),
    "CodebaseService/Branch": Host({"codebase": "{codebase}", "branch": "work"}),
    "CodebaseService/Commit": [{"sandboxId": "{coding}"}],
    "CodebaseService/Rebase": [{"sandboxId": "{coding}"}],
    "CodebaseService/Merge": [{"sandboxId": "{coding}", "fromSandboxId": "own"}, {"sandboxId": "own", "fromSandboxId": "{coding}"}],
    "CodebaseService/Discard": [{"sandboxId": "{coding}"}],
    "PermissionService/List": [{"sandboxId": "{coding}"}],
    "PermissionService/Set": [{"sandboxId": "{coding}", "preset": "full-access"}],
    "PermissionService/Add": [{"sandboxId": "{coding}", "rules": ["/a=read"]}],
    "PermissionService/Remove": [{"sandboxId": "{coding}", "rules": ["/a=read"]}],
    "PermissionService/Why": [{"sandboxId": "{coding}", "path": "a"}],
    "PermissionService/Test": [{"sandboxId": "{coding}", "path": "a", "operation": "read"}],
    "PermissionService/Tree": [{"sandboxId": "{coding}"}],
    "VolumeService/Create": Makes({"name": "made"}),
    "VolumeService/List": Lists(),
    "VolumeService/Remove": [{"volume": "{volume}"}, {"volume": "{volume_name}"}],
    "VolumeService/Share": [{"volume": "{volume}", "public": True}, {"volume": "{owner}/{volume_name}", "owners": ["bob"]}],
    "VolumeService/Adopt": [{"volume": "{volume}"}, {"volume": "{volume}", "template": "{template}"}],
}

S = "/sandboxes/{e2b}"
CONTENT = "/volumecontent/{e2b_volume}"
VOLUME_TOKEN = {"Authorization": "Bearer {volume_token}"}  # of a volume of the caller

# (path, body, headers) of each route of the control API; None: no body.
E2B = {
    "GET /health": Lists(("/health", None)),
    "POST /sandboxes": [("/sandboxes", {"templateID": word}) for word in ("{template}", "{built}", "{built_name}", "{saved}")],
    "POST /v2/sandboxes": [("/v2/sandboxes", {"templateID": word}) for word in ("{template}", "{built}", "{built_name}", "{saved}")]
    + [("/v2/sandboxes", {"templateID": "host", "volumeMounts": [{"name": "{volume_name}", "path": "/v"}]})],
    "POST /sandboxes/{}/connect": [(S + "/connect", {"timeout": 300})],
    "POST /v2/sandboxes/{}/connect": [("/v2" + S + "/connect", {"timeout": 300})],
    "POST /sandboxes/{}/resume": [(S + "/resume", {"timeout": 300})],
    "POST /sandboxes/{}/timeout": [(S + "/timeout", {"timeout": 300})],
    "POST /sandboxes/{}/refreshes": [(S + "/refreshes", {"duration": 300})],
    "POST /sandboxes/{}/pause": [(S + "/pause", {})],
    "PUT /sandboxes/{}/network": [(S + "/network", {})],
    "GET /sandboxes/{}": [(S, None)],
    "DELETE /sandboxes/{}": [(S, None)],
    "GET /v2/sandboxes": Lists(("/v2/sandboxes", None), ("/v2/sandboxes?metadata=word%3Dkestrel", None)),
    "GET /sandboxes": Lists(("/sandboxes", None)),
    "GET /sandboxes/metrics": Lists(("/sandboxes/metrics?sandbox_ids=sb0123456789abcdef", None),
                                    named=[("/sandboxes/metrics?sandbox_ids={e2b}", None)]),
    "GET /sandboxes/{}/metrics": [(S + "/metrics", None)],
    "GET /sandboxes/{}/logs": [(S + "/logs", None)],
    "GET /v2/sandboxes/{}/logs": [("/v2" + S + "/logs", None)],
    "POST /sandboxes/{}/fork": [(S + "/fork", {"count": 1})],
    "POST /sandboxes/{}/snapshots": [(S + "/snapshots", {"name": "new-saved"})],
    "GET /snapshots": Lists(("/snapshots", None), named=[("/snapshots?sandboxID={e2b}", None), ("/snapshots?name={saved}", None)]),
    "DELETE /templates/*": [("/templates/holt/{saved}", None)],
    "GET /teams": Lists(("/teams", None)),
    "POST /secrets": Makes(("/secrets", {"name": "made", "value": "v"})),
    "GET /secrets": Lists(("/secrets", None)),
    "GET /secrets/{}": [("/secrets/{e2b_secret}", None), ("/secrets/{secret_name}", None)],
    "POST /secrets/{}": [("/secrets/{e2b_secret}", {"value": "w"}), ("/secrets/{secret_name}", {"value": "w"})],
    "DELETE /secrets/{}": [("/secrets/{e2b_secret}", None), ("/secrets/{secret_name}", None)],
    "POST /volumes": Makes(("/volumes", {"name": "made-content"})),
    "GET /volumes": Lists(("/volumes", None)),
    "GET /volumes/{}": [("/volumes/{e2b_volume}", None), ("/volumes/{volume_name}", None)],
    "DELETE /volumes/{}": [("/volumes/{e2b_volume}", None), ("/volumes/{volume_name}", None)],
    "GET /volumecontent/{}/path": [(CONTENT + "/path?path=/file", None, VOLUME_TOKEN)],
    "PATCH /volumecontent/{}/path": [(CONTENT + "/path?path=/file", {"mode": 384}, VOLUME_TOKEN)],
    "DELETE /volumecontent/{}/path": [(CONTENT + "/path?path=/file", None, VOLUME_TOKEN)],
    "GET /volumecontent/{}/dir": [(CONTENT + "/dir?path=/", None, VOLUME_TOKEN)],
    "POST /volumecontent/{}/dir": [(CONTENT + "/dir?path=/new", None, VOLUME_TOKEN)],
    "GET /volumecontent/{}/file": [(CONTENT + "/file?path=/file", None, VOLUME_TOKEN)],
    "PUT /volumecontent/{}/file": [(CONTENT + "/file?path=/new-file", {}, VOLUME_TOKEN)],
    "POST /v3/templates": Makes(("/v3/templates", {"name": "made-3"})),
    "POST /v2/templates": Makes(("/v2/templates", {"alias": "made-2"})),
    "POST /v2/templates/{}/builds/{}": [("/v2/templates/{built}/builds/{build}", {"fromTemplate": "host", "steps": []})],
    "GET /templates/{}/builds/{}/status": [("/templates/{built}/builds/{build}/status", None)],
    "POST /templates/tags": [("/templates/tags", {"target": "{built_name}:default", "tags": ["x"]}),
                             ("/templates/tags", {"target": "{built}:default", "tags": ["x"]})],
    "DELETE /templates/tags": [("/templates/tags", {"name": "{built_name}", "tags": ["default"]})],
    "GET /templates/{}/tags": [("/templates/{built}/tags", None), ("/templates/{built_name}/tags", None)],
    "GET /templates/aliases/{}": [("/templates/aliases/{built_name}", None), ("/templates/aliases/{template}", None)],
    "GET /templates": Lists(("/templates", None)),
    "GET /v2/templates": Lists(("/v2/templates", None)),
    "GET /templates/{}": [("/templates/{built}", None), ("/templates/{built_name}", None), ("/templates/{template}", None)],
    "PATCH /v2/templates/{}": [("/v2/templates/{built}", {"public": True}), ("/v2/templates/{built_name}", {"public": True})],
    "PATCH /templates/{}": [("/templates/{built}", {"public": True}), ("/templates/{built_name}", {"public": True})],
    "DELETE /templates/{}": [("/templates/" + word, None) for word in ("{built}", "{built_name}", "{template}", "{saved}")],
    "GET /templates/{}/files/{}": [("/templates/{built}/files/" + "ab" * 32, None), ("/templates/{built_name}/files/" + "ab" * 32, None)],
    "PUT /templates/{}/files/{}/{}": [("/templates/{built}/files/" + "ab" * 32 + "/" + "0" * 64, {})],
}

# Routes inside a sandbox need a secret of the sandbox itself; a token of the host opens none of them.
ENVD = {
    "GET /health": ("/health", None),
    "GET /metrics": ("/metrics", None),
    "GET /envs": ("/envs", None),
    "GET /files": ("/files?path=/etc/passwd", None),
    "HEAD /files": ("/files?path=/etc/passwd", None),
    "POST /files": ("/files?path=/workspace/new", {}),
    **{"POST /" + method: ("/" + method, {}) for method in re.findall(r"[\w.]+/\w+", """
        filesystem.Filesystem/Stat filesystem.Filesystem/MakeDir filesystem.Filesystem/Move filesystem.Filesystem/ListDir
        filesystem.Filesystem/Remove filesystem.Filesystem/WatchDir filesystem.Filesystem/CreateWatcher
        filesystem.Filesystem/GetWatcherEvents filesystem.Filesystem/RemoveWatcher process.Process/List process.Process/Connect
        process.Process/Start process.Process/Update process.Process/StreamInput process.Process/SendInput
        process.Process/SendSignal process.Process/CloseStdin""")},
}

# What a caller is told of an object of another owner, other than not_found (404).
CODES = {
    "BackupService/List": "ok",  # also of sandboxes that were destroyed
    "EventService/Watch": "ok",  # also of sandboxes that were destroyed: there are no events
    "HostService/Audit": "ok",  # the same
    "TokenService/Create": lambda request: "permission_denied" if "owner" in request else "not_found",  # whether the owner exists or not
    "GET /sandboxes/metrics": 200,  # leaves out what does not exist
    "GET /snapshots": 200,  # the same
    **{route: 401 for route in E2B if "/volumecontent/" in route},  # asks for the secret of the volume, before it looks
    "PUT /templates/{}/files/{}/{}": 403,  # a pre-signed URL, whose signature is not valid
}

# What the owner itself is told, other than ok (2xx), by a request that finds its object: a code, or a part of the message.
CONTROL = {
    "TemplateService/Push": {"images of registry 'other.example' are not allowed"},  # the same
    "TemplateService/Pull": {"pull 'other.example/new:1': images of registry 'other.example' are not allowed"},  # the daemon of the test allows none
    "RegistryService/Login": {"images of registry 'other.example' are not allowed"},  # the same
    "RegistryService/Logout": {"no login to registry 'alice/registry.example'"},  # so none can be made; see image/login_test
    "NetworkService/Set": {"ok", "the sandbox has no rule 'a.test'"},
    "NetworkService/Learn": {"permission_denied"},  # the host of the test has net.mode = none
    "PermissionService/Remove": {"ok", "the sandbox has no rule '/a=read'"},
    "SandboxService/Resume": {"ok", "failed_precondition"},  # the first row has resumed it
    "SecretService/Remove": {"ok", "not_found"},  # the first row has removed it
    "TemplateService/Remove": {"failed_precondition"},  # in use by sandboxes of other rows
    "VolumeService/Remove": {"failed_precondition"},  # the same
    "CodebaseService/Remove": {"failed_precondition"},  # the same
    "CodebaseService/Merge": {"invalid_argument"},  # the two have different codebases
    "POST /v2/templates/{}/builds/{}": {400},  # the build was started already
    "PUT /templates/{}/files/{}/{}": {403},  # as for others: the signature is not valid
    **{tool: {} for tool in ("run_code", "git_push", "git_clone", "git_pull")},  # fail inside of the sandbox, which has no remote
}


def code_of(method, request):
    code = CODES.get(method, "not_found")
    return code(request) if callable(code) else code


# Fields of requests that name an object, beside those that end with Id.
OBJECT_FIELDS = {"portsOf", "secret", "secrets", "template", "volume", "codebase", "source", "snapshot", "handle", "owner", "id"}
NO_OBJECTS = {
    "SandboxService/Create": {"workspaceId"},  # of the caller's own product
    "SnapshotService/Diff": {"codebase"},  # whether to compare with it
    "FileService/Push": {"owner"},  # of a file, inside
    "ToolService/Execute": {"toolCallId", "snapshot"},  # the caller's own word, and whether to take one
    "ToolService/ExecuteStream": {"toolCallId", "snapshot"},
}

# Plain files and the console: what names an object of another owner (matrix_frontends.py makes the calls).
QUERY = "/holt.v1/file?sandbox={sandbox}&path=/workspace/"
PLAIN = {"GET": [QUERY + "secret", QUERY], "HEAD": [QUERY + "secret"], "PUT": [QUERY + "new", QUERY + "secret"]}
BUNDLE = "/holt.v1/bundle?sandbox={sandbox}"
CONSOLE = {
    "POST /console/login": {"token": "{token}"},  # the rest of the rows names the caller itself
    "POST /console/login/look": {"token": "{token}"},
    "GET /console/session": None,
    "POST /console/ticket": {"sandbox": "{sandbox}", "path": "/workspace/secret"},
    "GET /console/download/": None,  # a ticket that another session got
    "POST /console/logout": {},
}

PAGES = {"/metrics", "/healthz"}
FRONTENDS = {"e2b_frontend", "mcp_frontend", "console_frontend", "mux_frontend", "plain_frontend", "bundle_frontend", "pages_frontend", "holt_frontend"}

# Arguments of each tool for agents, which MCP lists; all of them take a sandbox, except the last two.
TOOLS = {
    "read_file": {"path": "/workspace/secret"},
    "write_file": {"path": "/workspace/secret", "content": "x"},
    "edit_file": {"path": "/workspace/secret", "old_string": "kestrel", "new_string": "x"},
    "multi_edit": {"path": "/workspace/secret", "edits": [{"old_string": "kestrel", "new_string": "x"}]},
    "list_dir": {"path": "/workspace"},
    "grep": {"pattern": "kestrel", "path": "/workspace"},
    "glob": {"pattern": "*", "path": "/workspace"},
    "bash": {"cmd": "rm -f /workspace/secret"},
    "run_code": {"code": "1"},
    "git_status": {}, "git_diff": {}, "git_log": {}, "git_show": {},
    "git_add": {"paths": ["secret"]},
    "git_commit": {"message": "x"},
    "git_push": {"args": []}, "git_clone": {"args": ["/x", "/workspace/y"]}, "git_fetch": {"args": []}, "git_pull": {"args": []},
    "shell": {"cmd": "rm -f /workspace/secret"},
    "process_start": {"cmd": "true"},
    "process_logs": {"process_id": "{process}"},
    "process_list": {},
    "process_wait": {"process_id": "{process}", "timeout_ms": 1},
    "process_kill": {"process_id": "{process}"},
    "snapshot": {"name": "new-point"},
    "rollback": {"snapshot": "{snapshot}"},
    "list_snapshots": {},
    "diff": {"from": "{snapshot}"},
    "fork": {},
    "expose_port": {"port": 8000},
    "network_status": {},
    "read_output": {"handle": "{handle}"},
    "list_sandboxes": {},
    "create_sandbox": {"template": "{template}"},
}
# What a read-only token may use.
READING_TOOLS = {"read_file", "list_dir", "grep", "glob", "git_status", "git_diff", "git_log", "git_show", "process_logs", "process_list",
                 "process_wait", "list_snapshots", "diff", "network_status", "read_output", "list_sandboxes"}
MCP_METHODS = {"server/discover", "subscriptions/listen", "tasks/get", "tasks/update", "tasks/cancel"}
WITHOUT_SANDBOX = {"list_sandboxes", "create_sandbox"}


def source_routes(*folders):
    """"VERB /path" of every route in the source of the E2B front end."""
    found = set()
    for folder in folders:
        for path in sorted((SOURCE / "e2b" / folder).glob("*.c")):
            found.update(map(" ".join, re.findall(r'\{ "([A-Z]+)", "(/[^"]*)",', path.read_text())))
    return found


def source_console_routes():
    """"VERB /path" of every route of the console."""
    names = dict(re.findall(r'#define (\w+) ("/[^"]+")', (SOURCE / "console/console_internal.h").read_text()))
    return {f"{verb} {names.get(path, path)[1:-1]}" for verb, path in
            re.findall(r'\{ MHD_HTTP_METHOD_(\w+), ("[^"]+"|\w+), ', (SOURCE / "console/frontend.c").read_text())}


def source_plain_verbs():
    """The verbs of /holt.v1/file."""
    return set(re.findall(r"MHD_HTTP_METHOD_(\w+)", (SOURCE / "api/plain/frontend.c").read_text()))


def source_envd_methods():
    found = set()
    for path in sorted((SOURCE / "../proto/e2b").rglob("*.proto")):
        text = path.read_text()
        package = re.search(r"^package ([\w.]+);", text, re.M)
        for service, body in re.findall(r"^service (\w+) \{(.*?)^\}", text, re.M | re.S):
            found.update(f"POST /{package[1]}.{service}/{name}" for name in re.findall(r"\brpc (\w+)", body))
    return found
