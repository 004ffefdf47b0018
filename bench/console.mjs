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

// Sandboxes pause and resume and a process writes, while a page streams.
async function memory() {
  const { sandboxes: all } = await call("SandboxService/List");
  const first = all.find((each) => each.state === "active").id;
  await call("ProcessService/Start", {
    sandboxId: first, process: { args: ["sh", "-c", "i=0; while :; do echo line $i; i=$((i+1)); [ $((i % 100)) -gt 0 ] || sleep 0.1; done"] },
  });
  let isDone = false;
  const churn = (async () => {
    for (let i = 1; !isDone; i++) {
      const id = all[1 + (i % (active - 1))].id;
      await call("SandboxService/Pause", { sandboxId: id }).catch(() => undefined);
      await call("SandboxService/Resume", { sandboxId: id }).catch(() => undefined);
      await sleep(20);
    }
  })();
  for (const [name, address] of [["overview", "#/"], ["events", "#/events"], ["usage", `#/sandboxes/${first}/usage`], ["output", `#/sandboxes/${first}/processes`]]) {
    const page = await logIn();
    await page.evaluate((hash) => (location.hash = hash), address);
    if (name === "output") await page.locator(".process-table tbody button").first().click();
    const debug = await page.context().newCDPSession(page);
    await debug.send("Performance.enable");
    await sleep(10_000);
    const before = await heap(debug);
    await sleep((minutes * 60_000) / 4);
    const after = await heap(debug);
    report(`streaming, ${name}`, {
      minutes: minutes / 4, heap_before_mib: Number(before.mib.toFixed(1)), heap_after_mib: Number(after.mib.toFixed(1)),
      nodes_before: before.nodes, nodes_after: after.nodes,
    });
    await page.context().close();
  }
  isDone = true;
  await churn;
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
