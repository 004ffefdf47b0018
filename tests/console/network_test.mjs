// The tab Network: layers, mode, rules, the test box, the live log with "Allow this", the fields of the create
// dialog, the view of a reader, and hostile names. The daemon is in a network namespace without a way out.
import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

if (process.env.HOLT_NET_TEST !== "own") {
  const { status } = spawnSync("unshare", ["--net", process.execPath, fileURLToPath(import.meta.url)], {
    stdio: "inherit", env: { ...process.env, HOLT_NET_TEST: "own" },
  });
  process.exit(status ?? 1);
}
const { claim, eventually, finish, forgive, forgiveAbsence, go, open, settled, sleep, startDaemon } = await import("./lib.mjs");

// An address of the host itself: a rule in holt.conf and one of the sandbox are needed.
const host = "203.0.113.7";
execFileSync("ip", ["link", "set", "lo", "up"]);
execFileSync("ip", ["address", "add", `${host}/32`, "dev", "lo"]);
const server = createServer((_request, reply) => reply.end("hello from the host\n")).listen(8080, host);
const folder = mkdtempSync(join(tmpdir(), "holt-network."));
writeFileSync(join(folder, "holt.conf"), `net.allow = ${host}:8080\nnet.deny = blocked.test\n`);

const daemon = await startDaemon("--config", join(folder, "holt.conf"));
await daemon.holt("create", "--name", "net", "--allow", "example.com", "--deny", "bad.example.com");
await daemon.holt("create", "--name", "twin");
const { id } = JSON.parse(await daemon.holt("inspect", "net"));
const run = (script) => daemon.holt("exec", "net", "--", "sh", "-c", script).catch((error) => error.stdout);
const show = (name = "net") => daemon.holt("net", "show", name);
const page = await open(daemon, { at: `#/sandboxes/${id}/network` });
await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
const dialog = page.getByRole("dialog");
const layer = (name, within = page) => within.getByRole("region", { name: `Layer ${name}`, exact: true });
const button = (name, within = page) => within.getByRole("button", { name, exact: true });
const log = page.getByRole("table", { name: "Connections, newest first" });
const row = (text) => log.getByRole("row").filter({ hasText: text });

await claim("all_layers_are_shown_with_their_rules", async () => {
  await layer("holt.conf").getByText(`${host}:8080`).waitFor();
  await layer("holt.conf").getByText("blocked.test").waitFor();
  await layer("Sandbox").getByText("bad.example.com").waitFor();
  await layer("Sandbox").getByText("example.com", { exact: true }).waitFor();
  assert.equal(await layer("holt.conf").getByRole("button").count(), 0, "only the layer of the sandbox is changed here");
});

await claim("rules_are_added_and_removed", async () => {
  await page.getByLabel("Rule", { exact: true }).fill("a*.com");
  await button("Allow").click();
  await page.getByText("rule 'a*.com'").waitFor();
  assert.doesNotMatch(await show(), /a\*/);
  await page.getByLabel("Rule", { exact: true }).fill("*.example.org");
  await button("Allow").click();
  await layer("Sandbox").getByText("*.example.org").waitFor();
  await page.getByLabel("Rule", { exact: true }).fill("198.51.100.0/24");
  await button("Deny").click();
  await layer("Sandbox").getByText("198.51.100.0/24").waitFor();
  assert.match(await show(), /^allow \*\.example\.org$/m);
  assert.match(await show(), /^deny 198\.51\.100\.0\/24$/m);
  await button("Remove the rule deny 198.51.100.0/24").click();
  await layer("Sandbox").getByText("198.51.100.0/24").waitFor({ state: "detached" });
  assert.doesNotMatch(await show(), /198\.51/);
  await daemon.holt("net", "allow", "net", "elsewhere.example");
  await layer("Sandbox").getByText("elsewhere.example").waitFor(); // a change of another client
  forgive(/status of 400/);
});

await claim("the_mode_is_changed_and_none_asks_for_its_rules", async () => {
  await page.getByLabel("Mode of the sandbox").selectOption("open");
  await button("Set mode").click();
  await page.getByText("The mode is open now.").waitFor();
  assert.equal(await daemon.holt("net", "show", "-q", "net"), "open");
  assert.match(await show(), /^deny bad\.example\.com$/m, "the rules stay");
  await page.getByLabel("Mode of the sandbox").selectOption("none");
  await button("Set mode").click();
  await dialog.getByText("4 rules").waitFor();
  await button("Cancel", dialog).click();
  assert.equal(await daemon.holt("net", "show", "-q", "net"), "open");
  await page.getByLabel("Mode of the sandbox").selectOption("allow");
  await button("Set mode").click();
  await page.getByText("The mode is allow now.").waitFor();
});

