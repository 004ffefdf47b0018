// The main flow of each page besides the overview: usage, services, events, settings, templates, volumes,
// tokens, sessions, owners, audit, doctor; shortcuts; the view of a reader.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { claim, eventually, finish, forgive, go, open, startDaemon } from "./lib.mjs";

const daemon = await startDaemon();
for (const name of ["web", "twin"])
  await daemon.holt("create", "--name", name, "--label", "team=red", "--label", "its=a \"test\" $HOME");
const inspect = async (name) => JSON.parse(await daemon.holt("inspect", name));
const web = (await inspect("web")).id;
const page = await open(daemon);
await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
const dialog = page.getByRole("dialog");
const row = (text) => page.getByRole("row").filter({ hasText: text });
const clipboard = () => page.evaluate(() => navigator.clipboard.readText());
const button = (name, within = page) => within.getByRole("button", { name, exact: true });

await claim("usage_is_plotted_while_it_changes", async () => {
  await go(page, `#/sandboxes/${web}/usage`);
  await page.locator(".plot canvas").nth(3).waitFor();
  assert.equal(await page.locator(".plot canvas").count(), 4);
  await daemon.holt("exec", "web", "--", "sh", "-c", "sleep 600 & sleep 600 & sleep 600 &");
  await page.locator(".meter-box").filter({ hasText: "Processes and threads" }).locator("strong").filter({ hasText: /^[3-9]/ }).waitFor();
  await page.getByText(/[4-9] points since/).waitFor();
});

await claim("a_preview_opens_in_a_tab_of_its_own_without_a_secret_in_its_address", async () => {
  await daemon.holt("exec", "web", "--", "sh", "-c", "echo '<h1>served from the sandbox</h1>' >/workspace/index.html");
  await daemon.holt("launch", "--port", "8000", "web", "--", "python3", "-m", "http.server", "-d", "/workspace", "8000");
  await go(page, `#/sandboxes/${web}/services`);
  await row("http.server").getByText("running").waitFor();
  const opened = page.context().waitForEvent("page");
  await row("http.server").getByRole("button", { name: "Preview" }).click();
  const preview = await opened;
  await preview.getByRole("heading", { name: "served from the sandbox" }).waitFor();
  assert.equal(preview.url(), `http://8000-${web.replace("-", "")}.localhost:${daemon.port}/`);
  assert.deepEqual(await preview.evaluate(() => [globalThis.opener, document.referrer, document.cookie]), [null, "", ""]);
  await preview.close();
  forgive(/favicon/);
});

await claim("a_forward_lasts_until_it_is_closed", async () => {
  await page.getByLabel("Port in the sandbox").fill("8000");
  await button("Forward to the host").click();
  const own = row("this page");
  await own.waitFor();
  const address = await own.locator("td").first().textContent();
  assert.match(await (await fetch(`http://${address}/`)).text(), /served from the sandbox/);
  await own.getByRole("button", { name: "Close" }).click();
  await own.waitFor({ state: "detached" });
  await assert.rejects(fetch(`http://${address}/`));
});

await claim("events_appear_live_and_can_be_filtered", async () => {
  await go(page, "#/events");
  await row("sandbox.created").first().waitFor();
  await daemon.holt("create", "--name", "later");
  await row("sandbox.created").filter({ hasText: "later" }).waitFor();
  await page.getByRole("searchbox").fill("later");
  await eventually(async () => (await page.locator("tbody tr").count()) === 1);
  await page.getByLabel("Type").selectOption({ label: "Processes" });
  await page.getByText("No event has this word").waitFor();
  await page.getByRole("searchbox").fill("");
  await row("process.started").first().waitFor();
  assert.equal(await row("sandbox.created").count(), 0);
  await button("Pause").click();
  const before = await page.locator("tbody tr").count();
  await daemon.holt("exec", "web", "--", "true");
  await daemon.holt("exec", "web", "--", "true");
  assert.equal(await page.locator("tbody tr").count(), before);
  await button("Continue").click();
  await eventually(async () => (await page.locator("tbody tr").count()) >= before + 4);
  await daemon.holt("rm", "-f", "later");
});

