// Measures the console in one Chromium; prints one JSON object per line.
// usage: tests/console/run bench/console.mjs    (HOLT_URL, HOLT_TOKEN and HOLTD_PID; bench/console sets them)
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { fileURLToPath } from "node:url";

const { chromium } = createRequire(fileURLToPath(new URL("../build/console-tests/", import.meta.url)))("playwright-core");
const { HOLT_URL: url, HOLT_TOKEN: token, HOLTD_PID: pid } = process.env;
const number = (name, usual) => Number(process.env[name] ?? usual);
const sandboxes = number("BENCH_SANDBOXES", 2000);
const loads = number("BENCH_N", 20);
const minutes = number("BENCH_MINUTES", 10);
const pages = number("BENCH_PAGES", 8);
const seconds = number("BENCH_SECONDS", 20);
const active = Math.min(20, sandboxes);
const patience = { timeout: 300_000 };
const sleep = (ms) => new Promise((done) => setTimeout(done, ms));

async function call(method, message = {}) {
  const reply = await fetch(`${url}/holt.v1.${method}`, {
    method: "POST", headers: { "Content-Type": "application/json", Authorization: `Bearer ${token}` }, body: JSON.stringify(message),
  });
  const body = await reply.json();
  if (!reply.ok) throw new Error(`${method}: ${JSON.stringify(body)}`);
  return body;
}

function report(name, more) {
  console.log(JSON.stringify({ bench: "console", name, ...more }));
}

const at = (sorted, part) => sorted[Math.min(sorted.length - 1, Math.floor(part * sorted.length))];

function reportTimes(name, samples, more = {}) {
  const sorted = [...samples].sort((a, b) => a - b).map(Math.round);
  report(name, { n: sorted.length, p50_ms: at(sorted, 0.5), p99_ms: at(sorted, 0.99), max_ms: sorted.at(-1), ...more });
}

// Creates what is missing up to `count`, a few at a time.
async function fill(count) {
  const { sandboxes: present = [] } = await call("SandboxService/List");
  let next = present.length;
  const work = async () => {
    while (next < count) {
      const i = next++;
      const { sandbox } = await call("SandboxService/Create", { name: `box-${i}`, template: "small", labels: { group: `g${i % 10}` } });
      if (i >= active) await call("SandboxService/Stop", { sandboxId: sandbox.id });
    }
  };
  await Promise.all([work(), work(), work(), work()]);
}

const browser = await chromium.launch({ executablePath: "/usr/bin/chromium", args: ["--no-sandbox"] });

async function logIn() {
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 } });
  const page = await context.newPage();
  await page.goto(`${url}/`, patience);
  await page.getByLabel("Token").fill(token);
  await page.getByRole("button", { name: "Log in" }).click();
  await page.locator(".table-body .table-row").first().waitFor(patience);
  return page;
}

async function firstPaint(name) {
  const page = await logIn();
  const paints = [];
  const rows = [];
  for (let i = -1; i < loads; i++) { // the first one fills the cache
    await page.reload();
    await page.locator(".table-body .table-row").first().waitFor(patience);
    const found = await page.evaluate(() => [performance.getEntriesByName("first-contentful-paint")[0]?.startTime ?? 0, performance.now()]);
    if (i < 0) continue;
    paints.push(found[0]);
    rows.push(found[1]);
  }
  reportTimes(`${name}: first contentful paint`, paints);
  reportTimes(`${name}: first rows of the table`, rows);
  await page.context().close();
}

// The heap after a collection: what the page really keeps.
async function heap(debug) {
  await debug.send("HeapProfiler.collectGarbage");
  const { metrics } = await debug.send("Performance.getMetrics");
  const metric = (name) => metrics.find((each) => each.name === name)?.value ?? 0;
  return { mib: metric("JSHeapUsedSize") / 2 ** 20, nodes: metric("Nodes") };
}