await claim("the_test_box_names_the_rule", async () => {
  const ask = async (target, answer) => {
    await page.getByLabel("Would this be allowed?").fill(target);
    await button("Test").click();
    await page.getByText(answer).waitFor();
  };
  await ask("https://example.com", "https://example.com is allowed: allow example.com (sandbox)");
  await ask("bad.example.com:443", "is denied: deny bad.example.com (sandbox)");
  await ask("https://blocked.test", "(holt.conf)");
  await ask("no such thing", "'no such thing'");
  await page.getByLabel("If its address is").fill("10.0.0.1");
  await ask("https://example.com", /https:\/\/example\.com is denied/);
  await page.locator("section.panel").filter({ has: page.getByRole("heading", { name: "Test", exact: true }) }).getByRole("button", { name: "Copy as CLI" }).click();
  const command = await page.evaluate(() => navigator.clipboard.readText());
  assert.equal(command, `holt net test ${id} https://example.com --address 10.0.0.1`);
  forgive(/status of 400/);
});

await claim("a_denied_line_appears_by_itself_and_can_be_allowed", async () => {
  await page.getByText("No connections").waitFor();
  await run(`python3 -c 'import socket; socket.create_connection(("${host}", 8080), 5)'; getent hosts new.example`);
  await row("new.example").first().getByText("denied").first().waitFor();
  await row("new.example").getByRole("button", { name: "Allow new.example" }).first().click();
  await page.getByText("Allowed: new.example").waitFor();
  assert.match(await show(), /^allow new\.example$/m);
  await layer("Sandbox").getByText("new.example").waitFor();

  await run("getent hosts blocked.test");
  await row("blocked.test").getByRole("button", { name: "Allow blocked.test" }).first().click();
  await page.getByText("was added, but does not suffice").waitFor();
  await page.locator(".toast.error").getByRole("button", { name: "Close" }).click();
});

await claim("an_allowed_connection_has_its_bytes_and_duration", async () => {
  await daemon.holt("net", "allow", "net", `${host}:8080`);
  assert.match(await run(`python3 -c 'import urllib.request as u; print(u.urlopen("http://${host}:8080/", timeout=20).read())'`), /hello from the host/);
  const line = row(host).filter({ hasText: "allowed" }).first();
  await line.waitFor();
  const cells = await line.getByRole("cell").allTextContents();
  assert.equal(cells[5], "8080");
  assert.match(cells[6], /203\.0\.113\.7:8080/);
  assert.match(cells[7], /^[1-9]\d* B out, [1-9]\d* B in$/);
  assert.match(cells[8], /^[\d.]+ m?s$/);
});

await claim("the_log_is_filtered_and_paused", async () => {
  await page.getByLabel("Decision").selectOption("denied");
  await row(host).filter({ hasText: "allowed" }).first().waitFor({ state: "detached" });
  await page.getByRole("searchbox").fill("new.exa");
  await eventually(async () => (await log.locator("tbody tr").count()) === (await row("new.example").count()));
  await page.getByRole("searchbox").fill("");
  await page.getByLabel("Decision").selectOption("");
  const panel = page.locator("section.panel").filter({ has: log });
  await button("Pause", panel).click();
  await run("getent hosts during.pause");
  await sleep(1000);
  assert.equal(await row("during.pause").count(), 0);
  await button("Continue").click();
  await row("during.pause").first().waitFor();
});

await claim("a_hidden_tab_asks_for_nothing", async () => {
  let frames = 0;
  const other = await page.context().newPage();
  other.on("websocket", (socket) => socket.on("framesent", ({ payload }) => (frames += String(payload).includes("NetworkService/Log") ? 1 : 0)));
  await other.goto(`${daemon.url}/#/sandboxes/${id}/network`);
  await eventually(() => frames >= 2, "the log is asked for, then waited for");
  await other.evaluate(() => {
    Object.defineProperty(document, "hidden", { value: true, configurable: true });
    document.dispatchEvent(new Event("visibilitychange"));
  });
  await settled(() => frames);
  const before = frames;
  for (let i = 0; i < 4; i++) await run(`getent hosts hidden${i}.example`);
  await sleep(1000);
  assert.equal(frames, before);
  await other.evaluate(() => {
    Object.defineProperty(document, "hidden", { value: false, configurable: true });
    document.dispatchEvent(new Event("visibilitychange"));
  });
  await other.getByRole("row").filter({ hasText: "hidden3.example" }).first().waitFor();
  await other.close();
});

await claim("the_log_goes_on_after_a_restart_of_the_daemon", async () => {
  await daemon.kill();
  await daemon.start();
  await eventually(() => run("getent hosts after.restart; echo done").then((text) => /done/.test(text ?? "")));
  await eventually(async () => {
    await run("getent hosts after.restart");
    return (await row("after.restart").count()) > 0;
  });
  forgiveAbsence();
  forgive(/Failed to load/);
});

