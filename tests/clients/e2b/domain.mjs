// A domain in place of E2B_SANDBOX_URL: each sandbox has names of its own below it, behind TLS, and nothing
// but the name says which is meant. The names are looked up as the address in E2B_DOMAIN_ADDRESS.
import assert from "node:assert/strict";
import dns from "node:dns";
import { readFileSync } from "node:fs";
import { TimeoutError } from "e2b";
import { WebSocket } from "undici";
import { claim, eventually, finish, refused, run, sandbox, start } from "./lib.mjs";

const domain = process.env.E2B_DOMAIN, name = domain.split(":")[0];

// There is no name server for it here.
const { lookup } = dns;
dns.lookup = (host, options, done) => lookup(host.endsWith(name) ? process.env.E2B_DOMAIN_ADDRESS : host, options, done);

await claim("a_sandbox_is_reached_by_its_name", async () => {
  const box = await sandbox();
  assert.equal(box.getHost(8000), `8000-${box.sandboxId}.${domain}`);
  assert.equal(await box.isRunning(), true);
  assert.equal((await run(box, "id -un; echo more >&2")).stdout, "user\n");
  await box.files.write("note", "hello");
  assert.equal(await box.files.read("note"), "hello");
});

await claim("its_ports_have_names_too", async () => {
  const box = await sandbox();
  await box.files.write("web/index.html", "a page");
  await start(box, "python3 -m http.server --directory web 8000");
  await eventually(async () => (await fetch(`https://${box.getHost(8000)}/`)).status === 200);
  assert.equal(await (await fetch(`https://${box.getHost(8000)}/index.html`)).text(), "a page");
  assert.equal((await fetch(`https://${box.getHost(8001)}/`)).status, 502);
});

await claim("a_websocket_speaks_through_tls", async () => {
  const box = await sandbox();
  await box.files.write("ws.py", readFileSync(process.env.WEBSOCKET_SERVER, "utf8"));
  await start(box, "python3 ws.py server 8000");
  let socket = null;
  await eventually(async () => (socket = await new Promise((resolve) => {
    const each = new WebSocket(`wss://${box.getHost(8000)}/`);
    each.onopen = () => resolve(each);
    each.onerror = () => resolve(null);
  })) !== null);
  socket.binaryType = "arraybuffer";
  for (const size of [1, 125, 70000, 3000000]) {
    const sent = Buffer.alloc(size, "x");
    const got = new Promise((resolve) => { socket.onmessage = (event) => resolve(Buffer.from(event.data)); });
    socket.send(sent);
    assert.ok((await got).equals(sent), `${size} bytes`);
  }
  const closed = new Promise((resolve) => { socket.onclose = resolve; });
  socket.close();
  await closed;
});

await claim("signed_urls_name_their_sandbox", async () => {
  const box = await sandbox();
  await box.files.write("note", "signed");
  const url = await box.downloadUrl("note");
  assert.equal(new URL(url).host, `49983-${box.sandboxId}.${domain}`);
  assert.equal(await (await fetch(url)).text(), "signed");
  assert.equal((await fetch(url.replace("path=note", "path=other"))).status, 401);
});

await claim("a_terminal_speaks_through_tls", async () => {
  const box = await sandbox();
  let said = "";
  const terminal = await box.pty.create({ cols: 80, rows: 24, timeoutMs: 0, onData: (data) => { said += Buffer.from(data).toString(); } });
  await box.pty.sendInput(terminal.pid, new TextEncoder().encode("echo $((6 * 7))\nexit\n"));
  await terminal.wait();
  assert.match(said, /^42\r?$/m);
});

await claim("a_call_ends_with_its_sandbox", async () => {
  const box = await sandbox();
  const sleeper = await start(box, "exec sleep 1000");
  await box.kill();
  await refused(TimeoutError, sleeper.wait(), /killed or reached its end of life/);
});

finish();
