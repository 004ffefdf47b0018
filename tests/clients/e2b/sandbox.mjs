// A sandbox's life: create, connect, info, list with filters and pages, timeouts, pause and resume with
// and without memory, auto-pause and auto-resume, snapshots, forks, network, metrics, MCP.
import assert from "node:assert/strict";
import { ALL_TRAFFIC, Sandbox as Plain, SandboxError, SandboxNotFoundError, TimeoutError } from "e2b";
import { apiUrl, call, callSandbox, claim, e2bKey, eventually, finish, keep, longMs, refused, run, sandbox, Sandbox, start, stdout }
  from "./lib.mjs";

const everything = async (paginator) => {
  const items = [];
  while (paginator.hasNext) items.push(...await paginator.nextItems());
  return items;
};
const ids = (infos) => infos.map((each) => each.sandboxId);

await claim("a_sandbox_is_created_and_killed_once", async () => {
  const box = await sandbox();
  assert.match(box.sandboxId, /^[a-z0-9]+$/);
  assert.equal(await box.isRunning(), true);
  assert.equal(await stdout(box, "echo hi"), "hi\n");
  assert.equal(await box.kill(), true);
  assert.equal(await box.kill(), false);
  assert.equal(await Sandbox.kill(box.sandboxId), false);
  assert.equal(await box.isRunning(), false);
});

await claim("defaults_of_the_sdk_and_nothing_but_the_environment_do", async () => {
  const box = keep(await Plain.create());
  const { startedAt, endAt } = await box.getInfo();
  assert.equal(Math.round((endAt - startedAt) / 1000), 300);
});

await claim("info_is_what_was_asked_for", async () => {
  const before = new Date(Date.now() - 2000);
  const box = await sandbox({ template: "base", metadata: { owner: "red", "k e&y": "v=a lüe" }, timeoutMs: 600e3 });
  const info = await box.getInfo();
  assert.equal(info.sandboxId, box.sandboxId);
  assert.ok(info.templateId.length > 0);
  assert.equal(info.name, "base");
  assert.deepEqual(info.metadata, { owner: "red", "k e&y": "v=a lüe" });
  assert.equal(info.state, "running");
  assert.ok(info.startedAt >= before && info.startedAt <= new Date(Date.now() + 2000));
  assert.equal(Math.round((info.endAt - info.startedAt) / 1000), 600);
  assert.ok(info.cpuCount >= 1 && info.memoryMB >= 1);
  assert.match(info.envdVersion, /^0\.6\.\d+$/);
  assert.deepEqual(info.lifecycle, { onTimeout: "kill", autoResume: false });
  assert.deepEqual(await Sandbox.getInfo(box.sandboxId), info);
  assert.equal((await Sandbox.getFullInfo(box.sandboxId)).sandboxId, box.sandboxId);
});

await claim("environment_of_a_sandbox_reaches_all_commands_and_survives_a_pause", async () => {
  const box = await sandbox({ envs: { A: "1", "B": "two words" } });
  const told = () => stdout(box, 'echo "$A/$B/$E2B_SANDBOX/$E2B_SANDBOX_ID"');
  assert.equal(await told(), `1/two words/true/${box.sandboxId}\n`);
  assert.equal(await stdout(box, "echo $A", { envs: { A: "2" } }), "2\n");
  assert.equal(await stdout(box, "echo $A"), "1\n");
  await box.pause();
  await box.connect({ timeoutMs: longMs });
  assert.equal(await told(), `1/two words/true/${box.sandboxId}\n`);
});

await claim("connect_reaches_the_same_sandbox_and_only_extends", async () => {
  const box = await sandbox({ timeoutMs: 1200e3 });
  await box.files.write("a", "kept");
  const end = (await box.getInfo()).endAt;
  const same = await Sandbox.connect(box.sandboxId, { timeoutMs: 60e3 });
  assert.equal(same.sandboxId, box.sandboxId);
  assert.equal(await same.files.read("a"), "kept");
  assert.deepEqual((await box.getInfo()).endAt, end);
  assert.equal(await same.connect({ timeoutMs: 2400e3 }), same);
  assert.ok((await box.getInfo()).endAt > end);
});