await claim("names_from_the_sandbox_are_only_text", async () => {
  const script = String.raw`
import socket
server = [l.split()[1] for l in open("/etc/resolv.conf") if l.startswith("nameserver")][0]
names = [b'<img src=x onerror=globalThis.pwned=1>', b'"><script>globalThis.pwned=1</script>', '\u202egnp.exe'.encode(), b'a\x1b[31m\nb', b'W' * 63, b'javascript:alert(1)']
for name in names:
    s = socket.socket(socket.AF_INET6 if ":" in server else socket.AF_INET, socket.SOCK_DGRAM)
    s.settimeout(1)
    s.sendto(b'\x12\x34\x01\x00\x00\x01' + bytes(6) + bytes([len(name)]) + name + b'\x04evil\x00\x00\x01\x00\x01', (server, 53))
    try: s.recv(512)
    except OSError: pass
    try:
        c = socket.create_connection(("${host}", 8080), 2)
        c.sendall(b'GET / HTTP/1.1\r\nHost: ' + name.replace(b'\n', b'') + b'\r\n\r\n')
        c.recv(512)
    except OSError: pass
`.replace("${host}", host);
  await page.evaluate(() => (globalThis.pwned = 0));
  await run(`python3 - <<'END'\n${script}\nEND`);
  await row("W".repeat(63)).first().waitFor();
  const found = await page.evaluate(() => ({
    pwned: globalThis.pwned,
    elements: document.querySelectorAll("img[src=x], script:not([src])").length,
    hidden: /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200b\u200e\u200f\u202a-\u202e\u2066-\u2069]/.test(document.body.textContent),
    overflow: Math.max(0, document.documentElement.scrollWidth - innerWidth),
  }));
  assert.deepEqual(found, { pwned: 0, elements: 0, hidden: false, overflow: 0 });
});

await claim("the_create_dialog_has_the_policy", async () => {
  await go(page, "#/");
  await button("Create sandbox").first().click();
  await dialog.getByLabel("Name").fill("made");
  await dialog.getByText("Network", { exact: true }).click();
  await dialog.getByLabel("Allow", { exact: true }).fill("example.com\n\n  *.example.org ");
  await dialog.getByLabel("Deny").fill("a*.com");
  await button("Create", dialog).click();
  await dialog.getByText("rule 'a*.com'").waitFor();
  await dialog.getByLabel("Deny").fill("bad.example.org");
  await button("Create", dialog).click();
  await page.getByRole("heading", { name: "made" }).waitFor();
  assert.match(await show("made"), /^mode allow\nallow example\.com\nallow \*\.example\.org\ndeny bad\.example\.org$/m);
  forgive(/status of 400/);
});

await claim("a_proxy_is_shown_without_its_login", async () => {
  writeFileSync(join(folder, "policy"), "mode allow\nallow example.com\nproxy socks5://user:secret@93.184.216.35:1080\n");
  await daemon.holt("create", "--name", "proxied", "--net-file", join(folder, "policy"));
  const proxied = JSON.parse(await daemon.holt("inspect", "proxied"));
  await go(page, `#/sandboxes/${proxied.id}/network`);
  await layer("Sandbox").getByText("socks5://93.184.216.35:1080").waitFor();
  assert.doesNotMatch(await page.content(), /secret/);
});

await claim("a_reader_sees_the_network_and_changes_nothing", async () => {
  const { secret } = await daemon.call("TokenService/Create", { role: "read-only" });
  const reader = await open(daemon, { token: secret, at: `#/sandboxes/${id}/network` });
  await layer("Sandbox", reader).getByText("bad.example.com").waitFor();
  await reader.getByRole("table", { name: "Connections, newest first" }).waitFor();
  assert.equal(await reader.getByRole("main").getByRole("button", { name: /^(Allow|Deny|Remove|Set mode)/ }).count(), 0);
  await reader.getByLabel("Would this be allowed?").fill("https://example.com");
  await button("Test", reader).click();
  await reader.getByText("allow example.com (sandbox)").waitFor();
  const status = await reader.evaluate(async (sandboxId) => (await fetch("/holt.v1.NetworkService/Set", {
    method: "POST", headers: { "Content-Type": "application/json", "X-Holt-Session": sessionStorage.getItem("holt.key") },
    body: JSON.stringify({ sandboxId, allow: ["evil.example"] }),
  })).status, id);
  assert.equal(status, 403);
  assert.doesNotMatch(await show(), /evil\.example/);
  await reader.context().close();
  forgive(/status of 403/);
});

server.close();
server.closeAllConnections?.();
rmSync(folder, { recursive: true, force: true });
await finish();
