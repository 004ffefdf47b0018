// Content that a sandbox, a client or another owner chooses: markup, scripts, escape sequences, directions,
// control characters, very long lines. Nothing is executed or loaded, and no view gets wider than the window.
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { claim, eventually, finish, forgive, go, open, sleep, startDaemon } from "./lib.mjs";
import { show, views } from "./views.mjs";

const markup = `"><img src=x onerror="globalThis.pwned=1"><script>globalThis.pwned=1</script><svg/onload=globalThis.pwned=1>`;
const link = `javascript:globalThis.pwned=1`;
const rtl = "\u202egnp.exe\u202c\u2066\u200f\u200b";
const escapes = "\x1b[2J\x1b[31m\x1b]0;hijacked\x07\x1b]52;c;cHduZWQ=\x07\x1b]8;;javascript:alert(1)\x07click\x1b]8;;\x07\x1bP+q\x1b\\\x1b[?1049h\x9b5n";
const long = "W".repeat(1 << 20);
const shown = `${markup} ${link} ${rtl}`;

const names = ["notes.txt", markup.replaceAll("/", "_"), rtl, "new\nline", "tab\tand\rreturn", "esc\x1b[31mred", "n".repeat(255), "-rf", "..hidden", " blank "];

const daemon = await startDaemon();
const folder = mkdtempSync(join(tmpdir(), "holt-codebase."));
for (const name of names) writeFileSync(join(folder, name), shown);
await daemon.holt("codebase", "add", "app", folder);
rmSync(folder, { recursive: true });
const { sandbox } = await daemon.call("SandboxService/Create", {
  codebase: { codebase: "app", path: "/srv/app" }, permissions: { preset: "agent-safe", rules: [`/${markup.replaceAll("/", "_")}${rtl}=read`] },
  name: "x".repeat(128), labels: { ["k".repeat(63)]: "v".repeat(255), html: markup, link, rtl, template: "{{constructor.constructor('pwned=1')()}}" },
});
const id = sandbox.id;
const run = async (...args) => (await daemon.call("ProcessService/Start", { sandboxId: id, process: { args, tag: shown.slice(0, 120) } })).process?.id;
await run("sh", "-c", `printf '%s\\n' "$1" "$2"; printf '%s' "$3" | od -c | head -3; sleep 600`, shown, `${escapes}\n`, rtl);
await run("sh", "-c", "head -c 1048576 /dev/zero | tr '\\0' W; echo; head -c 1048576 /dev/zero | tr '\\0' '<'; sleep 600");
await run("sh", "-c", `printf '%s' "$1"; sleep 600`, escapes);
await daemon.call("ProcessService/Launch", { sandboxId: id, process: { args: ["sleep", "600", shown, escapes] }, port: 8000 });
await run("true", markup, rtl, "a".repeat(5000), escapes);
for (const name of names) {
  await daemon.call("ProcessService/Start", { sandboxId: id, process: { args: ["sh", "-c", `printf '%s' "$2" >"/workspace/$1"`, "sh", name, shown] } });
}
await daemon.call("ProcessService/Start", { sandboxId: id, process: { args: ["sh", "-c", "head -c 1048576 /dev/zero | tr '\\0' W >/workspace/long.txt"] } });
await eventually(async () => Number((await daemon.holt("exec", id, "--", "sh", "-c", "ls -A /workspace | wc -l")).trim()) >= names.length);
await daemon.holt("turn", id);
await daemon.holt("exec", id, "--", "sh", "-c", `for f in /workspace/*; do printf '%s\\n' "$1" >>"$f"; done; rm -f -- "/workspace/-rf"`, "sh", `${shown}${escapes}`);
await daemon.holt("turn", id);
// Names that no rule allows are in the log of the network, whatever they contain.
await daemon.call("NetworkService/Set", { sandboxId: id, allow: ["registry.example.com"] });
await daemon.holt("exec", id, "--", "python3", "-c", `
import socket, sys
server = [line.split()[1] for line in open("/etc/resolv.conf") if line.startswith("nameserver")][0]
for name in sys.argv[1:]:
    query = b"\\x12\\x34\\x01\\x00\\x00\\x01" + bytes(6) + b"".join(bytes([len(each)]) + each for each in (name.encode()[i:i + 60] for i in range(0, min(len(name.encode()), 180), 60))) + b"\\0\\0\\1\\0\\1"
    asked = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    asked.settimeout(1)
    asked.sendto(query, (server, 53))
    try:
        asked.recv(512)
    except OSError:
        pass
`, markup, link, rtl, escapes, "W".repeat(180));
await daemon.call("TokenService/Create", { label: markup.slice(0, 64), owner: "ann" });
await daemon.call("TokenService/Create", { label: rtl, scope: { html: markup } });
await daemon.call("VolumeService/Create", { name: "v".repeat(128) });
// The session of a browser with a hostile name.
await fetch(`${daemon.url}/console/login`, {
  method: "POST", headers: { "Content-Type": "application/json", "User-Agent": `${markup}${"U".repeat(2000)}` }, body: JSON.stringify({ token: daemon.token }),
});

