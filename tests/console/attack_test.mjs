// Pages and programs that attack a browser that is logged in: a preview of a sandbox, a program on a
// forwarded port, a page of another site. None of them gets or changes anything.
import assert from "node:assert/strict";
import { createServer } from "node:http";
import { connect } from "node:net";
import { claim, eventually, finish, forgive, go, newContext, open, startDaemon } from "./lib.mjs";

const daemon = await startDaemon();
await daemon.holt("create", "--name", "web");
await daemon.holt("create", "--name", "victim");
const web = JSON.parse(await daemon.holt("inspect", "web")).id;
const page = await open(daemon);
const context = page.context();
const key = await page.evaluate(() => sessionStorage.getItem("holt.key"));
const cookie = (await context.cookies(daemon.url)).find(({ name }) => name.includes("holt_session"));
const console127 = daemon.url;
const consoleLocal = `http://localhost:${daemon.port}`;

const frameServer = createServer((_request, reply) => {
  reply.setHeader("Content-Type", "text/html");
  reply.end('<div id="app">');
});
await new Promise((done) => frameServer.listen(0, "127.0.0.1", done));
frameServer.unref();
const frameable = `http://127.0.0.1:${frameServer.address().port}`;

// Runs in the attacker's page. Every attempt returns a word; "in" is a break-in.
async function attempts(targets) {
  const found = {};
  const attempt = async (name, body) => {
    found[name] = await Promise.race([
      body().catch((error) => `refused: ${error.name}`),
      new Promise((done) => setTimeout(() => done("refused: silence"), 4000)),
    ]);
  };
  const call = (target, path, init = {}) => fetch(`${target}${path}`, {
    method: "POST", credentials: "include", headers: { "Content-Type": "application/json" }, body: "{}", ...init,
  }).then((reply) => (reply.ok ? "in" : `refused: ${reply.status}`));
  for (const target of targets) {
    await attempt(`${target} list`, () => call(target, "/holt.v1.SandboxService/List"));
    await attempt(`${target} destroy`, () => call(target, "/holt.v1.SandboxService/Destroy", { body: '{"sandboxId":"victim"}' }));
    await attempt(`${target} destroy as text`, () => fetch(`${target}/holt.v1.SandboxService/Destroy`, {
      method: "POST", credentials: "include", mode: "no-cors", headers: { "Content-Type": "text/plain" }, body: '{"sandboxId":"victim"}',
    }).then((reply) => (reply.type === "opaque" ? "refused: opaque" : "in")));
    await attempt(`${target} session`, () => call(target, "/console/session", { method: "GET", body: undefined, headers: {} }));
    await attempt(`${target} login`, () => call(target, "/console/login", { body: '{"token":"attacker"}' }));
    await attempt(`${target} logout`, () => call(target, "/console/logout"));
    await attempt(`${target} ticket`, () => call(target, "/console/ticket", { body: '{"sandbox":"victim","path":"/etc/passwd"}' }));
    await attempt(`${target} socket`, () => new Promise((done) => {
      const socket = new WebSocket(`${target.replace("http", "ws")}/holt.v1/stream`);
      socket.onmessage = () => done("in");
      socket.onopen = () => socket.send('{"key":"guess"}');
      socket.onclose = () => done("refused: closed");
    }));
  }
  await attempt("key by broadcast", () => new Promise((done) => {
    const channel = new BroadcastChannel("holt.session");
    channel.onmessage = ({ data }) => data.key && done("in");
    channel.postMessage({ ask: true });
    setTimeout(() => done("refused: silence"), 500);
  }));
  await attempt("key in storage", async () => (sessionStorage.getItem("holt.key") ? "in" : "refused: none"));
  await attempt("opener", async () => (globalThis.opener ? "in" : "refused: none"));
  return found;
}

// Frames the console, and a page that allows it, in the attacker's page. The test looks into the frames, which the page
// itself could not.
async function framesAreRefused(attacker, targets) {
  await attacker.evaluate(async (addresses) => {
    for (const [name, src] of addresses) {
      const frame = document.createElement("iframe");
      frame.name = name;
      const loaded = new Promise((done) => (frame.onload = done));
      frame.src = src;
      document.body.append(frame);
      await loaded;
    }
  }, [["control", `${frameable}/`], ...targets.map((each, i) => [`console-${i}`, `${each}/`])]);
  const frame = async (name) => (await attacker.$(`iframe[name=${name}]`)).contentFrame();
  const shows = async (name) => (await frame(name)).evaluate(() => document.getElementById("app") !== null);
  assert.equal(await shows("control"), true, "a page without a policy is framed: otherwise this tests nothing");
  for (const [i, target] of targets.entries()) assert.equal(await shows(`console-${i}`), false, target);
}

function nothingGotIn(found) {
  const broken = Object.entries(found).filter(([, result]) => !String(result).startsWith("refused"));
  assert.deepEqual(broken, []);
}

const isUnharmed = async () => {
  assert.equal(JSON.parse(await daemon.holt("inspect", "victim")).state, "active");
  const status = await page.evaluate(async (header) =>
    (await fetch("/console/session", { headers: { "X-Holt-Session": header } })).status, key);
  assert.equal(status, 200, "the session goes on");
};