await claim("a_timeout_is_set_anew_and_may_shorten", async () => {
  const box = await sandbox();
  const left = async () => ((await box.getInfo()).endAt - Date.now()) / 1000;
  await box.setTimeout(900e3);
  assert.ok(await left() <= 901);
  await Sandbox.setTimeout(box.sandboxId, 7200e3);
  assert.ok(await left() > 3600);
  const refreshed = await call("POST", `/sandboxes/${box.sandboxId}/refreshes`, { duration: 3600 });
  assert.equal(refreshed.status, 204);
});

await claim("a_sandbox_ends_at_its_timeout", async () => {
  const box = await sandbox({ timeoutMs: longMs });
  await box.setTimeout(1000);
  await eventually(async () => !await box.isRunning());
  await refused(SandboxNotFoundError, box.getInfo());
  await refused(SandboxNotFoundError, run(box, "true"));
});

await claim("lists_have_filters_order_and_pages", async () => {
  const mark = { mark: `m ${process.pid}&=%` };
  const boxes = [];
  for (const n of ["1", "2", "3"]) boxes.push(await sandbox({ metadata: { ...mark, n } }));
  const made = boxes.map((each) => each.sandboxId);
  const list = (opts = {}) => everything(Sandbox.list({ ...opts, query: { metadata: mark, ...opts.query } }));
  assert.deepEqual(ids(await list()), made.toReversed());
  assert.deepEqual(ids(await list({ order: "asc" })), made);
  assert.deepEqual(ids(await list({ query: { metadata: { ...mark, n: "2" } } })), [made[1]]);
  assert.deepEqual(ids(await list({ limit: 1 })), made.toReversed());
  assert.deepEqual(ids(await list({ limit: 2, order: "asc" })), made);
  const pages = Sandbox.list({ query: { metadata: mark }, limit: 2 });
  assert.equal((await pages.nextItems()).length, 2);
  assert.equal(pages.hasNext, true);
  assert.equal(typeof pages.nextToken, "string");
  const rest = Sandbox.list({ query: { metadata: mark }, limit: 2, nextToken: pages.nextToken });
  assert.deepEqual(ids(await rest.nextItems()), [made[0]]);
  assert.equal(rest.hasNext, false);
  assert.deepEqual(ids(await list({ query: { template: "base" } })), made.toReversed());
  assert.deepEqual(await list({ query: { template: "no-such-template" } }), []);
  const { startedAt } = await boxes[1].getInfo();
  assert.deepEqual(ids(await list({ query: { startedAfter: startedAt } })), made.slice(1).toReversed());
  assert.deepEqual(await list({ query: { startedAfter: new Date(Date.now() + longMs) } }), []);
  await boxes[0].pause();
  assert.deepEqual(ids(await list({ query: { state: ["paused"] } })), [made[0]]);
  assert.deepEqual(ids(await list({ query: { state: ["running"] } })), made.slice(1).toReversed());
  assert.equal((await list({ query: { state: ["running", "paused"] } })).length, 3);
  assert.equal((await list()).length, 3);
  const old = await call("GET", `/sandboxes?metadata=${encodeURIComponent(new URLSearchParams({ n: "2" }))}`);
  assert.equal(old.status, 200);
  assert.ok(old.json.some((each) => each.sandboxID === made[1]));
});

await claim("a_paused_sandbox_keeps_its_processes", async () => {
  const box = await sandbox();
  await box.files.write("a", "kept");
  const sleeper = await start(box, "sleep 100000");
  assert.equal(await box.pause(), true);
  assert.equal(await box.pause(), false);
  assert.equal(await box.isRunning(), false);
  assert.equal((await box.getInfo()).state, "paused");
  await assert.rejects(sleeper.wait());
  assert.equal(await box.connect({ timeoutMs: longMs }), box);
  assert.equal(await box.isRunning(), true);
  assert.equal((await box.getInfo()).state, "running");
  assert.equal(await box.files.read("a"), "kept");
  assert.ok((await box.commands.list()).some((each) => each.pid === sleeper.pid));
  await run(box, `kill -0 ${sleeper.pid}`);
});

