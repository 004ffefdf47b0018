// Every method of every service, by the official client over the unix socket.
// usage: node methods.mjs SOCKET TREE    (TREE: a root filesystem with a shell, to import)
import assert from "node:assert/strict";
import { Code } from "@connectrpc/connect";
import { timestampDate } from "@bufbuild/protobuf/wkt";
import { all, claim, enums, eventually, finish, neglected, overUnix, refused, text } from "./lib.mjs";

const [socketPath, tree] = process.argv.slice(2);
const holt = overUnix(socketPath);
const { Outcome, ProcessState, Readiness, Restart, Stream } = Object.fromEntries(
  Object.entries(enums).map(([name, desc]) =>
    [name, Object.fromEntries(desc.values.map((value) => [value.localName, value.number]))]));

const { sandbox } = await holt.sandbox.create({
  name: "official", labels: { team: "red" }, limits: { memoryBytes: 256n << 20n, cpuMillis: 1500 },
});
const sandboxId = sandbox.id;
const start = async (script, spec = {}) => (await holt.process.start({
  sandboxId, process: { args: ["sh", "-c", script], ...spec },
})).process;

await claim("the_host_is_healthy", async () => {
  const health = await holt.host.health({});
  assert.equal(health.status, "ok");
  assert.equal(health.sandboxes, 1);
  assert.equal(typeof health.uptimeMs, "bigint");
  assert.ok(health.storage.availableBytes > 0n);
});

await claim("a_sandbox_is_what_was_asked_for", async () => {
  const { sandbox: got } = await holt.sandbox.get({ sandboxId: "official" });
  assert.equal(got.id, sandboxId);
  assert.equal(got.state, "active");
  assert.deepEqual(got.labels, { team: "red" });
  assert.equal(got.limits.memoryBytes, 256n << 20n);
  assert.ok(Math.abs(timestampDate(got.createdAt) - Date.now()) < 3600e3);
  const { sandboxes } = await holt.sandbox.list({ labels: { team: "red" } });
  assert.deepEqual(sandboxes.map((each) => each.id), [sandboxId]);
  assert.equal((await holt.sandbox.list({ labels: { team: "blue" } })).sandboxes.length, 0);
});

await claim("states_change", async () => {
  assert.equal((await holt.sandbox.pause({ sandboxId })).sandbox.state, "paused");
  assert.equal((await holt.sandbox.resume({ sandboxId })).sandbox.state, "active");
  await holt.sandbox.pause({ sandboxId });
  const resumed = await holt.sandbox.resume({ sandboxId, process: { args: ["sh", "-c", "exit 7"] } });
  assert.equal(resumed.sandbox.state, "active");
  assert.equal((await holt.process.wait({ sandboxId, processId: resumed.process.id })).ended.exitCode, 7);
  assert.equal((await holt.sandbox.stop({ sandboxId })).sandbox.state, "stopped");
  assert.equal((await holt.sandbox.start({ sandboxId })).sandbox.state, "active");
});

