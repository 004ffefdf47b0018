// The official clients of the Model Context Protocol list and call every tool, over stdio and over HTTP.
// usage: node mcp.mjs SOCKET ADDRESS TOKEN DIRECTORY [REVISION]
// Without a revision it is the SDK of those with sessions; with one, the client of those without.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { get } from "node:http";
import { claim, finish } from "./claims.mjs";

const [socketPath, address, token, directory, revision] = process.argv.slice(2);
const { Client, StdioClientTransport, StreamableHTTPClientTransport } = Object.assign({}, ...await Promise.all(revision
  ? [import("@modelcontextprotocol/client"), import("@modelcontextprotocol/client/stdio")]
  : ["index", "stdio", "streamableHttp"].map((part) => import(`@modelcontextprotocol/sdk/client/${part}.js`))));
const environment = { PATH: process.env.PATH, HOLT_HOST: `unix://${socketPath}` };
const patient = { timeout: 600_000 }; // a bound, not a speed limit
const holt = (...args) => execFileSync("holt", args, { env: environment, encoding: "utf8" }).trim();

// A 1x1 image.
const png = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

const opened = [];

async function connect(transport) {
  const client = new Client({ name: "holt-tests", version: "1" },
    revision ? { versionNegotiation: { mode: { pin: revision } } } : {});
  client.errors = [];
  // What it says where progress comes together with the result is about the order of its own work.
  client.onerror = (error) => /progress notification for an unknown/.test(error) || client.errors.push(error);
  await client.connect(transport, patient);
  opened.push(client);
  return client;
}

const stdio = (cwd, ...args) =>
  connect(new StdioClientTransport({ command: "holt", args: ["mcp", ...args], env: environment, cwd }));
const http = (query = "", secret = token, options = {}) =>
  connect(new StreamableHTTPClientTransport(new URL(`http://${address}/mcp${query}`),
    { requestInit: { headers: { Authorization: `Bearer ${secret}` } }, ...options }));

const callTool = (client, params, options = {}) => revision
  ? client.callTool(params, { ...patient, ...options }) : client.callTool(params, undefined, { ...patient, ...options });
const call = (client, name, args = {}, options = {}) => callTool(client, { name, arguments: args }, options);
const textOf = (result) => result.content.map((block) => block.text ?? "").join("\n");

// The text of a call that went well.
async function text(client, name, args) {
  const result = await call(client, name, args);
  assert.equal(result.isError ?? false, false, `${name}: ${textOf(result)}`);
  return textOf(result);
}