await claim("beta_pause_is_pause", async () => {
  const box = await sandbox();
  assert.equal(await box.betaPause(), true);
  assert.equal(await Sandbox.betaPause(box.sandboxId), false);
  const again = await Sandbox.connect(box.sandboxId, { timeoutMs: longMs });
  assert.equal(await Sandbox.pause(again.sandboxId), true);
  assert.equal(await again.kill(), true); // a paused one too
  await refused(SandboxNotFoundError, Sandbox.pause(box.sandboxId));
  await refused(SandboxNotFoundError, Sandbox.connect(box.sandboxId));
});

await claim("without_memory_files_stay_and_processes_go", async () => {
  const box = await sandbox();
  const boot = await stdout(box, "cat /proc/sys/kernel/random/boot_id");
  await box.files.write("a", "kept");
  const sleeper = await start(box, "sleep 100000");
  const gone = assert.rejects(sleeper.wait());
  assert.equal(await box.pause({ keepMemory: false }), true);
  await gone;
  await box.connect({ timeoutMs: longMs });
  assert.equal(await box.files.read("a"), "kept");
  assert.ok(!(await box.commands.list()).some((each) => each.pid === sleeper.pid));
  assert.notEqual(await stdout(box, "cat /proc/sys/kernel/random/boot_id"), boot);
  await box.pause();
  await box.connect({ onResume: "reboot", timeoutMs: longMs });
  assert.equal(await box.files.read("a"), "kept");
});

await claim("the_old_resume_answers_as_it_did", async () => {
  const box = await sandbox();
  const resume = () => call("POST", `/sandboxes/${box.sandboxId}/resume`, { timeout: 600 });
  assert.equal((await resume()).status, 409);
  await box.pause();
  const resumed = await resume();
  assert.equal(resumed.status, 201);
  assert.equal(resumed.json.sandboxID, box.sandboxId);
  assert.equal(await stdout(box, "echo $HOME"), "/home/user\n"); // with the token it had
});

await claim("a_timeout_may_pause_instead", async () => {
  const box = await sandbox({ lifecycle: { onTimeout: "pause" } });
  assert.deepEqual((await box.getInfo()).lifecycle, { onTimeout: "pause", autoResume: false });
  await box.files.write("a", "kept");
  await box.setTimeout(1000);
  await eventually(async () => (await box.getInfo()).state === "paused");
  assert.equal(await box.isRunning(), false); // looking does not wake it
  await box.connect({ timeoutMs: longMs });
  assert.equal(await box.files.read("a"), "kept");
});

await claim("a_call_wakes_a_sandbox_that_resumes_by_itself", async () => {
  const box = await sandbox({ lifecycle: { onTimeout: "pause", autoResume: true } });
  assert.deepEqual((await box.getInfo()).lifecycle, { onTimeout: "pause", autoResume: true });
  const sleeper = await start(box, "sleep 100000");
  await sleeper.disconnect(); // a stream that breaks makes the client ask whether the sandbox runs, which wakes it
  await box.pause();
  for (const token of [null, "wrong"]) assert.equal((await callSandbox(box, "GET", "/envs", { token })).status, 403);
  assert.equal((await box.getInfo()).state, "paused");
  assert.equal(await stdout(box, `kill -0 ${sleeper.pid} && echo alive`), "alive\n");
  assert.equal((await box.getInfo()).state, "running");
});