await claim("files_go_in_and_out", async () => {
  const bytes = Buffer.from([...Array(70000).keys()].map((each) => each % 251));
  const written = await holt.file.write((async function* () {
    yield { sandboxId, path: "files/a", parents: true, atomic: true, mode: 0o640, data: bytes.subarray(0, 10) };
    yield { data: bytes.subarray(10, 40000) };
    yield { data: bytes.subarray(40000) };
  })());
  assert.equal(written.entry.path, "/workspace/files/a");
  assert.equal(written.entry.size, 70000n);
  assert.equal(written.entry.mode, 0o640);
  const messages = await all(holt.file.read({ sandboxId, path: "files/a" }));
  assert.equal(messages[0].entry.type, "file");
  assert.deepEqual(Buffer.concat(messages.map((each) => each.data)), bytes);
  const { entry } = await holt.file.stat({ sandboxId, path: "/workspace/files/a" });
  assert.equal(entry.owner, "root");
  assert.ok(Math.abs(timestampDate(entry.modifiedTime) - Date.now()) < 3600e3);
  await holt.file.makeDir({ sandboxId, path: "files/d/e", parents: true });
  await holt.file.move({ sandboxId, path: "files/a", to: "files/d/b" });
  const { entries } = await holt.file.list({ sandboxId, path: "files", depth: 9 });
  assert.deepEqual(entries.map((each) => each.path.replace("/workspace/files/", "")), ["d", "d/b", "d/e"]);
  const pulled = await all(holt.file.pull({ sandboxId, path: "files/d" }));
  assert.deepEqual(pulled.filter((each) => each.entry).map((each) => each.entry.path), ["", "b", "e"]);
  await holt.file.push((async function* () {
    yield { sandboxId, path: "files" };
    yield { entry: { path: "copy", type: "file", mode: 0o600 }, data: bytes };
    yield { entry: { path: "link", type: "link", target: "copy" } };
  })());
  assert.equal((await holt.file.stat({ sandboxId, path: "files/link", follow: true })).entry.size, 70000n);
  const gone = new AbortController();
  const changes = holt.file.watch({ sandboxId, path: "files" }, { signal: gone.signal })[Symbol.asyncIterator]();
  assert.equal((await changes.next()).value.type, "");
  await holt.file.remove({ sandboxId, path: "files/copy" });
  const { value: change } = await changes.next();
  assert.deepEqual([change.type, change.path], ["remove", "copy"]);
  gone.abort();
  await assert.rejects(changes.next());
  await holt.file.remove({ sandboxId, path: "files", recursive: true });
  await refused(Code.NotFound, holt.file.stat({ sandboxId, path: "files" }));
});

await claim("a_run_streams_bytes_and_its_outcome", async () => {
  const messages = await all(holt.sandbox.run({
    process: { args: ["sh", "-c", "printf '\\303\\251\\000\\377'; echo no >&2; exit 7"], env: { A: "1" } },
  }));
  assert.equal(messages[0].event.case, "started");
  const out = Buffer.concat(messages.filter((each) => each.event.case === "stdout").map((each) => each.event.value));
  assert.deepEqual(out, Buffer.from([0xc3, 0xa9, 0, 0xff]));
  assert.equal(text(messages, "stderr"), "no\n");
  const { ended } = { ended: messages.at(-1).event.value };
  assert.equal(ended.outcome, Outcome.exited);
  assert.equal(ended.exitCode, 7);
  assert.equal(ended.stdoutBytes, 4n);
});

await claim("an_exec_streams_and_joins_by_its_key", async () => {
  const request = { sandboxId, process: { args: ["sh", "-c", "echo $A; kill -9 $$"], env: { A: "hi" } }, idempotencyKey: "k" };
  const first = await all(holt.process.exec(request)), second = await all(holt.process.exec(request));
  for (const messages of [first, second]) {
    assert.equal(text(messages, "stdout"), "hi\n");
    assert.equal(messages.at(-1).event.value.outcome, Outcome.signaled);
    assert.equal(messages.at(-1).event.value.signal, 9);
  }
  assert.equal(second[0].event.value.joined, true);
  assert.equal(second[0].event.value.processId, first[0].event.value.processId);
});

await claim("a_process_is_started_fed_and_waited_for", async () => {
  const process = await start("cat; exit 3", { stdin: true, tag: "cat" });
  assert.equal(process.state, ProcessState.running);
  await holt.process.sendInput({ sandboxId, processId: process.id, data: Buffer.from("fed\xff", "latin1"), eof: true });
  const { ended } = await holt.process.wait({ sandboxId, processId: process.id });
  assert.equal(ended.exitCode, 3);
  const got = (await holt.process.get({ sandboxId, processId: process.id })).process;
  assert.equal(got.state, ProcessState.ended);
  assert.equal(got.stdout.total, 4n);
  assert.ok(timestampDate(got.endedAt) >= timestampDate(got.startedAt));
  assert.deepEqual((await holt.process.list({ sandboxId, tag: "cat" })).processes.map((each) => each.id), [process.id]);
});

