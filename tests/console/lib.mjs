// What all tests of the console share: a daemon, a browser, claims, and a count of everything that the
// browser complains about, which must be nothing.
import assert from "node:assert/strict";
import { execFile, spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

const here = dirname(fileURLToPath(import.meta.url));
export const root = resolve(here, "../..");
const build = resolve(root, process.env.HOLT_BUILD_DIR ?? "build");
const require = createRequire(join(root, "build/console-tests/"));
const { chromium } = require("playwright-core");
const run = promisify(execFile);

// A bound for what never comes, not a speed limit: the machine may be busy.
export const patienceMs = Number(process.env.PATIENCE_MS ?? 60_000);

const tmp = mkdtempSync(join(tmpdir(), "holt-console."));
const daemons = [];
let browser;
let failures = 0;

export const sleep = (ms) => new Promise((done) => setTimeout(done, ms));

export async function eventually(isTrue, what = String(isTrue)) {
  for (const end = Date.now() + patienceMs; ;) {
    const value = await isTrue();
    if (value) return value;
    if (Date.now() > end) assert.fail(`never came true: ${what}`);
    await sleep(50);
  }
}

// Waits until a count has not changed for a while: what was under way has arrived.
export async function settled(count, quietMs = 500) {
  await eventually(async () => {
    const before = count();
    await sleep(quietMs);
    return count() === before;
  }, `${count} settles`);
}

// Counts how often what the selector finds is drawn. The changes of one drawing may come in several turns of the event
// loop, so those within 60 ms are one.
export async function countDrawings(page, selector) {
  await page.evaluate((wanted) => {
    globalThis.drawings = 0;
    globalThis.drawingsSince = performance.now();
    let last = -Infinity;
    new MutationObserver(() => {
      const now = performance.now();
      if (now - last < 60) return;
      last = now;
      globalThis.drawings++;
    }).observe(document.querySelector(wanted), { subtree: true, childList: true, characterData: true });
  }, selector);
}

// The number since then, and the time in seconds.
export const drawingsOf = (page) =>
  page.evaluate(() => ({ drawings, seconds: (performance.now() - drawingsSince) / 1000 }));

// A daemon with its own state. It can be killed and started again at the same address.
class Daemon {
  constructor(name, flags) {
    this.dir = join(tmp, name);
    this.flags = flags;
    this.port = 0;
    mkdirSync(this.dir);
  }

  async start() {
    const child = spawn(join(build, "holtd"), [
      "--state", join(this.dir, "state"), "--run", join(this.dir, "run"),
      "--listen", `127.0.0.1:${this.port}`, ...this.flags,
    ], { stdio: ["ignore", "pipe", "pipe"] });
    this.child = child;
    this.log = "";
    this.ended = new Promise((done) => child.on("exit", done));
    const collect = (bytes) => (this.log += bytes);
    child.stdout.on("data", collect);
    child.stderr.on("data", collect);
    const found = await eventually(() => {
      assert.equal(child.exitCode, null, `holtd ended: ${this.log}`);
      return /listening on https?:\/\/[^:]*:(\d+)/.exec(this.log);
    }, "holtd listens");
    this.port = Number(found[1]);
    await eventually(() => fetch(`${this.url}/healthz`).then((reply) => reply.ok, () => false), "holtd answers");
  }

  get url() {
    return `http://127.0.0.1:${this.port}`;
  }

  get token() {
    return readFileSync(join(this.dir, "state/token"), "utf8").trim();
  }

  // Runs the holt command: the standard output, without the last line end.
  async holt(...args) {
    const env = { ...process.env, HOLT_HOST: `unix://${this.dir}/run/holt.sock` };
    const { stdout } = await run(join(build, "holt"), args, { env, maxBuffer: 1 << 26 });
    return stdout.trimEnd();
  }

  // A call of holt.v1 with the main token, past the browser.
  async call(method, message = {}) {
    const reply = await fetch(`${this.url}/holt.v1.${method}`, {
      method: "POST",
      headers: { "Content-Type": "application/json", Authorization: `Bearer ${this.token}` },
      body: JSON.stringify(message),
    });
    const body = await reply.json();
    assert.ok(reply.ok, `${method}: ${JSON.stringify(body)}`);
    return body;
  }

  async kill(signal = "SIGKILL") {
    this.child.kill(signal);
    await this.ended;
  }

  // Sandboxes outlive their daemon, so they go first.
  async done() {
    if (this.child.exitCode === null && this.child.signalCode === null) {
      const ids = (await this.holt("ls", "-q").catch(() => "")).split("\n").filter(Boolean);
      if (ids.length > 0) await this.holt("rm", "-f", ...ids).catch(() => undefined);
      await this.kill("SIGTERM");
    }
  }
}

export async function startDaemon(...flags) {
  const daemon = new Daemon(`daemon-${daemons.length}`, flags);
  daemons.push(daemon);
  await daemon.start();
  return daemon;
}

const complaints = [];

function watch(page) {
  page.on("console", (message) => {
    if (message.type() === "error" || message.type() === "warning")
      complaints.push(`console ${message.type()}: ${message.text()} (${message.location().url})`);
  });
  page.on("pageerror", (error) => complaints.push(`exception: ${error.stack ?? error}`));
}

// Drops complaints that a test has provoked. All others fail it at its end.
export function forgive(pattern) {
  for (let i = complaints.length - 1; i >= 0; i--) {
    if (pattern.test(complaints[i])) complaints.splice(i, 1);
  }
}

// What the browser itself reports of connections that fail while a daemon is away.
export function forgiveAbsence() {
  forgive(/ERR_(CONNECTION_|EMPTY_RESPONSE|INCOMPLETE|SOCKET_NOT_CONNECTED)|WebSocket connection to/);
}

// A browser profile of its own: cookies, storage, theme.
export async function newContext(options = {}) {
  browser ??= await chromium.launch({ executablePath: "/usr/bin/chromium", args: ["--no-sandbox"], timeout: patienceMs });
  const context = await browser.newContext({
    viewport: { width: 1280, height: 800 }, reducedMotion: "reduce", locale: "en-GB", ...options,
  });
  context.setDefaultTimeout(patienceMs);
  await context.exposeBinding("reportViolation", (_source, text) => complaints.push(`CSP: ${text}`));
  await context.addInitScript(() => {
    document.addEventListener("securitypolicyviolation", (event) =>
      globalThis.reportViolation(`${event.violatedDirective} ${event.blockedURI}`));
  });
  context.on("page", watch);
  return context;
}

// A new page, logged in with this token (the main one if absent), at this address: "#/sandboxes/ID".
export async function open(daemon, { token, at = "#/", ...options } = {}) {
  const context = await newContext(options);
  const page = await context.newPage();
  await page.goto(`${daemon.url}/`);
  await page.getByLabel("Token").fill(token ?? daemon.token);
  await page.getByRole("button", { name: "Log in" }).click();
  await page.locator(".frame").waitFor();
  if (at !== "#/") await go(page, at);
  return page;
}

// Goes to another view without a load of the page.
export async function go(page, at) {
  await page.evaluate((hash) => (location.hash = hash), at);
}

// Where `make console-shots` and a failed claim leave their pictures.
export async function shot(page, name) {
  const folder = join(root, "build/console-shots");
  mkdirSync(folder, { recursive: true });
  await page.screenshot({ path: join(folder, `${name}.png`) });
}

export async function claim(name, body) {
  const start = Date.now();
  try {
    await body();
    console.log(`ok: ${name}`);
    if (process.env.VERBOSE) console.log(`    ${Date.now() - start} ms`);
  } catch (error) {
    failures++;
    console.log(`not ok: ${name}`);
    console.log(String(error?.stack ?? error).replace(/^/gm, "    "));
    const pages = browser?.contexts().flatMap((each) => each.pages()) ?? [];
    for (const [i, page] of pages.entries()) await shot(page, `failed-${name}-${i}`).catch(() => undefined);
  }
}

// Checks that the browser had nothing to complain about, and ends the program.
export async function finish() {
  await claim("the_browser_has_no_complaint", () => assert.deepEqual(complaints, []));
  await cleanup();
  process.exit(failures === 0 ? 0 : 1);
}

async function cleanup() {
  await browser?.close().catch(() => undefined);
  for (const each of daemons) {
    await each.done().catch((error) => console.log(`    ${error}`));
    if (failures > 0) console.log(each.log.split("\n").slice(-20).join("\n").replace(/^/gm, "    holtd: "));
  }
  rmSync(tmp, { recursive: true, force: true });
}

for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) {
  process.on(signal, () => void cleanup().then(() => process.exit(1)));
}
for (const event of ["unhandledRejection", "uncaughtException"]) {
  process.on(event, (error) => {
    console.log(`not ok: ${event}: ${error?.stack ?? error}`);
    failures++;
    void cleanup().then(() => process.exit(1));
  });
}