await claim("a_hostile_preview_gets_nothing", async () => {
  await daemon.holt("exec", "web", "--", "sh", "-c", "mkdir -p /workspace/www; echo '<body>hostile' >/workspace/www/index.html");
  await daemon.holt("launch", "--port", "8000", "web", "--", "python3", "-m", "http.server", "-d", "/workspace/www", "8000");
  await go(page, `#/sandboxes/${web}/services`);
  const opened = context.waitForEvent("page");
  await page.getByRole("row").filter({ hasText: "http.server" }).getByRole("button", { name: "Preview" }).click();
  const preview = await opened;
  await preview.getByText("hostile").waitFor();
  nothingGotIn(await preview.evaluate(attempts, [console127, consoleLocal]));
  await framesAreRefused(preview, [console127, consoleLocal]);
  await preview.evaluate(() => {
    for (const domain of ["", "; domain=localhost", `; domain=${location.hostname}`])
      document.cookie = `holt_session=planted; path=/${domain}`;
  });
  await preview.close();
  await isUnharmed();
});

// Names below localhost are of the same site as localhost: the browser sends the cookie of such a session with all requests.
await claim("a_hostile_preview_of_the_same_site_gets_nothing", async () => {
  const own = await newContext();
  const console = await own.newPage();
  await console.goto(`${consoleLocal}/`);
  await console.getByLabel("Token").fill(daemon.token);
  await console.getByRole("button", { name: "Log in" }).click();
  await console.locator(".frame").waitFor();
  await go(console, `#/sandboxes/${web}/services`);
  const opened = own.waitForEvent("page");
  await console.getByRole("row").filter({ hasText: "http.server" }).getByRole("button", { name: "Preview" }).click();
  const preview = await opened;
  await preview.getByText("hostile").waitFor();
  nothingGotIn(await preview.evaluate(attempts, [consoleLocal, console127]));
  await framesAreRefused(preview, [consoleLocal]);
  assert.equal(JSON.parse(await daemon.holt("inspect", "victim")).state, "active");
  const status = await console.evaluate(async () =>
    (await fetch("/console/session", { headers: { "X-Holt-Session": sessionStorage.getItem("holt.key") } })).status);
  assert.equal(status, 200, "the session goes on");
  await own.close();
});

await claim("a_preview_cannot_frame_or_be_framed_by_the_console", async () => {
  const reply = await page.request.get(`${daemon.url}/`);
  assert.match(reply.headers()["content-security-policy"], /frame-ancestors 'none'/);
  assert.match(reply.headers()["content-security-policy"], /default-src 'none'/);
  assert.equal(reply.headers()["cross-origin-opener-policy"], "same-origin");
});

// The browser sends cookies to every port of 127.0.0.1, so a program that listens on one has the cookie.
await claim("a_program_on_another_port_that_replays_the_cookie_is_refused", async () => {
  let stolen = "";
  const thief = createServer((request, reply) => {
    stolen = request.headers.cookie ?? stolen;
    reply.setHeader("Content-Type", "text/html");
    reply.end("<body>hostile");
  });
  await new Promise((done) => thief.listen(0, "127.0.0.1", done));
  const trap = await context.newPage();
  await trap.goto(`http://127.0.0.1:${thief.address().port}/`);
  assert.ok(stolen.includes(cookie.value), "the browser sent the cookie: otherwise this tests nothing");
  nothingGotIn(await trap.evaluate(attempts, [console127]));
  await trap.close();
  thief.close();

  const replay = (path, headers = {}) => fetch(`${daemon.url}${path}`, {
    method: path === "/console/session" ? "GET" : "POST",
    headers: { Cookie: stolen, ...(path === "/console/session" ? {} : { "Content-Type": "application/json" }), ...headers },
    ...(path === "/console/session" ? {} : { body: '{"sandbox":"web","path":"/etc/passwd"}' }),
  }).then((reply) => reply.status);
  assert.equal(await replay("/console/session"), 401);
  assert.equal(await replay("/console/ticket"), 401);
  assert.equal(await replay("/holt.v1.SandboxService/List"), 401);
  assert.equal(await replay("/holt.v1.SandboxService/List", { "X-Holt-Session": "0".repeat(64) }), 401);
  assert.equal(await replay("/holt.v1.SandboxService/List", { "X-Holt-Session": "" }), 401);
  assert.equal(await replay("/console/session", { Cookie: "", "X-Holt-Session": key }), 401, "the key without the cookie");

  const answer = await new Promise((done, fail) => {
    const socket = connect(daemon.port, "127.0.0.1", () => socket.write(
      `GET /holt.v1/stream HTTP/1.1\r\nHost: 127.0.0.1:${daemon.port}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n` +
      `Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nOrigin: ${daemon.url}\r\nCookie: ${stolen}\r\n\r\n`));
    let text = "";
    socket.on("data", (bytes) => {
      text += bytes.toString("latin1");
      // A masked frame with a wrong key as the first message.
      if (text.includes("101 ") && !socket.isAsked) {
        socket.isAsked = true;
        const message = Buffer.from('{"key":"guess"}');
        socket.write(Buffer.concat([Buffer.from([0x81, 0x80 | message.length, 0, 0, 0, 0]), message]));
      }
    });
    socket.on("close", () => done(text));
    socket.on("error", fail);
  });
  assert.ok(!answer.includes('"ready"'), answer);
  await isUnharmed();
});