const page = await open(daemon);
const foreign = [];
page.context().on("request", (request) => {
  const { protocol, host } = new URL(request.url());
  if (!["data:", "blob:"].includes(protocol) && host !== `127.0.0.1:${daemon.port}`) foreign.push(request.url());
});
page.on("dialog", (dialog) => {
  foreign.push(`dialog: ${dialog.message()}`);
  void dialog.dismiss();
});
await page.evaluate(() => (globalThis.pwned = 0));

// Nothing ran, nothing was added to the page as an element, no direction or control character is in its text.
async function inspect(name) {
  const found = await page.evaluate(() => {
    const texts = [];
    const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    for (let node = walk.nextNode(); node; node = walk.nextNode()) {
      if (/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200b\u200e\u200f\u202a-\u202e\u2066-\u2069]/.test(node.data)) texts.push(node.data.slice(0, 200));
    }
    return {
      pwned: globalThis.pwned,
      elements: document.querySelectorAll("img[src=x], script:not([src]), svg[onload], [onerror], [onload]").length,
      links: [...document.querySelectorAll("a[href]")].map((each) => each.href).filter((href) => !/^https?:\/\/127\.0\.0\.1|^blob:/.test(href)),
      texts: texts.slice(0, 3),
      title: document.title,
      overflow: Math.max(0, document.documentElement.scrollWidth - innerWidth),
    };
  });
  assert.ok(!found.title.includes("hijacked"), `${name}: ${found.title}`);
  delete found.title;
  assert.deepEqual(found, { pwned: 0, elements: 0, links: [], texts: [], overflow: 0 }, name);
}

const all = () => views(id);

for (const width of [1280, 390]) {
  await claim(`every_view_holds_at_a_width_of_${width}`, async () => {
    await page.setViewportSize({ width, height: 800 });
    const broken = [];
    for (const view of all()) {
      try {
        await show(page, view);
        await sleep(300);
        await inspect(view[0]);
      } catch (error) {
        broken.push(`${view[0]}: ${error.message.slice(0, 700)}`);
      }
    }
    assert.deepEqual(broken, []);
  });
}

// Every item of these lists is opened: the output of processes, the contents of files, the differences of turns.
await claim("whatever_is_opened_is_only_text", async () => {
  for (const [tab, items] of [["processes", ".process-table tbody button"], ["files", "[role=treeitem]"], ["turns", "[aria-label='Paths that differ'] [role=option]"]]) {
    await page.setViewportSize({ width: 1280, height: 800 });
    await go(page, `#/sandboxes/${id}/${tab}`);
    if (tab === "turns") await page.locator(".graph-row", { hasText: "turn-0002" }).click();
    const list = page.locator(items);
    await eventually(async () => (await list.count()) >= 4, `${tab} has items`);
    const count = Math.min(await list.count(), 14);
    for (let i = 0; i < count; i++) {
      await list.nth(i).click();
      await sleep(150);
      await inspect(`${tab} ${i}`);
    }
    await page.setViewportSize({ width: 390, height: 800 });
    await sleep(150);
    await inspect(`${tab} on a phone`);
  }
});

await claim("hostile_addresses_are_only_text", async () => {
  await page.setViewportSize({ width: 1280, height: 800 });
  for (const part of [markup, link, rtl, "../../x", "%", "W".repeat(5000), "__proto__", "constructor"]) {
    for (const address of [`#/sandboxes/${encodeURIComponent(part)}/files`, `#/sandboxes/${id}/${encodeURIComponent(part)}`, `#/${encodeURIComponent(part)}`,
      `#/events?q=${encodeURIComponent(part)}&type=${encodeURIComponent(part)}`, `#/audit?q=${encodeURIComponent(part)}`, `#${part}`]) {
      await go(page, address);
      await sleep(20);
      await inspect(address.slice(0, 80));
    }
  }
});

await claim("the_markup_is_shown_as_text", async () => {
  await go(page, "#/access/tokens");
  await page.getByText(markup.slice(0, 64), { exact: true }).waitFor();
  await page.getByText("\\u{202e}gnp.exe").first().waitFor();
  await go(page, "#/");
  await page.getByText("x".repeat(128)).first().waitFor();
});

await claim("copied_commands_quote_what_they_contain", async () => {
  const context = page.context();
  await context.grantPermissions(["clipboard-read", "clipboard-write"]);
  await go(page, `#/sandboxes/${id}/settings`);
  await page.getByLabel("Memory").fill("300M");
  await page.getByLabel("Value of label 1").fill("$(touch /tmp/pwned); `id` ' \" \\ !");
  await page.locator(".settings-foot").getByRole("button", { name: "Copy as CLI" }).click();
  const command = await page.evaluate(() => navigator.clipboard.readText());
  assert.ok(command.endsWith(`'${Object.keys(sandbox.labels).sort()[0]}=$(touch /tmp/pwned); \`id\` '\\'' " \\ !' ${id}`), command);
});

await claim("nothing_was_loaded_from_elsewhere", () => assert.deepEqual(foreign, []));

forgive(/status of 4(00|04)/);
await finish();
