// What pages keep of what has streamed through them; bench/console streams for ten minutes.
import assert from "node:assert/strict";
import { claim, eventually, finish, open, startDaemon } from "./lib.mjs";

// More than the page Events keeps, and more lines than a terminal keeps: after a round everything that is bounded is full,
// and after another it has been replaced.
const roundEvents = 2200;
const roundLines = 11_000;
const mostMiB = 2; // of growth from one round to the next

const daemon = await startDaemon();
await daemon.holt("create", "--name", "busy");
const { process } = await daemon.call("ProcessService/Start", {
  sandboxId: "busy",
  process: {
    args: ["sh", "-c", String.raw`mkfifo /tmp/lines; while read n </tmp/lines; do
      awk -v n=$n 'BEGIN { for (i = 0; i < n; i++) printf "\033[3%dm%d\r\n", i % 8, i; print "over " n }'; done`],
    terminal: { rows: 24, columns: 80 },
  },
});

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
  tabs.push({ at: at.split("?")[0], page, debug });
}

// Returns when every page shows the end of the round.
async function stream(round) {
  await daemon.holt("exec", "busy", "--", "sh", "-c", `echo ${roundLines + round} >/tmp/lines`);
  for (let i = 0; i < roundEvents; i++) {
    await daemon.call("SandboxService/Update", { sandboxId: "busy", labels: { step: `${round}-${i}` } });
    if (i % 100 > 0) continue;
    await daemon.call("SandboxService/Pause", { sandboxId: "busy" });
    await daemon.call("SandboxService/Resume", { sandboxId: "busy" });
  }
  const name = `round-${round}`;
  await daemon.holt("create", "--name", name);
  const [overview, events, terminal] = tabs.map(({ page }) => page);
  await overview.getByText(name).first().waitFor();
  await events.getByText(name).first().waitFor();
  await eventually(async () => (await terminal.locator(".xterm-rows").textContent()).replaceAll("\u00a0", " ").includes(`over ${roundLines + round}`),
    "the terminal shows the end of the round");
  await daemon.holt("rm", name);
}

await claim("streaming_leaves_no_memory_behind", async () => {
  await stream(1);
  for (const tab of tabs) tab.before = await heapMiB(tab.debug);
  await stream(2);
  for (const tab of tabs) {
    const after = await heapMiB(tab.debug);
    console.log(`    ${tab.at}: ${tab.before.toFixed(1)} MiB, then ${after.toFixed(1)} MiB`);
    assert.ok(after - tab.before < mostMiB, `${tab.at} grew from ${tab.before} to ${after} MiB`);
  }
});
await finish();