// What changes while pages stream: states of sandboxes, output, a terminal, files, turns.
async function startChurn(all, first) {
  const sh = (text, more = {}) => call("ProcessService/Start", { sandboxId: first, process: { args: ["sh", "-c", text], ...more } })
    .then((reply) => reply.process.id);
  const output = await sh("i=0; while :; do echo line $i; i=$((i+1)); [ $((i % 100)) -gt 0 ] || sleep 0.1; done");
  const terminal = await sh("i=0; while :; do printf '\\033[3%dm%d %s\\r\\n' $((i % 8)) $i ----------------; i=$((i+1)); [ $((i % 50)) -gt 0 ] || sleep 0.1; done",
    { terminal: { rows: 24, columns: 80 } });
  await sh("busybox mkdir -p /workspace/d; i=0; while :; do echo $i >/workspace/d/f$((i % 50)); i=$((i+1)); sleep 0.2; done");
  await call("SandboxService/Update", { sandboxId: first, maxSnapshots: 20 });
  let isDone = false;
  const states = (async () => {
    for (let i = 1; !isDone; i++) {
      const id = all[1 + (i % (active - 1))].id;
      await call("SandboxService/Pause", { sandboxId: id }).catch(() => undefined);
      await call("SandboxService/Resume", { sandboxId: id }).catch(() => undefined);
      await sleep(20);
    }
  })();
  const turns = (async () => {
    while (!isDone) {
      await call("SnapshotService/TurnComplete", { sandboxId: first }).catch(() => undefined);
      await sleep(2000);
    }
  })();
  return { output, terminal, stop: () => ((isDone = true), Promise.all([states, turns])) };
}

// Every view streams in a tab of its own for the whole time, all at once.
async function memory() {
  const { sandboxes: all } = await call("SandboxService/List");
  const first = all.find((each) => each.state === "active").id;
  const churn = await startChurn(all.filter((each) => each.state === "active"), first);
  const tab = (name) => `#/sandboxes/${first}/${name}`;
  const views = [["overview", "#/", ".table-row"], ["events", "#/events", "tbody tr"], ["usage", tab("usage"), ".plot canvas"],
    ["output", `${tab("processes")}?process=${churn.output}`, ".output-row, .process-details"],
    ["terminal", `${tab("terminals")}?process=${churn.terminal}`, ".xterm-rows"],
    ["files", `${tab("files")}?path=/workspace/d/f0`, ".editor-area"], ["turns", tab("turns"), ".graph-row"]];
  const wanted = process.env.BENCH_VIEWS?.split(",");
  const open = [];
  for (const [name, address, selector] of views.filter(([each]) => !wanted || wanted.includes(each))) {
    const page = await logIn();
    await page.evaluate((hash) => (location.hash = hash), address);
    await page.locator(selector).first().waitFor(patience);
    const debug = await page.context().newCDPSession(page);
    await debug.send("Performance.enable");
    open.push({ name, page, debug, samples: [] });
  }
  const sample = async () => {
    for (const each of open) each.samples.push(await heap(each.debug));
  };
  await sleep(10_000);
  await sample();
  for (let i = 0; i < 2; i++) {
    await sleep(minutes * 30_000);
    await sample();
  }
  for (const { name, page, samples } of open) {
    const [before, middle, after] = samples.map(({ mib }) => Number(mib.toFixed(1)));
    report(`streaming, ${name}`, {
      minutes, heap_before_mib: before, heap_middle_mib: middle, heap_after_mib: after,
      nodes_before: samples[0].nodes, nodes_after: samples[2].nodes,
    });
    await page.context().close();
  }
  await churn.stop();
}

function daemonUse() {
  const fields = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1].split(" ");
  const rss = Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))[1]);
  return { ticks: Number(fields[11]) + Number(fields[12]), rss };
}

async function watchDaemon() {
  const before = daemonUse();
  await sleep(seconds * 1000);
  const after = daemonUse();
  return { cpu_ms_per_s: (10 * (after.ticks - before.ticks)) / seconds, rss: after.rss };
}

async function costOfPages() {
  const without = await watchDaemon();
  const open = [];
  for (let i = 0; i < pages; i++) open.push(await logIn());
  await sleep(3000);
  const visible = await watchDaemon();
  for (const each of open) {
    await each.evaluate(() => {
      Object.defineProperty(document, "hidden", { configurable: true, get: () => true });
      document.dispatchEvent(new Event("visibilitychange"));
    });
  }
  await sleep(3000);
  const hidden = await watchDaemon();
  const per = (value) => Number((value / pages).toFixed(2));
  report("the daemon, for an open page", {
    pages, idle_cpu_ms_per_s: Number(without.cpu_ms_per_s.toFixed(2)), page_cpu_ms_per_s: per(visible.cpu_ms_per_s - without.cpu_ms_per_s),
    hidden_page_cpu_ms_per_s: per(hidden.cpu_ms_per_s - without.cpu_ms_per_s), page_rss_kib: Math.round((visible.rss - without.rss) / pages),
  });
  for (const each of open) await each.context().close();
}

try {
  await fill(active);
  await firstPaint(`${active} sandboxes`);
  await fill(sandboxes);
  await firstPaint(`${sandboxes} sandboxes`);
  await costOfPages();
  await memory();
} finally {
  await browser.close();
}