await claim("settings_change_limits_times_and_labels", async () => {
  await go(page, `#/sandboxes/${web}/settings`);
  await page.getByLabel("Memory").fill("lots");
  await page.getByText("a size looks like 512M or 2G").waitFor();
  assert.ok(await button("Save").isDisabled());
  await page.getByLabel("Memory").fill("384M");
  await page.getByLabel("CPUs").fill("0.75");
  await page.getByLabel("Time to live from now").fill("90m");
  await page.getByLabel("Then").first().selectOption("pause");
  await page.getByLabel("Without a request for").fill("45m");
  await page.getByLabel("Value of label 2").fill("blue");
  await button("Add a label").click();
  await page.getByLabel("Key of label 3").fill("note");
  await page.getByLabel("Value of label 3").fill("it's $(rm -rf /) \"quoted\"");
  await button("Remove label 1").click();
  await page.locator(".settings-foot").getByRole("button", { name: "Copy as CLI" }).click();
  const command = await clipboard();
  await button("Save").click();
  await page.getByText("The settings were saved.").waitFor();
  const changed = await inspect("web");
  assert.equal(Number(changed.limits.memoryBytes), 384 << 20);
  assert.equal(changed.limits.cpuMillis, 750);
  assert.equal(changed.expireAction, "pause");
  assert.equal(Number(changed.idleTimeoutMs), 45 * 60_000);
  assert.deepEqual(changed.labels, { team: "blue", note: "it's $(rm -rf /) \"quoted\"" });

  const env = { ...process.env, PATH: `${process.env.HOLT_BUILD_DIR ?? "build"}:${process.env.PATH}`, HOLT_HOST: `unix://${daemon.dir}/run/holt.sock` };
  execFileSync("bash", ["-c", command.replace(web, "twin")], { env });
  const twin = await inspect("twin");
  assert.deepEqual(twin.labels, changed.labels);
  assert.deepEqual(twin.limits, changed.limits);
  assert.equal(twin.idleTimeoutMs, changed.idleTimeoutMs);
});

await claim("only_what_was_edited_is_saved", async () => {
  await go(page, `#/sandboxes/${web}/settings`);
  await page.getByLabel("CPUs").fill("0.5");
  await page.getByLabel("Value of label 1").fill("mine");
  await daemon.holt("update", "web", "--memory", "640M", "--label", "by=others", "--idle-timeout", "2h:stop");
  await eventually(async () => (await page.getByLabel("Memory").inputValue()) === "640M");
  assert.equal(await page.getByLabel("CPUs").inputValue(), "0.5", "what was edited stays");
  await button("Save").click();
  await eventually(async () => (await inspect("web")).limits.cpuMillis === 500);
  const changed = await inspect("web");
  assert.equal(Number(changed.limits.memoryBytes), 640 << 20);
  assert.equal(Number(changed.idleTimeoutMs), 2 * 3600_000);
  assert.equal(changed.labels.by, "others");
  assert.ok(Object.values(changed.labels).includes("mine"));
});

await claim("an_action_alone_is_changed_and_copied", async () => {
  await page.getByLabel("Then").first().selectOption("stop");
  await page.getByLabel("Then").last().selectOption("pause");
  const command = await page.locator(".settings-foot [data-cli]").getAttribute("data-cli");
  assert.equal(command, `holt update --ttl :stop --idle-timeout :pause ${web}`);
  await daemon.holt("update", "twin", "--ttl", ":stop", "--idle-timeout", ":pause");
  await button("Save").click();
  for (const name of ["web", "twin"]) {
    await eventually(async () => (await inspect(name)).expireAction === "stop");
    const { idleAction, expiresAt, idleTimeoutMs } = await inspect(name);
    assert.equal(idleAction, "pause");
    assert.ok(expiresAt && Number(idleTimeoutMs) > 0, "the times stay");
  }
});