await claim("output_is_read_again_from_any_offset", async () => {
  const process = await start("printf 0123456789; printf abc >&2");
  await holt.process.wait({ sandboxId, processId: process.id });
  const from = await all(holt.process.attach({ sandboxId, processId: process.id, stdoutOffset: 4n, stderrOffset: 1n }));
  assert.equal(text(from, "stdout"), "456789");
  assert.equal(text(from, "stderr"), "bc");
  assert.equal(from.find((each) => each.event.case === "stdout").offset, 4n);
  const last = await all(holt.process.attach({ sandboxId, processId: process.id, replayBytes: 2n }));
  assert.equal(text(last, "stdout"), "89");
  const none = await all(holt.process.attach({ sandboxId, processId: process.id, replayBytes: 0n }));
  assert.equal(text(none, "stdout"), "");
});

await claim("what_is_not_kept_is_told_as_a_gap", async () => {
  const process = await start("head -c 40000000 /dev/zero");
  await holt.process.wait({ sandboxId, processId: process.id });
  const messages = await all(holt.process.attach({ sandboxId, processId: process.id }));
  const gap = messages.find((each) => each.event.case === "gap").event.value;
  assert.equal(gap.stream, Stream.stdout);
  const bytes = messages.filter((each) => each.event.case === "stdout").reduce((sum, each) => sum + each.event.value.length, 0);
  assert.equal(BigInt(bytes) + gap.missing, 40000000n);
});

await claim("a_signal_and_a_new_size_arrive", async () => {
  const process = await start("trap 'stty size; exit' WINCH; while :; do sleep 0.05; done", { terminal: { rows: 10, columns: 20 } });
  const out = async () => text(await all(holt.process.attach({ sandboxId, processId: process.id })), "stdout");
  await eventually(async () => {
    await holt.process.resize({ sandboxId, processId: process.id, size: { rows: 33, columns: 44 } }).catch(() => {});
    await holt.process.resize({ sandboxId, processId: process.id, size: { rows: 34, columns: 44 } }).catch(() => {});
    return / ?3[34] 44/.test(await out());
  });
  const other = await start("exec sleep 1000");
  await holt.process.signal({ sandboxId, processId: other.id, signal: 15, tree: true });
  assert.equal((await holt.process.wait({ sandboxId, processId: other.id })).ended.signal, 15);
  assert.equal((await holt.process.wait({ sandboxId, processId: (await start("sleep 1000")).id, timeoutMs: 1n })).timedOut, true);
});