await claim("without_memory_nothing_resumes_by_itself", async () => {
  const bad = await call("POST", "/v2/sandboxes", { templateID: "base", autoPause: true, autoPauseMemory: false, autoResume: { enabled: true } });
  assert.deepEqual([bad.status, bad.json.code], [400, 400]);
  const lone = await call("POST", "/v2/sandboxes", { templateID: "base", autoPauseMemory: false });
  assert.equal(lone.status, 400);
  const box = await sandbox({ lifecycle: { onTimeout: { action: "pause", keepMemory: false } } });
  await box.files.write("a", "kept");
  await box.setTimeout(1000);
  await eventually(async () => (await box.getInfo()).state === "paused");
  await box.connect({ timeoutMs: longMs });
  assert.equal(await box.files.read("a"), "kept");
});

await claim("snapshots_are_templates_of_their_own", async () => {
  const box = await sandbox();
  await box.files.write("a", "1");
  const name = `snap-${process.pid}`;
  const snapshot = await box.createSnapshot({ name });
  assert.ok(snapshot.names.some((each) => each.includes(name)), `${snapshot.names}`);
  assert.equal(await box.isRunning(), true);
  await box.files.write("a", "2");
  const second = await Sandbox.createSnapshot(box.sandboxId);
  assert.notEqual(second.snapshotId, snapshot.snapshotId);
  const mine = [snapshot.snapshotId, second.snapshotId].sort();
  const listed = async (paginator) => (await everything(paginator)).map((each) => each.snapshotId).sort();
  assert.deepEqual(await listed(box.listSnapshots()), mine);
  assert.deepEqual(await listed(box.listSnapshots({ limit: 1 })), mine);
  assert.deepEqual(await listed(Sandbox.listSnapshots({ sandboxId: box.sandboxId, name })), [snapshot.snapshotId]);
  const all = await listed(Sandbox.listSnapshots());
  assert.ok(mine.every((each) => all.includes(each)));
  await box.kill(); // they outlive their source
  const [one, two] = [await sandbox({ template: snapshot.snapshotId }), await sandbox({ template: second.snapshotId })];
  assert.deepEqual([await one.files.read("a"), await two.files.read("a")], ["1", "2"]);
  await one.kill();
  await two.kill();
  for (const each of mine) assert.equal(await Sandbox.deleteSnapshot(each), true);
  assert.equal(await Sandbox.deleteSnapshot(mine[0]), false);
  await assert.rejects(Sandbox.create(mine[0]), SandboxError);
});

await claim("forks_part_ways", async () => {
  const box = await sandbox({ envs: { A: "1" } });
  await box.files.write("a", "before");
  const forks = await box.fork({ count: 3, timeoutMs: longMs });
  assert.equal(forks.length, 3);
  for (const fork of forks) keep(fork);
  assert.equal(new Set([box, ...forks].map((each) => each.sandboxId)).size, 4);
  await forks[0].files.write("a", "after");
  assert.equal(await forks[1].files.read("a"), "before");
  assert.equal(await box.files.read("a"), "before");
  assert.equal(await stdout(forks[2], "echo $A-$E2B_SANDBOX_ID"), `1-${forks[2].sandboxId}\n`);
  const [single] = await Sandbox.fork(box.sandboxId, { timeoutMs: longMs });
  assert.equal(await keep(single).files.read("a"), "before");
  for (const count of [0, 101]) {
    const { status, json } = await call("POST", `/sandboxes/${box.sandboxId}/fork`, { count });
    assert.deepEqual([status, json.code], [400, 400]);
  }
  await refused(SandboxNotFoundError, Sandbox.fork("inosuchsandbox"));
});

await claim("the_network_is_off_when_it_is_said_to_be", async () => {
  const box = await sandbox({ allowInternetAccess: false });
  assert.equal((await box.getInfo()).allowInternetAccess, false);
  const { hostname, port } = new URL(apiUrl);
  const result = await run(box, `exec 3<>/dev/tcp/${hostname}/${port} && echo reached || echo refused`, { timeoutMs: 0 });
  assert.equal(result.stdout.trim(), "refused"); // of the host not even its loopback
  const interfaces = await stdout(box, "ls /sys/class/net");
  assert.match(interfaces, /lo/);
});