await claim("every_place_of_work_has_its_command", async () => {
  await daemon.holt("turn", "web");
  const commandAt = async (address, first, within = ".tab-body") => {
    await go(page, address);
    await page.locator(first).first().waitFor();
    return page.locator(`${within} [data-cli]`).first().getAttribute("data-cli");
  };
  const tab = (name) => `#/sandboxes/${web}/${name}`;
  assert.equal(await commandAt("#/?q=team=blue we&state=active", ".table-row", "main"),
    "holt ls --filter label=team=blue --filter 'name=*we*' --filter state=active");
  assert.equal(await commandAt(tab("summary"), ".summary", ".page-head"), `holt inspect ${web}`);
  assert.equal(await commandAt(tab("processes"), ".process-bar"), `holt ps --all ${web}`);
  assert.equal(await commandAt(`${tab("files")}?path=/etc/hostname`, ".doc-name"), `holt cp ${web}:/etc/hostname .`);
  assert.equal(await commandAt(`${tab("turns")}?from=template&to=turn-0001`, ".graph-row", ".compare"), `holt diff ${web} template turn-0001`);
  await page.locator("body").press("c");
  assert.equal(await clipboard(), `holt diff ${web} template turn-0001`);

  await button("Roll back to it").click();
  const inDialog = () => dialog.locator("[data-cli]").getAttribute("data-cli");
  assert.equal(await inDialog(), `holt rollback ${web} turn-0001`);
  await page.keyboard.press("Escape");
  await button("Fork").click();
  await dialog.getByLabel("Number").fill("2");
  assert.equal(await inDialog(), `holt fork --count 2 --from turn-0001 ${web}`);
  await page.keyboard.press("Escape");
  await go(page, tab("processes"));
  await button("Start").click();
  await dialog.getByLabel("Command").fill("echo 'it is' $HOME");
  await dialog.getByLabel("Port").fill("8123");
  assert.equal(await inDialog(), `holt launch --port 8123 ${web} -- sh -c 'echo '\\''it is'\\'' $HOME'`);
  await page.keyboard.press("Escape");
  await go(page, "#/");
  await button("Create sandbox").click();
  await dialog.getByLabel("Name").fill("copied");
  await dialog.getByLabel("Labels").fill("a=1, b=two words");
  await dialog.getByLabel("Time to live").fill("2h");
  const command = await inDialog();
  await page.keyboard.press("Escape");
  assert.equal(command, "holt create --name copied --label a=1 --label 'b=two words' --ttl 2h:kill");
  const env = { ...process.env, PATH: `${process.env.HOLT_BUILD_DIR ?? "build"}:${process.env.PATH}`, HOLT_HOST: `unix://${daemon.dir}/run/holt.sock` };
  execFileSync("bash", ["-c", command], { env });
  assert.deepEqual((await inspect("copied")).labels, { a: "1", b: "two words" });
  await daemon.holt("rm", "-f", "copied");
});

await claim("a_template_is_made_from_a_sandbox_shared_and_removed", async () => {
  await go(page, "#/templates");
  await button("New template").click();
  await dialog.getByLabel("Sandbox").selectOption(web);
  await dialog.getByLabel("Name").fill("made-here");
  await button("Create", dialog).click();
  await row("made-here").getByText("private").waitFor();
  await row("made-here").getByRole("button", { name: "Share" }).click();
  await dialog.getByLabel("Owners", { exact: true }).fill("ann, bob");
  await button("Share", dialog).click();
  await row("made-here").getByText("ann, bob").waitFor();
  await row("made-here").getByRole("button", { name: "Remove" }).click();
  await dialog.getByText("Will be lost").waitFor();
  await button("Cancel", dialog).click();
  assert.equal(await row("made-here").count(), 1);
  await row("made-here").getByRole("button", { name: "Remove" }).click();
  await button("Remove", dialog).click();
  await row("made-here").waitFor({ state: "detached" });
});

await claim("a_volume_is_created_and_tells_its_sandboxes", async () => {
  await go(page, "#/volumes");
  await button("New volume").click();
  await dialog.getByLabel("Name").fill("shared-data");
  await button("Create", dialog).click();
  await row("shared-data").getByText("no sandbox").waitFor();
  await daemon.holt("create", "--name", "user", "--volume", "shared-data:/data");
  await go(page, "#/events");
  await go(page, "#/volumes");
  await row("shared-data").getByRole("link", { name: "user" }).waitFor();
  await row("shared-data").getByRole("button", { name: "Remove" }).click();
  await button("Remove", dialog).click();
  await page.locator(".toast.error").waitFor();
  await page.locator(".toast.error").getByRole("button", { name: "Close" }).click();
  await daemon.holt("rm", "-f", "user");
  await row("shared-data").getByRole("button", { name: "Remove" }).click();
  await button("Remove", dialog).click();
  await row("shared-data").waitFor({ state: "detached" });
  forgive(/status of 4(00|09|12)/);
});

await claim("a_token_is_shown_once_works_and_is_revoked", async () => {
  await go(page, "#/access/tokens");
  await button("New token").click();
  await dialog.getByLabel("Note").fill("for a test");
  await dialog.getByLabel("Role").selectOption("read-only");
  await dialog.getByLabel("Owner").fill("ann");
  await dialog.getByLabel("Label scope").fill("team=red");
  await button("Create", dialog).click();
  await dialog.getByText("shown once").waitFor();
  const secret = await dialog.locator("code").textContent();
  assert.match(secret, /^holt_[0-9a-f]{64}$/);
  await button("Copy the token", dialog).click();
  assert.equal(await clipboard(), secret);
  await button("Done", dialog).click();
  const list = () => fetch(`${daemon.url}/holt.v1.SandboxService/List`, {
    method: "POST", headers: { "Content-Type": "application/json", Authorization: `Bearer ${secret}` }, body: "{}",
  });
  assert.equal((await list()).status, 200);
  await row("for a test").getByText("team").waitFor();
  assert.ok(!(await page.content()).includes(secret));
  assert.ok(!(await page.evaluate(() => JSON.stringify([{ ...localStorage }, { ...sessionStorage }]))).includes(secret));
  await row("for a test").getByRole("button", { name: "Revoke" }).click();
  await button("Revoke", dialog).click();
  await row("for a test").waitFor({ state: "detached" });
  assert.equal((await list()).status, 401);
});

