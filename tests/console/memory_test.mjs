// What pages keep while they stream for a minute; bench/console streams for ten.
import assert from "node:assert/strict";
import { claim, finish, open, sleep, startDaemon } from "./lib.mjs";

const warmMs = 15_000;
const streamMs = 60_000;
const mostMiB = 4; // of a page whose content is bounded

const daemon = await startDaemon();
await daemon.holt("create", "--name", "busy");
const { process } = await daemon.call("ProcessService/Start", {
  sandboxId: "busy", process: { args: ["sh", "-c", "i=0; while :; do printf '\\033[3%dm%d\\r\\n' $((i % 8)) $i; i=$((i+1)); [ $((i % 50)) -gt 0 ] || sleep 0.1; done"],
    terminal: { rows: 24, columns: 80 } },
});

let isDone = false;
const churn = (async () => {
  while (!isDone) {
    await daemon.call("SandboxService/Pause", { sandboxId: "busy" });
    await daemon.call("SandboxService/Resume", { sandboxId: "busy" });
    await sleep(50);
  }
})();

async function heapMiB(debug) {
  await debug.send("HeapProfiler.collectGarbage");
  const { metrics } = await debug.send("Performance.getMetrics");
  return metrics.find((each) => each.name === "JSHeapUsedSize").value / 2 ** 20;
}

const tabs = [];
for (const at of ["#/", "#/events", `#/sandboxes/busy/terminals?process=${process.id}`]) {
  const page = await open(daemon, { at });
  const debug = await page.context().newCDPSession(page);
  await debug.send("Performance.enable");
  tabs.push({ at: at.split("?")[0], debug });
}
await sleep(warmMs);
for (const tab of tabs) tab.before = await heapMiB(tab.debug);
await sleep(streamMs);

await claim("a_minute_of_streaming_leaves_no_memory_behind", async () => {
  for (const tab of tabs) {
    const after = await heapMiB(tab.debug);
    console.log(`    ${tab.at}: ${tab.before.toFixed(1)} MiB, then ${after.toFixed(1)} MiB`);
    assert.ok(after - tab.before < mostMiB, `${tab.at} grew from ${tab.before} to ${after} MiB`);
  }
});
isDone = true;
await churn;
await finish();