await claim("the_rules_of_the_network_are_kept_and_replaced", async () => {
  const box = await sandbox({ network: { denyOut: [ALL_TRAFFIC], allowOut: ["8.8.8.8"], egressProxy: { address: "127.0.0.1:3128", username: "u", password: "secret" } } });
  const { network } = await box.getInfo();
  assert.deepEqual([network.denyOut, network.allowOut], [[ALL_TRAFFIC], ["8.8.8.8"]]);
  assert.deepEqual(network.egressProxy, { address: "127.0.0.1:3128", username: "u" });
  const { text } = await call("GET", `/sandboxes/${box.sandboxId}`);
  assert.ok(!text.includes("secret"));
  await box.updateNetwork({ denyOut: ["10.0.0.0/8"] });
  const updated = (await box.getInfo()).network;
  assert.deepEqual([updated.denyOut, updated.allowOut ?? [], updated.egressProxy], [["10.0.0.0/8"], [], undefined]);
  await Sandbox.updateNetwork(box.sandboxId, { allowInternetAccess: false });
  assert.equal((await box.getInfo()).allowInternetAccess, false);
  await refused(SandboxNotFoundError, Sandbox.updateNetwork("inosuchsandbox", {}));
});

await claim("rules_of_the_network_that_make_no_sense_are_refused", async () => {
  for (const network of [{ denyOut: ["example.com"] }, { allowOut: ["example.com"] }])
    assert.equal((await call("POST", "/v2/sandboxes", { templateID: "base", network })).status, 400, JSON.stringify(network));
  const open = await call("POST", "/sandboxes", { templateID: "base", secure: false, network: { allowPublicTraffic: false } });
  assert.equal(open.status, 400);
  const fine = await call("POST", "/v2/sandboxes", { templateID: "base", network: { denyOut: [ALL_TRAFFIC], allowOut: ["example.com"] } });
  assert.equal(fine.status, 201);
  await Sandbox.kill(fine.json.sandboxID);
});

await claim("metrics_have_figures_that_can_be", async () => {
  const box = await sandbox();
  await eventually(async () => (await box.getMetrics()).length > 0);
  const [metric] = await Sandbox.getMetrics(box.sandboxId);
  assert.ok(metric.timestamp instanceof Date);
  assert.ok(metric.cpuCount >= 1 && metric.cpuUsedPct >= 0);
  assert.ok(metric.memTotal > 0 && metric.memUsed >= 0 && metric.memUsed <= metric.memTotal);
  assert.ok(metric.diskTotal > 0 && metric.diskUsed >= 0 && metric.diskUsed <= metric.diskTotal);
  assert.deepEqual(await box.getMetrics({ start: new Date(0), end: new Date(1000) }), []);
  await refused(SandboxNotFoundError, Sandbox.getMetrics("inosuchsandbox"));
  const many = await call("GET", `/sandboxes/metrics?sandbox_ids=${box.sandboxId}`);
  assert.equal(many.status, 200);
  assert.ok(many.json.sandboxes[box.sandboxId].memTotal > 0);
});

await claim("what_waits_is_told_when_the_sandbox_is_killed", async () => {
  const box = await sandbox();
  const sleeper = await start(box, "sleep 100000");
  const told = refused(TimeoutError, sleeper.wait(), /killed|end of life/);
  await box.kill();
  await told;
});

await claim("where_mcp_is_and_its_token", async () => {
  const box = await sandbox();
  assert.match(box.getMcpUrl(), new RegExp(`50005-${box.sandboxId}\\..*/mcp$`));
  await box.files.write("/etc/mcp-gateway/.token", "secret", { user: "root" });
  assert.equal(await box.getMcpToken(), "secret");
});

await claim("another_client_of_the_same_process_has_its_own_options", async () => {
  const box = await sandbox();
  const info = await Plain.getInfo(box.sandboxId, { apiKey: e2bKey });
  assert.equal(info.sandboxId, box.sandboxId);
});

finish();