await claim("a_page_of_another_site_gets_nothing", async () => {
  const server = createServer((_request, reply) => {
    reply.setHeader("Content-Type", "text/html");
    reply.end(`<body>hostile<form method="post" enctype="text/plain" action="${console127}/console/logout"><input name="{}"></form>`);
  });
  await new Promise((done) => server.listen(0, "127.0.0.1", done));
  const evil = await context.newPage();
  await evil.goto(`http://evil.localhost:${server.address().port}/`);
  nothingGotIn(await evil.evaluate(attempts, [console127, consoleLocal]));
  await framesAreRefused(evil, [console127, consoleLocal]);
  const left = evil.waitForEvent("framenavigated");
  await evil.evaluate(() => document.forms[0].submit());
  await left;
  await evil.close();
  server.close();
  await isUnharmed();
});

// A login of somebody else's account must not happen in the user's browser.
await claim("a_login_cannot_be_forced", async () => {
  const { secret } = await daemon.call("TokenService/Create", { owner: "mallory", role: "user" });
  const server = createServer((_request, reply) => {
    reply.setHeader("Content-Type", "text/html");
    reply.end("<body>hostile");
  });
  await new Promise((done) => server.listen(0, "127.0.0.1", done));
  const fresh = await newContext();
  const evil = await fresh.newPage();
  await evil.goto(`http://127.0.0.1:${server.address().port}/`);
  await evil.evaluate(([url, token]) => fetch(`${url}/console/login`, {
    method: "POST", mode: "no-cors", credentials: "include", headers: { "Content-Type": "text/plain" }, body: JSON.stringify({ token }),
  }).catch(() => undefined), [console127, secret]);
  assert.equal((await fresh.cookies(console127)).length, 0);
  await fresh.close();
  server.close();
});

// A link logs in to the account of its author, and any site can lead a browser to it.
await claim("a_login_link_of_somebody_else_asks_and_keeps_the_session", async () => {
  const { secret } = await daemon.call("TokenService/Create", { owner: "mallory", role: "user" });
  const link = async () => {
    const reply = await fetch(`${daemon.url}/holt.v1.ConsoleService/CreateLogin`, {
      method: "POST", headers: { "Content-Type": "application/json", Authorization: `Bearer ${secret}` }, body: "{}",
    });
    return (await reply.json()).url;
  };
  const server = createServer((_request, reply) => {
    reply.setHeader("Content-Type", "text/html");
    reply.end("<body>hostile");
  });
  await new Promise((done) => server.listen(0, "127.0.0.1", done));
  for (const own of [true, false]) {
    const where = own ? context : await newContext();
    const victim = await where.newPage();
    await victim.goto(`http://127.0.0.1:${server.address().port}/`);
    const url = await link();
    await victim.evaluate((address) => (location.href = address), url);
    await victim.getByText(own ? "A link asks to log this browser in as mallory (user)" : "Log in as mallory (user)?").waitFor();
    assert.ok(!victim.url().includes("login"), victim.url());
    await victim.getByRole("button", { name: own ? "Stay logged in as root" : "Cancel" }).click();
    if (own) await victim.locator(".account-name", { hasText: "root" }).waitFor();
    else await victim.getByLabel("Token").waitFor();
    const cookies = (await where.cookies(console127)).filter(({ name }) => name === "holt_session");
    assert.deepEqual(cookies.map(({ value }) => value), own ? [cookie.value] : []);
    await (own ? victim : where).close();
  }
  server.close();
  await isUnharmed();

  // The same link in the address of a tab that is open loads no page.
  const before = page.url();
  const url = await link();
  await page.evaluate((hash) => (location.hash = hash), new URL(url).hash);
  await page.getByRole("button", { name: "Log in as mallory" }).waitFor();
  assert.equal(page.url(), before);
  await page.getByRole("dialog").getByRole("button", { name: "Close" }).click();
  await isUnharmed();
});

await claim("no_secret_is_in_the_address_in_storage_or_in_the_log", async () => {
  const stored = await page.evaluate(() => JSON.stringify({ ...localStorage }) + document.cookie + location.href);
  assert.ok(!stored.includes(key) && !stored.includes(cookie.value));
  assert.ok(cookie.httpOnly && cookie.sameSite === "Strict");
  await eventually(() => !daemon.log.includes(key) && !daemon.log.includes(cookie.value) && !daemon.log.includes("holt_port_"));
});

// What the attacks provoke: refusals, and messages of the browser about other origins.
forgive(/status of 40[0-9]|CORS|ERR_FAILED|Refused to (display|frame)|WebSocket connection|favicon|frame|CSP: .*holt_session|ERR_BLOCKED/i);
await finish();