await claim("a_service_and_a_forward_have_addresses", async () => {
  const { process, readiness } = await holt.process.launch({
    sandboxId, process: { args: ["python3", "-m", "http.server", "8000"] }, port: 8000, restart: Restart.on_failure,
    ready: { httpPath: "/", timeoutMs: 60000n },
  });
  assert.equal(readiness, Readiness.ready);
  assert.equal(process.restart, Restart.on_failure);
  assert.equal((await fetch(`http://${process.address}/`)).status, 200);
  const over = new AbortController();
  for await (const forward of holt.port.forward({ sandboxId, port: 8000 }, { signal: over.signal })) {
    assert.equal((await fetch(`http://${forward.address}/`)).status, 200);
    const { ports } = await holt.port.list({ sandboxId });
    assert.ok(ports.some((each) => each.address === forward.address && each.port === 8000));
    break; // leaving the loop cancels the call
  }
  over.abort();
  await eventually(async () => (await holt.port.list({})).ports.length === 1);
  const preview = await holt.port.preview({ sandboxId, port: 8000 });
  assert.match(preview.url, /^http:\/\/8000-sb[0-9a-f]+\.localhost:\d+\//);
});

await claim("shells_remember", async () => {
  assert.equal((await holt.shell.open({ sandboxId, name: "work" })).shell.name, "work");
  await all(holt.shell.run({ sandboxId, name: "work", command: "cd /tmp; A=1" }));
  assert.equal((await holt.shell.get({ sandboxId, name: "work" })).shell.kind, "bash");
  await refused(Code.NotFound, holt.shell.get({ sandboxId, name: "other" }));
  const messages = await all(holt.shell.run({ sandboxId, name: "work", command: "echo $A $PWD; false" }));
  assert.equal(text(messages, "stdout"), "1 /tmp\n");
  assert.equal(messages.at(-1).event.value.exitCode, 1);
  assert.deepEqual((await holt.shell.list({ sandboxId })).shells.map((each) => each.name), ["work"]);
  await holt.shell.remove({ sandboxId, name: "work" });
  assert.equal((await holt.shell.list({ sandboxId })).shells.length, 0);
});

await claim("tools_are_listed_and_called", async () => {
  const { tools } = await holt.tool.list({});
  assert.ok(tools.length >= 27);
  const bash = tools.find((each) => each.name === "bash");
  assert.deepEqual(bash.inputSchema.required, ["cmd"]);
  assert.deepEqual([bash.tier, bash.readOnly, bash.openWorld], [2, false, true]);
  const call = { sandboxId, tool: "bash", params: { cmd: "seq 100000; exit 3" }, toolCallId: "once", maxOutputTokens: 100n };
  const result = await holt.tool.execute(call);
  assert.deepEqual([result.exitCode, result.tier, result.repeatedCall], [3, 2, false]);
  assert.ok(result.truncated.total > 588000n && result.truncated.shown < 1000n);
  const { text: rest, total } = await holt.tool.readOutput({ sandboxId, handle: result.truncated.handle, offset: 2n, limit: 4n });
  assert.deepEqual([rest, total], ["2\n3\n", result.truncated.total]);
  const events = (await all(holt.tool.executeStream(call))).map((each) => each.event);
  assert.equal(events.at(-1).case, "result");
  assert.equal(events.at(-1).value.repeatedCall, true);
  assert.deepEqual(events.at(-1).value.content, result.content);
  const other = (await all(holt.tool.executeStream({ ...call, toolCallId: "", params: { cmd: "echo said" } })))
    .map((each) => each.event);
  assert.match(other.filter((each) => each.case === "progress").map((each) => each.value.content).join(""), /said/);
  await refused(Code.NotFound, holt.tool.execute({ sandboxId, tool: "bsh" }));
});

await claim("turns_are_rolled_back_and_compared", async () => {
  const write = (words) => all(holt.process.exec({ sandboxId, process: { args: ["sh", "-c", `echo ${words} > /workspace/a`] } }));
  await write("1");
  const { snapshot } = await holt.snapshot.turnComplete({ sandboxId });
  assert.equal(snapshot.turn, 1);
  await write("2");
  const [change] = await all(holt.snapshot.diff({ sandboxId, lines: true, patch: true }));
  assert.equal(change.kind, "modified");
  assert.equal(change.path, "/workspace/a");
  assert.equal(change.addedLines, 1n);
  assert.match(Buffer.from(change.patch).toString(), /^\+2$/m);
  assert.equal((await holt.snapshot.create({ sandboxId, name: "two" })).snapshot.parent, "turn-0001");
  assert.equal((await holt.snapshot.rollback({ sandboxId, snapshot: "turn-0001" })).sandbox.base, "turn-0001");
  const { snapshots, base } = await holt.snapshot.list({ sandboxId });
  assert.deepEqual(snapshots.map((each) => each.name), ["turn-0001", "two"]);
  assert.equal(base, "turn-0001");
  assert.equal((await holt.snapshot.update({ sandboxId, snapshot: "two", note: "a note" })).snapshot.note, "a note");
  await holt.snapshot.remove({ sandboxId, snapshot: "two" });
  const { sandbox: changed } = await holt.sandbox.update({ sandboxId, labels: { tier: "2" }, limits: { pids: 500 } });
  assert.deepEqual([changed.labels, changed.limits.pids], [{ team: "red", tier: "2" }, 500]);
  const { sandboxes } = await holt.sandbox.fork({ sandboxId, count: 2 });
  for (const fork of sandboxes) await holt.sandbox.destroy({ sandboxId: fork.id });
});

await claim("templates_come_and_go", async () => {
  const messages = await all(holt.template.import({ name: "tree", path: tree }));
  const template = messages.at(-1).event.value;
  assert.equal(template.name, "tree");
  assert.ok(template.files > 0n);
  assert.equal((await holt.template.commit({ sandboxId, name: "kept" })).template.name, "kept");
  const names = (await holt.template.list({})).templates.map((each) => each.name);
  for (const name of ["host", "tree", "kept"]) assert.ok(names.includes(name), `${name} in ${names}`);
  assert.deepEqual((await holt.template.list({ name: "kept" })).templates.map((each) => each.name), ["kept"]);
  const owners = (await holt.template.list({ all: true })).templates.map((each) => each.owner);
  assert.deepEqual([...new Set(owners)], [""]);
  assert.equal((await holt.template.share({ name: "kept", owners: ["ann"] })).template.name, "kept");
  assert.equal((await holt.template.setRuntime({ name: "kept", runtimeMin: "native" })).template.name, "kept");
  const { templates: unused, freedBytes } = await holt.template.prune({ all: true, dryRun: true });
  assert.ok(unused.some((each) => each.name === "tree") && freedBytes > 0n);
  assert.deepEqual((await holt.template.prune({})).templates, []); // none is an image
  for (const name of ["tree", "kept"]) await holt.template.remove({ name });
});

await claim("volumes_are_shared", async () => {
  const { volume } = await holt.volume.create({ name: "official" });
  await refused(Code.AlreadyExists, holt.volume.create({ name: "official" }));
  assert.deepEqual((await holt.volume.list({})).volumes.map((each) => [each.id, each.name]), [[volume.id, "official"]]);
  const { sandbox: one } = await holt.sandbox.create({ volumes: [{ volume: "official", path: "/mnt//v/" }] });
  assert.deepEqual(one.volumes.map((each) => [each.volume, each.path]), [[volume.id, "/mnt/v"]]);
  await refused(Code.FailedPrecondition, holt.volume.remove({ volume: "official" }));
  assert.equal((await holt.volume.share({ volume: "official", public: true })).volume.id, volume.id);
  await holt.sandbox.destroy({ sandboxId: one.id });
  await refused(Code.NotFound, holt.sandbox.create({ volumes: [{ volume: "nobody's", path: "/mnt/v" }] }));
  await refused(Code.InvalidArgument, holt.sandbox.create({ volumes: [{ volume: volume.id, path: "/proc" }] }));
  await holt.volume.remove({ volume: volume.id });
  await refused(Code.NotFound, holt.volume.remove({ volume: volume.id }));
  await refused(Code.NotFound, holt.volume.adopt({ volume: volume.id, name: "official" })); // it has no files
});

await claim("secrets_are_kept_without_their_values", async () => {
  const request = { name: "official", value: "the-value-of-it", hosts: ["api.example.com"] };
  const { secret } = await holt.secret.set(request);
  assert.deepEqual([secret.name, secret.hosts, secret.place, secret.env], ["official", ["api.example.com:443"], "header", "OFFICIAL"]);
  await refused(Code.InvalidArgument, holt.secret.set({ ...request, hosts: [] }));
  await refused(Code.InvalidArgument, holt.secret.set({ ...request, hosts: [], hostKeys: ["ssh-ed25519 AAAA"] }));
  assert.equal((await holt.secret.rotate({ secret: "official", value: "another" })).secret.id, secret.id);
  assert.deepEqual((await holt.secret.list({})).secrets.map((each) => each.id), [secret.id]);
  await refused(Code.InvalidArgument, holt.sandbox.create({ secrets: ["official"] })); // its network reaches no host
  await holt.secret.remove({ secret: secret.id });
  await refused(Code.NotFound, holt.secret.rotate({ secret: "official", value: "another" }));
});

await claim("backups_are_made_and_restored", async () => {
  const { backup } = await holt.backup.create({ sandboxId });
  assert.equal(backup.sandboxId, sandboxId);
  assert.deepEqual((await holt.backup.list({ sandboxId })).backups.map((each) => each.name), [backup.name]);
  const { sandbox: restored } = await holt.backup.restore({ name: backup.name, sandboxName: "restored" });
  assert.equal((await holt.sandbox.pause({ sandboxId: restored.id, deep: true })).sandbox.state, "deep-paused");
  await refused(Code.FailedPrecondition, holt.backup.create({ sandboxId: restored.id }));
  assert.equal((await holt.sandbox.resume({ sandboxId: restored.id })).sandbox.state, "active");
  await holt.sandbox.destroy({ sandboxId: restored.id });
  await holt.backup.remove({ name: backup.name });
  await refused(Code.NotFound, holt.backup.remove({ name: backup.name }));
  assert.ok((await holt.backup.collect({})).objects > 0n);
});

await claim("agent_types_are_listed_and_used", async () => {
  const names = (await holt.agent.list({})).types.map((each) => each.name);
  assert.ok(names.includes("shell") && names.includes("claude-code"), names.join());
  assert.equal((await holt.agent.get({ name: "shell" })).type.name, "shell");
  await refused(Code.NotFound, holt.agent.get({ name: "none" }));
  const { sandbox: one, agent } = await holt.sandbox.create({ type: "shell" });
  assert.deepEqual([one.labels.agent, agent.type], ["shell", "shell"]);
  await holt.sandbox.destroy({ sandboxId: one.id });
});

await claim("templates_are_built_from_dockerfiles", async () => {
  const messages = await all(holt.template.build({ name: "built", dockerfile: "FROM host\nRUN echo $WORD >/built", args: { WORD: "x" } }));
  assert.equal(messages.at(-1).template.name, "built");
  assert.ok(messages.some((each) => each.lines.some((line) => line.includes("echo"))));
  await refused(Code.InvalidArgument, all(holt.template.build({ name: "built", dockerfile: "NONE" })));
  await holt.template.remove({ name: "built" });
});

await claim("templates_are_pushed_to_allowed_registries", async () => {
  await refused(Code.PermissionDenied, all(holt.template.push({ name: "host", reference: "other.example/image:1" })));
  await refused(Code.NotFound, all(holt.template.push({ name: "absent", reference: "other.example/image:1" })));
});

await claim("logins_to_registries_are_checked", async () => {
  const request = { registry: "other.example", username: "ann", password: "x" };
  await refused(Code.PermissionDenied, holt.registry.login(request));
  await refused(Code.InvalidArgument, holt.registry.login({ ...request, registry: "No Registry" }));
  assert.deepEqual((await holt.registry.list({})).logins, []);
  await refused(Code.NotFound, holt.registry.logout({ registry: "other.example" }));
});

await claim("images_are_pulled_from_allowed_registries", async () => {
  await refused(Code.PermissionDenied, all(holt.template.pull({ reference: "other.example/image:1" })));
  await refused(Code.InvalidArgument, all(holt.template.pull({ reference: "Not An Image" })));
});

await claim("codebases_have_versions", async () => {
  await holt.volume.create({ name: "sources" });
  const { codebase } = await holt.codebase.add({ name: "official", source: "sources" });
  await refused(Code.AlreadyExists, holt.codebase.add({ name: "official", source: "sources" }));
  assert.deepEqual((await holt.codebase.list({})).codebases.map((each) => [each.id, each.version]), [[codebase.id, 0]]);
  const { sandbox: one } = await holt.sandbox.create({ codebase: { codebase: "official", path: "/code" } });
  assert.deepEqual([one.codebase.codebase, one.codebase.path], [codebase.id, "/code"]);
  await refused(Code.InvalidArgument, holt.codebase.commit({ sandboxId: one.id })); // no changes
  await all(holt.process.exec({ sandboxId: one.id, process: { args: ["touch", "/code/new"] } }));
  assert.equal((await holt.codebase.commit({ sandboxId: one.id, message: "new" })).version.version, 1);
  assert.deepEqual((await holt.codebase.log({ codebase: codebase.id })).versions.map((each) => each.message), ["new", ""]);
  await refused(Code.InvalidArgument, holt.codebase.apply({ codebase: "official" })); // it came from a volume
  await refused(Code.InvalidArgument, holt.codebase.branch({ codebase: "official", branch: "work" })); // nor from git
  assert.deepEqual((await holt.codebase.rebase({ sandboxId: one.id })).conflicts, []);
  await refused(Code.InvalidArgument, holt.codebase.merge({ sandboxId: one.id, fromSandboxId: one.id }));
  await refused(Code.InvalidArgument, holt.codebase.discard({ sandboxId: one.id, path: "new" })); // it was committed
  await holt.codebase.discard({ sandboxId: one.id });
  await refused(Code.FailedPrecondition, holt.codebase.remove({ codebase: "official" }));
  await holt.sandbox.destroy({ sandboxId: one.id });
  const { sandbox: safe } = await holt.sandbox.create({ codebase: { codebase: "official" }, permissions: { preset: "agent-safe" } });
  const sandboxId = safe.id;
  assert.equal(safe.permissions.preset, "agent-safe");
  assert.equal((await holt.permission.why({ sandboxId, path: "/workspace/.env" })).level, "none");
  const write = { sandboxId, path: "new", operation: "write" };
  assert.deepEqual((await holt.permission.test(write)).error, "EACCES");
  const { change } = await holt.permission.add({ sandboxId, rules: ["/new=write"] });
  assert.equal(change.permissions.generation, 2n);
  assert.equal((await holt.permission.test(write)).allowed, true);
  await refused(Code.NotFound, holt.permission.remove({ sandboxId, rules: ["/old=write"] }));
  await holt.permission.remove({ sandboxId, rules: ["/new=write"] });
  await refused(Code.InvalidArgument, holt.permission.set({ sandboxId, rules: ["/a[=read"] }));
  await holt.permission.set({ sandboxId, preset: "read-only", revoke: true });
  assert.deepEqual((await holt.permission.list({ sandboxId })).permissions.rules, ["/**=read"]);
  assert.deepEqual((await holt.permission.tree({ sandboxId })).entries.map((each) => [each.path, each.level]), [["/new", "read"]]);
  await holt.sandbox.destroy({ sandboxId });
  await holt.codebase.remove({ codebase: "official" });
  await holt.volume.remove({ volume: "sources" });
});

await claim("tokens_come_and_go", async () => {
  const { token, secret } = await holt.token.create({ label: "node", readOnly: true, ttlMs: 60000n });
  assert.match(secret, /^holt_[0-9a-f]{64}$/);
  assert.ok(timestampDate(token.expiresAt) > timestampDate(token.createdAt));
  const listed = async () => (await holt.token.list({})).tokens.map((each) => each.id);
  assert.ok((await listed()).includes(token.id));
  await holt.token.remove({ id: token.id });
  assert.ok(!(await listed()).includes(token.id));
  await refused(Code.NotFound, holt.token.remove({ id: token.id }));
});

await claim("logins_to_the_console_are_made_and_ended", async () => {
  const { code, expiresAt } = await holt.console.createLogin({});
  assert.match(code, /^[0-9a-f]{64}$/);
  assert.ok(timestampDate(expiresAt) > new Date());
  assert.ok(Array.isArray((await holt.console.listSessions({})).sessions));
  await refused(Code.NotFound, holt.console.revokeSession({ id: "s0000000" }));
});

await claim("networks_have_policies", async () => {
  const { network } = await holt.network.get({ sandboxId });
  assert.equal(network.mode, "none");
  assert.deepEqual(network.layers.map((each) => each.source), ["holt.conf", "sandbox"]);
  assert.equal((await holt.network.set({ sandboxId, policy: { mode: "none" } })).network.mode, "none");
  await refused(Code.InvalidArgument, holt.network.set({ sandboxId, allow: ["a*.test"] }));
  assert.deepEqual((await holt.network.log({ sandboxId })).connections, []);
  const { allowed, rule } = await holt.network.test({ sandboxId, target: "https://a.test" });
  assert.ok(!allowed && rule.includes("mode none"), rule);
  assert.equal((await holt.network.getTemplate({ template: "host" })).network.mode, "any");
  const { network: narrow } = await holt.network.setTemplate({ template: "host", policy: { allow: ["a.test"] } });
  assert.deepEqual(narrow.layers.map((each) => [each.source, each.mode, each.allow]), [["template", "allow", ["a.test"]]]);
  assert.equal((await holt.network.setTemplate({ template: "host" })).network.mode, "any");
  await refused(Code.PermissionDenied, all(holt.network.learn({ sandboxId }))); // net.mode of this daemon is none
});

await claim("models_are_listed_with_their_use", async () => {
  assert.deepEqual((await holt.model.list({})).models, []); // this daemon has none
  assert.deepEqual((await holt.model.usage({ days: 7 })).rows, []);
  await refused(Code.InvalidArgument, holt.model.usage({ days: 1000 }));
});

await claim("owners_have_ceilings", async () => {
  const { owner } = await holt.owner.set({ owner: "ann", settings: [{ name: "sandboxes", value: "3" }] });
  assert.ok(owner.ceilings.some((each) => each.name === "sandboxes" && each.value === "3" && each.source === "command"));
  assert.ok((await holt.owner.list({})).owners.some((each) => each.name === "ann"));
  assert.equal((await holt.owner.get({})).owner.name, "root");
  await holt.owner.remove({ owner: "ann" });
  await refused(Code.NotFound, holt.owner.remove({ owner: "ann" }));
});

await claim("what_the_host_can_do_is_told", async () => {
  const { capabilities, storage, runtimes } = await holt.host.capabilities({});
  assert.equal(capabilities.snapshots && capabilities.rollback && capabilities.pause && capabilities.launch, true);
  assert.ok(capabilities.maxSandboxes > 0);
  assert.ok(["btrfs", "zfs", "dir"].includes(storage), storage);
  assert.ok(runtimes.some((each) => each.name === "native" && each.works));
  assert.match((await holt.host.metrics({})).text, /^# TYPE holt_/m);
  assert.equal((await holt.host.history({ seconds: 60 })).intervalMs, 5000);
  assert.ok((await holt.host.doctor({})).checks.some((each) => each.check === "kernel" && each.verdict));
});

await claim("use_is_told_once_and_again", async () => {
  const [once] = (await holt.sandbox.stats({ sandboxIds: ["official"] })).stats;
  assert.equal(once.sandboxId, sandboxId);
  assert.equal(once.memoryLimitBytes, 256n << 20n);
  assert.equal(once.cpuMillis, undefined);
  const times = [];
  for await (const { stats } of holt.sandbox.watchStats({ sandboxIds: [sandboxId], intervalMs: 100n })) {
    times.push(stats[0].cpuUs);
    if (times.length === 2) break; // which ends the call
  }
  assert.ok(times[1] >= times[0]);
});

await claim("events_come_in_order_with_what_they_say", async () => {
  const messages = await all(holt.event.watch({ since: 0n, sandboxId, types: ["sandbox.*"], noFollow: true }));
  const events = messages.filter((each) => each.message.case === "event").map((each) => each.message.value);
  assert.ok(events.length > 1);
  assert.ok(events.every((each) => each.sandboxId === sandboxId && each.type.startsWith("sandbox.")));
  assert.ok(events.every((each, i) => i === 0 || each.seq > events[i - 1].seq));
  assert.equal(typeof events[0].fields, "object");
  assert.ok(timestampDate(events[0].time) <= new Date());
});

await claim("the_record_is_whole", async () => {
  const messages = await all(holt.host.audit({ sandboxId }));
  assert.equal(messages.at(-1).event.case, "verdict");
  assert.equal(messages.at(-1).event.value.inOrder, true);
  assert.equal(JSON.parse(messages[0].event.value).sandbox, sandboxId);
});

await claim("a_sandbox_is_destroyed_once", async () => {
  await holt.sandbox.destroy({ sandboxId });
  await refused(Code.NotFound, holt.sandbox.get({ sandboxId }));
});

await claim("every_method_of_every_service_was_called", async () => assert.deepEqual(neglected(), []));
finish();