await claim("a_session_revoked_elsewhere_ends_at_once", async () => {
  const { secret } = await daemon.call("TokenService/Create", { owner: "ann", role: "user" });
  const other = await open(daemon, { token: secret, at: "#/events" });
  await other.getByText("live").waitFor();
  await go(page, "#/access/sessions");
  await row("ann").getByText("127.0.0.1").waitFor();
  await row("this browser").waitFor();
  await row("ann").getByRole("button", { name: "Revoke" }).click();
  await button("Revoke", dialog).click();
  await row("ann").waitFor({ state: "detached" });
  await other.getByLabel("Token").waitFor();
  await other.getByText("The session has ended").waitFor();
  assert.equal(await other.evaluate(() => sessionStorage.getItem("holt.key")), null);
  await other.context().close();
  forgive(/status of 401/);
});

await claim("owners_have_ceilings_to_set", async () => {
  await go(page, "#/owners");
  await button("Set ceilings").click();
  await dialog.getByLabel("Owner", { exact: true }).fill("bob");
  await dialog.getByLabel("sandboxes").fill("7");
  await dialog.getByLabel("memory").fill("2G");
  await button("Set", dialog).click();
  await row("bob").getByText("of 7").waitFor();
  await row("bob").getByText("of 2G").waitFor();
  const bob = JSON.parse(await daemon.holt("owner", "show", "bob", "-o", "json"));
  assert.match(JSON.stringify(bob), /"7"/);
  await row("bob").getByRole("button", { name: "Remove the ceilings" }).click();
  await button("Remove", dialog).click();
  await row("bob").waitFor({ state: "detached" });
});

await claim("the_audit_log_is_searched_and_verified", async () => {
  await go(page, "#/audit");
  await row("token-create").first().waitFor();
  await page.getByRole("searchbox").fill("owner-change");
  await eventually(async () => (await row("owner-change").count()) === 2 && (await row("token-create").count()) === 0);
  await button("Verify").click();
  await page.getByText(/The chain of hashes is intact: \d+ lines/).waitFor();
});

await claim("doctor_lists_its_checks", async () => {
  await go(page, "#/doctor");
  await row("kernel").first().waitFor();
  const checks = JSON.parse(await daemon.holt("doctor", "-o", "json").catch((error) => error.stdout)).checks.map(({ check }) => check);
  for (const check of checks.slice(0, 5)) await row(check).first().waitFor();
});

await claim("shortcuts_move_and_can_be_turned_off", async () => {
  await page.locator("body").press("g");
  await page.locator("body").press("e");
  await page.getByRole("heading", { name: "Events", exact: true }).waitFor();
  await page.locator("body").press("/");
  await page.keyboard.type("ga?");
  assert.equal(await page.getByRole("searchbox").inputValue(), "ga?");
  await page.getByRole("searchbox").fill("");
  await page.locator("h1").click();
  await page.keyboard.press("c");
  await page.getByText("Copied: holt events -f").waitFor();
  await page.keyboard.press("?");
  await dialog.getByText("Keyboard shortcuts").waitFor();
  await dialog.getByLabel("Shortcuts are on").uncheck();
  await page.keyboard.press("Escape");
  await dialog.waitFor({ state: "detached" });
  await page.keyboard.press("?");
  await page.keyboard.press("g");
  await page.keyboard.press("t");
  assert.equal(await dialog.count(), 0);
  assert.equal(new URL(page.url()).hash, "#/events");
});

await claim("a_reader_sees_the_pages_without_actions", async () => {
  await daemon.holt("volume", "create", "kept");
  const { secret } = await daemon.call("TokenService/Create", { role: "read-only" });
  const reader = await open(daemon, { token: secret });
  const actions = /^(Save|Share|Remove|Revoke|New|Create|Set|Preview|Forward|Adopt|Ceilings|Add)/;
  for (const address of ["#/events", "#/templates", "#/volumes", "#/audit", ...["services", "usage", "events", "settings"].map((each) => `#/sandboxes/${web}/${each}`)]) {
    await go(reader, address);
    await reader.locator("main .panel").first().waitFor();
    await eventually(async () => (await reader.locator("main .spinner").count()) === 0);
    assert.equal(await reader.getByRole("main").getByRole("button", { name: actions }).count(), 0, address);
  }
  for (const address of ["#/access/tokens", "#/owners", "#/doctor"]) {
    await go(reader, address);
    await reader.getByText("not allowed").waitFor();
  }
  await reader.context().close();
});

await finish();
