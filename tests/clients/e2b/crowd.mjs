// A hundred sandboxes created at once through the SDK: all of them are there, work, and go.
import assert from "node:assert/strict";
import { claim, finish, keep, longMs, run, Sandbox } from "./lib.mjs";

const size = 100;

await claim("a_hundred_are_created_at_once", async () => {
  const metadata = { crowd: String(process.pid) };
  const boxes = await Promise.all(Array.from({ length: size }, () => Sandbox.create({ timeoutMs: longMs, metadata })));
  for (const box of boxes) keep(box);
  assert.equal(new Set(boxes.map((each) => each.sandboxId)).size, size);
  const results = await Promise.all(boxes.map((each) => run(each, "echo $E2B_SANDBOX_ID")));
  assert.deepEqual(results.map((each) => each.stdout.trim()), boxes.map((each) => each.sandboxId));
  const listed = [];
  const pages = Sandbox.list({ query: { metadata }, limit: 7 });
  while (pages.hasNext) listed.push(...await pages.nextItems());
  assert.deepEqual(listed.map((each) => each.sandboxId).sort(), boxes.map((each) => each.sandboxId).sort());
  const killed = await Promise.all(boxes.map((each) => each.kill()));
  assert.ok(killed.every((each) => each === true));
});

finish();
