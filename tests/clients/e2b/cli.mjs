// The commands of E2B's own command line, which brings an older SDK: v1 of create and connect.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { call, claim, e2bKey, eventually, finish, keep, run, Sandbox, sandbox, stdout, Template } from "./lib.mjs";

const program = createRequire(import.meta.url).resolve("@e2b/cli/dist/index.js");
const home = mkdtempSync(join(tmpdir(), "holt-e2b-cli."));
process.on("exit", () => rmSync(home, { recursive: true }));
const environment = {
  ...process.env, HOME: home, NO_UPDATE_NOTIFIER: "1", NO_COLOR: "1", FORCE_COLOR: "0", TERM: "dumb",
  E2B_API_KEY: e2bKey,
};

// What a command prints and how it ends. `input` is its stdin, or nothing.
function e2b(args, { input, cwd = home, command = [process.execPath, program, ...args] } = {}) {
  return new Promise((resolve, reject) => {
    const child = spawn(command[0], command.slice(1), { env: environment, cwd, stdio: [input === undefined ? "ignore" : "pipe", "pipe", "pipe"] });
    const result = { out: "", err: "" };
    child.stdout.setEncoding("utf8").on("data", (part) => { result.out += part; });
    child.stderr.setEncoding("utf8").on("data", (part) => { result.err += part; });
    child.on("error", reject).on("close", (status) => resolve({ ...result, status }));
    if (typeof input === "function") input(child, result);
    else if (input !== undefined) child.stdin.end(input);
  });
}

async function works(...args) {
  const result = await e2b(args);
  assert.equal(result.status, 0, `${args.join(" ")}: ${result.out}${result.err}`);
  return result.out;
}

