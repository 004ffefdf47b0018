// kill -9 of the daemon in the middle of the SDK's work; Sandbox.connect works afterwards and the files are
// there. The test that runs this starts the daemon anew when it has gone.
// usage: node restart.mjs PIDFILE    (PIDFILE: the pid of the daemon, written anew with each start)
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { SandboxNotFoundError } from "e2b";
import { claim, eventually, finish, keep, longMs, refused, run, sandbox, Sandbox, start, stdout } from "./lib.mjs";

const pid = () => Number(readFileSync(process.argv[2], "utf8"));

async function killDaemon() {
  const before = pid();
  process.kill(before, "SIGKILL");
  await eventually(() => {
    try {
      return pid() !== before;
    } catch {
      return false; // it is being written
    }
  });
  await eventually(() => Sandbox.list().nextItems().then(() => true, () => false));
}

await claim("a_sandbox_outlives_the_daemon", async () => {
  const box = await sandbox({ metadata: { kept: "yes" }, envs: { A: "1" } });
  const paused = await sandbox();
  const killed = await sandbox();
  await killed.kill();
  await box.files.write("a", "kept", { metadata: { k: "v" } });
  await paused.files.write("a", "kept too");
  await paused.pause();
  const { snapshotId } = await box.createSnapshot();
  const sleeper = await start(box, "sleep 100000");
  const streams = [sleeper.wait(), run(box, "while :; do echo on; done > /dev/null"), box.files.watchDir(".", () => {}, { timeoutMs: 0 })];
  const ended = Promise.allSettled(streams);
  const writing = (async () => {
    for (let i = 0; ; i++) await box.files.write(`during/${i}`, "x".repeat(10000));
  })().catch((error) => error);
  await eventually(() => box.files.exists("during/3").catch(() => false));
  const { endAt } = await box.getInfo();

  await killDaemon();
  assert.ok(await writing instanceof Error); // what was under way is told, not left waiting
  await ended;

  const same = await Sandbox.connect(box.sandboxId, { timeoutMs: longMs });
  assert.equal(await same.files.read("a"), "kept");
  assert.deepEqual((await same.files.getInfo("a")).metadata, { k: "v" });
  assert.equal((await same.files.read("during/0")).length, 10000);
  assert.equal(await stdout(same, "echo $A-$E2B_SANDBOX_ID"), `1-${box.sandboxId}\n`);
  assert.equal(await box.files.read("a"), "kept"); // by the old object too: its token is the same
  const info = await same.getInfo();
  assert.deepEqual([info.metadata, info.state], [{ kept: "yes" }, "running"]);
  assert.ok(info.endAt >= endAt);
  assert.equal((await Sandbox.getInfo(paused.sandboxId)).state, "paused");
  await paused.connect({ timeoutMs: longMs });
  assert.equal(await paused.files.read("a"), "kept too");
  await refused(SandboxNotFoundError, Sandbox.connect(killed.sandboxId));
  const copy = await sandbox({ template: snapshotId });
  assert.equal(await copy.files.read("a"), "kept");
  await copy.kill();
  assert.equal(await Sandbox.deleteSnapshot(snapshotId), true);
});

await claim("creates_that_were_cut_off_leave_nothing_half_made", async () => {
  const metadata = { cut: String(process.pid) };
  const creates = Promise.allSettled(Array.from({ length: 20 }, () => Sandbox.create({ timeoutMs: longMs, metadata })));
  await killDaemon();
  const settled = await creates;
  for (const each of settled) if (each.status === "fulfilled") keep(each.value);
  const listed = [];
  const pages = Sandbox.list({ query: { metadata } });
  while (pages.hasNext) listed.push(...await pages.nextItems());
  for (const { sandboxId } of listed) {
    const box = keep(await Sandbox.connect(sandboxId, { timeoutMs: longMs }));
    assert.equal(await stdout(box, "echo alive"), "alive\n");
  }
  const known = new Set(listed.map((each) => each.sandboxId));
  for (const each of settled) if (each.status === "fulfilled") assert.ok(known.has(each.value.sandboxId)); // what was promised is there
});

await claim("timeouts_go_on_after_a_restart", async () => {
  const box = await sandbox();
  await box.setTimeout(3000);
  await killDaemon();
  await eventually(() => Sandbox.getInfo(box.sandboxId).then(() => false, (error) => error instanceof SandboxNotFoundError));
});

finish();
