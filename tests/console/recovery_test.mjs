// The daemon is killed and comes back: pages go on by themselves.
import assert from "node:assert/strict";
import { claim, eventually, finish, forgive, forgiveAbsence, open, startDaemon } from "./lib.mjs";

const daemon = await startDaemon();
await daemon.holt("create", "--name", "steady");

const page = await open(daemon);
await page.getByText("steady").waitFor();
await page.evaluate(() => (globalThis.wasNotReloaded = true));

await claim("a_banner_says_that_the_daemon_is_away", async () => {
  await daemon.kill();
  await page.locator(".banner").waitFor();
  await page.getByText("steady").waitFor();
});

await claim("the_page_recovers_without_a_reload", async () => {
  await daemon.start();
  const back = Date.now();
  await page.locator(".banner").waitFor({ state: "detached" });
  const seconds = (Date.now() - back) / 1000;
  await daemon.holt("create", "--name", "after");
  await page.getByText("after").waitFor();
  assert.ok(await page.evaluate(() => globalThis.wasNotReloaded));
  console.log(`    the page was back ${seconds.toFixed(2)} s after the daemon`);
});

await claim("the_page_of_a_sandbox_recovers_as_well", async () => {
  await page.evaluate(() => (location.hash = "#/sandboxes/steady"));
  await page.getByRole("heading", { name: "steady" }).waitFor();
  await daemon.kill();
  await page.locator(".banner").waitFor();
  await daemon.start();
  await page.locator(".banner").waitFor({ state: "detached" });
  await daemon.holt("stop", "steady");
  await page.locator(".page-head").getByText("stopped").waitFor();
});

await claim("a_session_that_is_over_leads_to_the_login", async () => {
  const created = await daemon.call("TokenService/Create", { role: "user", label: "short" });
  const other = await open(daemon, { token: created.secret });
  await daemon.call("TokenService/Remove", { id: created.token.id });
  await other.getByLabel("Token").waitFor();
  await eventually(async () => (await other.locator(".login").textContent()).includes("session has ended"));
  await other.context().close();
});

forgiveAbsence();
forgive(/status of 401/);
await finish();
