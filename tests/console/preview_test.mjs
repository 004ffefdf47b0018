// A preview of a web server, from the console, in a fresh browser: its link works once, its cookie opens one port,
// and its page reaches neither the console nor another preview.
import assert from "node:assert/strict";
import { claim, eventually, finish, forgive, newContext, open, startDaemon } from "./lib.mjs";

const daemon = await startDaemon();
const server = `
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        body = ("<title>served</title><pre>" + self.requestline + " cookie=" + str(self.headers["Cookie"]) + "</pre>").encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Set-Cookie", "holt-preview=planted; Path=/")
        self.send_header("Set-Cookie", "own=1; Path=/; Domain=localhost")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
`;
const ids = {};
for (const name of ["web", "twin"]) {
  await daemon.holt("create", "--name", name);
  await daemon.holt("launch", "--port", "8000", name, "--", "python3", "-c", server, "8000");
  ids[name] = JSON.parse(await daemon.holt("inspect", name)).id;
}
const hostOf = (name, port = 8000) => `http://${port}-${ids[name].replace("-", "")}.localhost:${daemon.port}`;
const page = await open(daemon, { at: `#/sandboxes/${ids.web}/services` });
const context = page.context();
const link = async (name) => (await daemon.call("PortService/Preview", { sandboxId: ids[name], port: 8000 })).url;
// The status of an address in a browser that has nothing, or in this one.
const status = async (url, within) => {
  const fresh = within ?? (await newContext());
  const tab = await fresh.newPage();
  const reply = await tab.goto(url);
  const result = [reply.status(), tab.url()];
  await (within ? tab : fresh).close();
  return result;
};

async function preview(name) {
  await page.evaluate((hash) => (location.hash = hash), `#/sandboxes/${ids[name]}/services`);
  const opened = context.waitForEvent("page");
  await page.getByRole("row").filter({ hasText: "python3" }).getByRole("button", { name: "Preview" }).first().click();
  const tab = await opened;
  await tab.getByText("GET / HTTP").waitFor();
  return tab;
}

await claim("a_preview_opens_and_the_program_sees_no_secret", async () => {
  const requests = [];
  context.on("request", (request) => requests.push(request.url()));
  const tab = await preview("web");
  assert.equal(tab.url(), `${hostOf("web")}/`);
  const [used] = requests.filter((each) => each.includes("holt-preview="));
  const cookies = await context.cookies(hostOf("web"));
  const own = cookies.find(({ name }) => name === "holt-preview");
  assert.ok(own.httpOnly && own.sameSite === "Lax" && own.path === "/" && own.domain === new URL(hostOf("web")).hostname, JSON.stringify(own));
  assert.notEqual(own.value, "planted");
  assert.ok(!used.includes(own.value));
  await tab.reload();
  const text = await tab.locator("pre").textContent();
  assert.ok(text.includes("cookie=own=1") && !text.includes("holt-preview") && !text.includes(own.value), text);
  assert.deepEqual(await tab.evaluate(() => [globalThis.opener, document.referrer, document.cookie]), [null, "", "own=1"]);
  assert.equal((await status(used))[0], 403, "a link is used once");
  assert.deepEqual(await status(used, context), [200, `${hostOf("web")}/`], "the same browser is redirected");
  await tab.close();
});

await claim("a_link_of_one_sandbox_opens_no_other", async () => {
  const { search } = new URL(await link("web"));
  assert.equal((await status(`${hostOf("twin")}/${search}`))[0], 403);
  assert.equal((await status(`${hostOf("web", 8001)}/`, context))[0], 403);
  assert.equal((await status(`${hostOf("twin")}/`, context))[0], 403);
});

await claim("cookies_of_a_preview_reach_neither_the_console_nor_a_sibling", async () => {
  const [tab, twin] = [await preview("web"), await preview("twin")];
  await tab.evaluate(() => {
    for (const name of ["holt_session", "holt-preview", "__Host-holt-preview", "tossed"]) {
      for (const more of ["; domain=localhost", "; domain=.localhost", `; domain=${location.hostname}`, "", "; path=/deep"])
        document.cookie = `${name}=planted; path=/${more}`;
    }
  });
  for (const url of [daemon.url, `http://localhost:${daemon.port}`, hostOf("twin")]) {
    const planted = (await context.cookies(url)).filter(({ value }) => value === "planted");
    assert.deepEqual(planted, [], url);
  }
  await twin.reload();
  await twin.getByText("GET / HTTP").waitFor();
  await tab.reload();
  await tab.getByText("GET / HTTP").waitFor(); // each cookie of the name is tried
  await tab.close();
  await twin.close();
  await page.reload();
  await page.locator(".frame").waitFor(); // still logged in
});

await claim("a_revoked_preview_is_refused", async () => {
  await context.clearCookies({ name: "holt-preview" });
  const tab = await preview("web");
  await page.evaluate(() => (location.hash = "#/access/sessions"));
  const rows = page.getByRole("row").filter({ hasText: `preview of ${ids.web}:8000` });
  await rows.last().waitFor();
  for (let left = await rows.count(); left > 0; left--) {
    await rows.last().getByRole("button", { name: "Revoke" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Revoke", exact: true }).click();
    await eventually(async () => (await rows.count()) < left);
  }
  assert.equal((await tab.reload()).status(), 403);
  await tab.close();
});

await claim("a_preview_ends_with_the_session_that_made_it", async () => {
  const tab = await preview("web");
  await page.getByRole("button", { name: "Log out" }).click();
  await page.getByLabel("Token").waitFor();
  assert.equal((await tab.reload()).status(), 403);
  await tab.close();
});

forgive(/status of 403|favicon/);
await finish();