// Until it does not throw any more.
async function eventually(body) {
  for (let i = 0; ; i++) {
    try {
      return await body();
    } catch (error) {
      if (i === 1200) throw error;
    }
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

// The first fetch() of a process never ends if the server closes the connection at once, as a forward does before the
// program in the sandbox listens: undici looks at the socket only when it has loaded its parser.
const page = (url) => new Promise((resolve, reject) => {
  get(url, (response) => response.setEncoding("utf8").on("error", reject).toArray().then((parts) => resolve(parts.join("")), reject))
    .on("error", reject);
});

async function failsWith(code, promise) {
  await assert.rejects(promise, (error) => error.code === code);
}

// Calls every tool; returns the names of those that it called.
async function everyTool(client) {
  const called = new Set();
  const use = (name, args) => (called.add(name), text(client, name, args));

  await use("write_file", { path: "notes/a.txt", content: "one\ntwo\nthree\n", create_dirs: true });
  assert.match(await use("read_file", { path: "notes/a.txt" }), /two/);
  await use("edit_file", { path: "notes/a.txt", old_string: "two", new_string: "2" });
  await use("multi_edit", { path: "notes/a.txt", edits: [
    { old_string: "one", new_string: "1" }, { old_string: "three", new_string: "3" }] });
  assert.equal(await use("bash", { cmd: "tr '\\n' , < notes/a.txt" }).then((out) => out.split("\n")[0]), "1,2,3,");
  called.add("run_code"); // this sandbox has no kernels; tests/system/e2b/interpreter_life_test has some
  const noKernels = await call(client, "run_code", { code: "1" });
  assert.equal(noKernels.isError, true);
  assert.match(textOf(noKernels), /no code interpreter/);
  assert.match(await use("list_dir", { path: "notes" }), /a\.txt/);
  assert.match(await use("grep", { pattern: "^2$", path: "notes" }), /a\.txt/);
  assert.match(await use("glob", { pattern: "**/*.txt" }), /notes\/a\.txt/);

  await text(client, "bash", { cmd: "git config --global user.name t; git config --global user.email t@t; " +
    "git config --global init.defaultBranch main; git init -q --bare /tmp/origin.git" });
  await use("git_clone", { args: ["/tmp/origin.git", "repo"] });
  await text(client, "write_file", { path: "repo/f", content: "first\n" });
  assert.match(await use("git_status", { repo: "repo" }), /f/);
  await use("git_add", { paths: ["f"], repo: "repo" });
  assert.match(await use("git_diff", { staged: true, repo: "repo" }), /\+first/);
  await use("git_commit", { message: "the first", repo: "repo" });
  assert.match(await use("git_log", { repo: "repo" }), /the first/);
  assert.match(await use("git_show", { repo: "repo" }), /\+first/);
  await use("git_push", { args: ["origin", "HEAD"], repo: "repo" });
  await use("git_fetch", { args: ["origin"], repo: "repo" });
  await use("git_pull", { args: ["origin", "main"], repo: "repo" });

  await use("shell", { cmd: "cd /tmp; NAME=kept" });
  assert.match(await use("shell", { cmd: "echo $PWD $NAME" }), /\/tmp kept/);

  const started = await use("process_start", { cmd: "echo it runs; exec sleep 100000" });
  const [processId] = started.match(/\bp\d+\b/);
  await eventually(async () => assert.match(await use("process_logs", { process_id: processId }), /it runs/));
  assert.match(await use("process_list", {}), new RegExp(`^${processId}  running .*it runs`, "m"));
  await use("process_kill", { process_id: processId, signal: "KILL" });
  assert.match(await use("process_wait", { process_id: processId }), /has ended/);

  assert.match(await use("network_status", {}), /no network/);
  await text(client, "process_start", { cmd: "exec python3 -m http.server 8123 --bind 127.0.0.1 --directory /etc" });
  const [exposed] = (await use("expose_port", { port: 8123 })).match(/http:\/\/[^ ]+\//);
  await eventually(async () => assert.match(await page(`${exposed}passwd`), /root/));

  await use("snapshot", { name: "before" });
  await text(client, "write_file", { path: "notes/a.txt", content: "lost\n" });
  assert.match(await use("diff", {}), /notes\/a\.txt/);
  assert.match(await use("list_snapshots", {}), /before/);
  await use("rollback", { snapshot: "before" });
  assert.match(await text(client, "read_file", { path: "notes/a.txt" }), /3/);
  const [fork] = (await use("fork", {})).match(/\bsb-[0-9a-f]+\b/);
  const [created] = (await use("create_sandbox", {})).match(/\bsb-[0-9a-f]+\b/);
  assert.match(await use("list_sandboxes", {}), new RegExp(`^${created} `, "m"));
  for (const sandbox of [fork, created]) {  // they can be used at once
    await text(client, "write_file", { path: "own", content: `${sandbox}\n`, sandbox });
    assert.match(await text(client, "bash", { cmd: "cat own", sandbox }), new RegExp(sandbox));
  }
  assert.match(await text(client, "bash", { cmd: "cat own 2>&1" }), /No such file/);
  holt("rm", "-f", fork, created);

  const long = await call(client, "bash", { cmd: "seq 1 100000" });
  const { truncated } = long._meta["holt/result"];
  assert.ok(Number(truncated.total) > Number(truncated.shown));
  assert.match(textOf(long), new RegExp(`read_output handle=${truncated.handle}`));
  assert.match(await use("read_output", { handle: truncated.handle, offset: 0, limit: 8 }), /^1\n2\n3\n4\n/);
  return called;
}

async function listed(client) {
  const { tools } = await client.listTools({}, patient);
  for (const tool of tools) {
    assert.equal(tool.inputSchema.type, "object");
    assert.ok(tool.description && tool.annotations.title);
    for (const hint of ["readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"])
      assert.equal(typeof tool.annotations[hint], "boolean", `${tool.name} ${hint}`);
    assert.ok(!(tool.annotations.readOnlyHint && tool.annotations.destructiveHint), tool.name);
  }
  return tools.map((tool) => tool.name).sort();
}

const project = `${directory}/project`;
mkdirSync(project);
writeFileSync(`${project}/README`, "of the user\n");
const local = await stdio(project, "--workspace", ".");
const sandbox = () => holt("ls").match(/mcp-project-[0-9a-f]{6}/)[0];

await claim("the_server_says_what_it_is", async () => {
  assert.equal(local.getServerVersion().name, "holt");
  assert.ok(local.getServerCapabilities().tools);
  assert.match(local.getInstructions(), /workspace/);
  if (!revision) await local.ping(patient);
});

await claim("a_workspace_is_copied_before_the_first_call", async () => {
  assert.doesNotMatch(holt("ls"), /mcp-project/);
  assert.match(await text(local, "read_file", { path: "README" }), /of the user/);
  assert.match(await text(local, "list_snapshots"), /workspace/);
});

for (const [where, open] of [["stdio", async () => local], ["http", () => http("?template=host")]]) {
  await claim(`every_tool_is_called_over_${where}`, async () => {
    const client = await open();
    assert.deepEqual([...await everyTool(client)].sort(), await listed(client));
    assert.deepEqual(client.errors, []);
  });
}

const remote = await http(`?sandbox=${sandbox()}`);

for (const [where, client] of [["stdio", local], ["http", remote]]) {
  await claim(`an_image_comes_as_an_image_over_${where}`, async () => {
    await text(client, "bash", { cmd: `echo ${png} | base64 -d > dot.png` });
    const [image] = (await call(client, "read_file", { path: "dot.png" })).content.filter((b) => b.type === "image");
    assert.equal(image.mimeType, "image/png");
    assert.equal(image.data, png);
  });

  await claim(`a_failing_command_is_no_error_and_a_failing_tool_is_over_${where}`, async () => {
    const failing = await call(client, "bash", { cmd: "exit 3" });
    assert.equal(failing.isError, false);
    assert.match(textOf(failing), /exit code 3/);
    assert.equal(failing._meta["holt/result"].exitCode, 3);
    const absent = await call(client, "read_file", { path: "no/such/file" });
    assert.equal(absent.isError, true);
    const wrong = await call(client, "read_file", { nonsense: 1 });
    assert.equal(wrong.isError, true);
    assert.match(textOf(wrong), /path/);
    await failsWith(-32602, call(client, "no_such_tool"));
    if (!revision) await failsWith(-32601, client.request({ method: "no/such" }, { parse: (value) => value }, patient));
  });

  await claim(`progress_is_told_and_grows_over_${where}`, async () => {
    const told = [];
    await text(client, "bash", { cmd: "rm -f go" });
    const result = call(client, "bash", { cmd: "echo first; until [ -e go ]; do sleep 0.05; done; echo last" },
      { onprogress: (progress) => told.push(progress) });
    await eventually(() => assert.equal(told[0]?.message, "first"));
    await text(client, "bash", { cmd: "touch go" }); // a second call beside the first
    assert.match(textOf(await result), /first\nlast/);
    for (let i = 1; i < told.length; i++) assert.ok(told[i].progress > told[i - 1].progress);
  });

  for (const wanted of ["with progress", "without"]) {
    await claim(`a_cancelled_call_ends_what_it_started_over_${where}_${wanted.replace(" ", "_")}`, async () => {
      const cancel = new AbortController();
      await text(client, "bash", { cmd: "rm -f pid" });
      const result = call(client, "bash", { cmd: "echo $$ > pid.new; mv pid.new pid; sleep 100000; true", timeout_ms: 86400000 },
        { signal: cancel.signal, ...(wanted === "without" ? {} : { onprogress() {} }) });
      result.catch(() => {});
      await eventually(() => text(client, "bash", { cmd: "cat pid" }).then((out) => assert.match(out, /^\d+\n/)));
      cancel.abort("not wanted");
      await assert.rejects(result);
      await eventually(() => text(client, "bash", { cmd: "kill -0 $(cat pid) 2>&1 || echo gone" })
        .then((out) => assert.match(out, /gone/)));
      assert.deepEqual(client.errors, []);
    });
  }
}

await claim("two_clients_work_in_one_sandbox", async () => {
  await text(local, "write_file", { path: "from-stdio", content: "a\n" });
  await text(remote, "write_file", { path: "from-http", content: "b\n" });
  assert.match(await text(remote, "read_file", { path: "from-stdio" }), /a/);
  assert.match(await text(local, "read_file", { path: "from-http" }), /b/);
  const both = await Promise.all([local, remote, local, remote].map((client, i) =>
    text(client, "bash", { cmd: `echo number ${i}` })));
  both.forEach((out, i) => assert.match(out, new RegExp(`number ${i}`)));
});

await claim("a_call_with_an_id_is_made_once", async () => {
  const once = (client) => callTool(client, { name: "bash", arguments: { cmd: "echo x >> once; wc -l < once" },
    _meta: { "holt/toolCallId": "only-once" } });
  assert.match(textOf(await once(local)), /^1\n/);
  const again = await once(remote);
  assert.match(textOf(again), /^1\n/);
  assert.equal(again._meta["holt/result"].repeatedCall, true);
});

if (!revision) await claim("a_session_is_found_again_by_its_id", async () => {
  const again = await http("", token, { sessionId: remote.transport.sessionId });
  assert.match(await text(again, "read_file", { path: "from-stdio" }), /a/);
  await again.transport.terminateSession();
  await assert.rejects(call(remote, "bash", { cmd: "true" }), (error) => error.code === 404);
  assert.match(holt("ls"), new RegExp(sandbox())); // it was not the session's
});

await claim("a_directory_has_its_sandbox_again_the_next_time", async () => {
  await local.close();
  writeFileSync(`${project}/README`, "changed by the user\n");
  const next = await stdio(project, "--workspace", ".");
  assert.match(await text(next, "read_file", { path: "from-stdio" }), /a/);
  assert.match(await text(next, "read_file", { path: "README" }), /of the user/); // copied once
  await next.close();
});

await claim("a_stopped_sandbox_is_started_and_a_paused_one_resumed", async () => {
  const name = sandbox();
  for (const verb of ["stop", "pause"]) {
    holt(verb, name);
    const client = await stdio(project, "--sandbox", name);
    assert.match(await text(client, "bash", { cmd: "echo awake" }), /awake/);
    await client.close();
  }
});

await claim("who_may_only_look_sees_and_gets_only_such_tools", async () => {
  const secret = holt("token", "create", "--read-only").match(/holt_[0-9a-f]{64}/)[0];
  for (const open of [() => http(`?sandbox=${sandbox()}`, secret), () => stdio(project, "--sandbox", sandbox(), "--read-only")]) {
    const client = await open();
    const names = await listed(client);
    assert.ok(names.includes("read_file") && !names.includes("bash") && !names.includes("rollback"));
    assert.match(await text(client, "read_file", { path: "from-stdio" }), /a/);
    await failsWith(revision ? -31000 : -32000, call(client, "write_file", { path: "x", content: "" }));
    await client.close();
  }
});

if (!revision) await claim("a_sandbox_that_was_made_for_a_session_goes_with_it", async () => {
  const before = holt("ls", "-q");
  const session = await http();
  await text(session, "bash", { cmd: "true" });
  assert.notEqual(holt("ls", "-q"), before);
  await session.transport.terminateSession();
  assert.equal(holt("ls", "-q"), before);
});

for (const client of opened) await client.close();
finish();