const json = async (...args) => {
  const out = await works(...args);
  return JSON.parse(out.slice(out.search(/[[{]/)));
};

await claim("sandboxes_are_created_listed_shown_and_killed", async () => {
  const id = (await works("sandbox", "create", "-d", "base")).trim();
  keep({ sandboxId: id });
  assert.ok((await json("sandbox", "list", "-f", "json")).some((each) => each.sandboxId === id || each.sandboxID === id));
  assert.ok((await works("sandbox", "list")).includes(id));
  assert.ok(JSON.stringify(await json("sandbox", "info", id, "-f", "json")).includes(id));
  await works("sandbox", "pause", id);
  assert.equal((await Sandbox.getInfo(id)).state, "paused");
  assert.ok((await works("sandbox", "list", "-s", "paused")).includes(id));
  await works("sandbox", "resume", id);
  assert.equal((await Sandbox.getInfo(id)).state, "running");
  await works("sandbox", "kill", id);
  assert.equal(await Sandbox.kill(id), false);
});

await claim("options_of_create_and_list_arrive", async () => {
  const id = (await works("sandbox", "create", "-d", "--timeout", "900", "--lifecycle.ontimeout", "pause", "--lifecycle.autoresume", "base")).trim();
  keep({ sandboxId: id });
  assert.deepEqual((await Sandbox.getInfo(id)).lifecycle, { onTimeout: "pause", autoResume: true });
  const marked = await sandbox({ metadata: { cli: String(process.pid) } });
  const listed = await works("sandbox", "list", "-m", `cli=${process.pid}`, "-t", "base", "-o", "asc", "-l", "5", "-f", "json");
  assert.ok(listed.includes(marked.sandboxId) && !listed.includes(id));
  await works("sandbox", "kill", "-a", "-m", `cli=${process.pid}`);
  assert.equal(await marked.isRunning(), false);
});

await claim("exec_has_output_status_input_and_user", async () => {
  const box = await sandbox();
  const result = await e2b(["sandbox", "exec", box.sandboxId, "echo out; echo err >&2; exit 3"]);
  assert.deepEqual([result.out, result.status], ["out\n", 3]);
  assert.match(result.err, /^err\n/); // and what it says itself
  const user = await e2b(["sandbox", "exec", "-u", "root", "-c", "/tmp", "-e", "A=b c", box.sandboxId, "id -u; pwd; echo $A"]);
  assert.deepEqual([user.out, user.status], ["0\n/tmp\nb c\n", 0]);
  const piped = await e2b(["sandbox", "exec", box.sandboxId, "wc -c"], { input: "x".repeat(100000) });
  assert.equal(piped.out.trim(), "100000");
  await works("sandbox", "exec", "-b", box.sandboxId, "sleep 12345");
  assert.ok((await box.commands.list()).some((each) => each.args.join(" ").includes("sleep 12345")));
});

await claim("metrics_and_logs_are_shown", async () => {
  const box = await sandbox();
  await eventually(async () => (await box.getMetrics()).length > 0);
  assert.match(await works("sandbox", "metrics", box.sandboxId, "--format", "json"), /cpu/i);
  await run(box, "echo logged");
  await works("sandbox", "logs", box.sandboxId, "--format", "json");
  const logs = await call("GET", `/sandboxes/${box.sandboxId}/logs`);
  assert.ok(Array.isArray(logs.json.logs) && Array.isArray(logs.json.logEntries));
  assert.ok(Array.isArray((await call("GET", `/v2/sandboxes/${box.sandboxId}/logs`)).json.logs));
});

await claim("snapshots_are_created_listed_and_deleted", async () => {
  const box = await sandbox();
  const name = `cli-${process.pid}`;
  await works("sandbox", "snapshot", "create", box.sandboxId, "-n", name);
  const [snapshot] = await box.listSnapshots().nextItems();
  const listed = await works("sandbox", "snapshot", "list", box.sandboxId, "-f", "json");
  assert.ok(listed.includes(snapshot.snapshotId));
  await works("sandbox", "snapshot", "delete", snapshot.snapshotId);
  assert.equal((await box.listSnapshots().nextItems()).length, 0);
});

await claim("templates_are_created_listed_published_and_deleted", async () => {
  const name = `cli-built-${process.pid}`;
  const context = join(home, "context");
  mkdirSync(context);
  writeFileSync(join(context, "e2b.Dockerfile"), "FROM e2bdev/base\nCOPY f /tmp/f\nRUN cat /tmp/f > /tmp/built\n");
  writeFileSync(join(context, "f"), "by the command line\n");
  await works("template", "create", name, "-p", context, "--cpu-count", "1", "--memory-mb", "512");
  assert.equal(await Template.exists(name), true);
  const box = await sandbox({ template: name });
  assert.equal(await stdout(box, "cat /tmp/built"), "by the command line\n");
  await box.kill();
  assert.ok((await works("template", "list", "-f", "json")).includes(name));
  await works("template", "publish", "-y", name);
  await works("template", "unpublish", "-y", name);
  await works("template", "delete", "-y", name);
  assert.equal(await Template.exists(name), false);
});

await claim("a_terminal_is_connected", async () => {
  const box = await sandbox();
  const words = [process.execPath, program, "sandbox", "connect", box.sandboxId].map((each) => `'${each}'`).join(" ");
  const command = ["script", "-qec", words, "/dev/null"]; // it wants a terminal of its own
  const session = e2b([], {
    command,
    input: async (child, said) => {
      await eventually(() => said.out.includes("$"));
      child.stdin.write("echo sa''id-$((6 * 7))\n");
      await eventually(() => said.out.includes("said-42"));
      child.stdin.write("exit\n");
    },
  });
  assert.equal((await session).status, 0);
  assert.equal(await box.isRunning(), true);
});

await claim("what_cannot_be_is_said_and_fails", async () => {
  const missing = await e2b(["sandbox", "exec", "inosuchsandbox", "true"]);
  assert.notEqual(missing.status, 0);
  const killed = await e2b(["sandbox", "kill", "inosuchsandbox"]);
  assert.match(killed.out + killed.err, /n't|not/i);
  const refused = await new Promise((resolve) => {
    const child = spawn(process.execPath, [program, "sandbox", "list"], { env: { ...environment, E2B_API_KEY: "e2b_" + "0".repeat(40) }, stdio: ["ignore", "pipe", "pipe"] });
    let said = "";
    for (const each of [child.stdout, child.stderr]) each.setEncoding("utf8").on("data", (part) => { said += part; });
    child.on("close", (status) => resolve({ status, said }));
  });
  assert.notEqual(refused.status, 0);
  assert.match(refused.said, /401|[Uu]nauthor|API key/);
});

await claim("its_version_is_told", async () => assert.match(await works("--version"), /^\d+\.\d+\.\d+\n$/));

finish();
