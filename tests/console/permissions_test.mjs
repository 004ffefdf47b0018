// The tab Permissions: rules that are added and removed, presets, the tree by level, the box that tells why, hostile
// names, the view of a reader, a sandbox without a codebase, and many files.
import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { claim, eventually, finish, forgive, go, open, startDaemon } from "./lib.mjs";

const folder = mkdtempSync(join(tmpdir(), "holt-permissions."));
for (const path of ["src/deep", "secrets", "z-many"]) mkdirSync(join(folder, path), { recursive: true });
for (const path of ["src/main.c", "src/deep/part.c", "secrets/key", ".env", "README.md", "<img src=x>\u202e"]) writeFileSync(join(folder, path), "x");
for (let i = 0; i < 3000; i++) writeFileSync(join(folder, `z-many/${i}`), "");

const daemon = await startDaemon();
await daemon.holt("codebase", "add", "app", folder);
await daemon.holt("create", "--name", "safe", "--codebase", "app", "--preset", "agent-safe");
await daemon.holt("create", "--name", "plain");
const idOf = async (name) => JSON.parse(await daemon.holt("inspect", name)).id;
const id = await idOf("safe");
const page = await open(daemon, { at: `#/sandboxes/${id}/permissions` });
const button = (name) => page.getByRole("button", { name, exact: true });
const rules = page.getByRole("list", { name: "Rules", exact: true });
const tree = page.getByRole("list", { name: "Files by level" });
const row = (name) => tree.getByRole("listitem").filter({ hasText: name });
const level = async (name) => (await row(name).first().locator(".level").textContent()).trim();
const perm = () => daemon.holt("perm", "ls", "safe");

await claim("rules_and_files_are_shown_by_level", async () => {
  await rules.getByText("/**/.env*=none@100").waitFor();
  await row("README.md").waitFor();
  assert.equal(await level("README.md"), "read");
  assert.equal(await level(".env"), "none");
  assert.equal(await level("key"), "none");
  await row(".env").getByText("/**/.env*=none@100").waitFor();
});

await claim("directories_close_and_one_level_can_be_shown_alone", async () => {
  await button("src").click();
  await row("main.c").waitFor({ state: "detached" });
  await button("src").click();
  await row("main.c").waitFor();
  await page.getByRole("button", { name: /^none hidden/ }).click();
  await eventually(async () => (await row("README.md").count()) === 0, "only hidden files");
  await row("/secrets/key").waitFor();
  await page.getByRole("button", { name: /^none hidden/ }).click();
  await row("README.md").waitFor();
});

await claim("rules_are_added_and_removed", async () => {
  await page.getByLabel("Rule", { exact: true }).fill("/a[=none");
  await button("Add rule").click();
  await page.getByText("no ']'").waitFor();
  await page.getByLabel("Rule", { exact: true }).fill("/src/**=write@5");
  await button("Add rule").click();
  await rules.getByText("/src/**=write@5").waitFor();
  await eventually(async () => (await level("main.c")) === "write", "the tree is painted anew");
  assert.match(await perm(), /\/src\/\*\*=write@5/);
  await button("Remove the rule /src/**=write@5").click();
  await rules.getByText("/src/**=write@5").waitFor({ state: "detached" });
  assert.doesNotMatch(await perm(), /\/src/);
  await daemon.holt("perm", "add", "safe", "/README.md=write@5");
  await rules.getByText("/README.md=write@5").waitFor(); // a change of another client
  forgive(/status of 400/);
});

await claim("what_is_still_open_is_told_and_ended", async () => {
  await daemon.holt("exec", "-d", "safe", "--", "sh", "-c", "exec 3</workspace/src/main.c; echo ready; exec sleep 1000");
  await eventually(async () => (await daemon.holt("exec", "safe", "--", "sh", "-c", "ls -l /proc/*/fd 2>/dev/null | grep main.c || true")).includes("main.c"), "it is open");
  await page.getByLabel("Rule", { exact: true }).fill("/src/main.c=none@200");
  await button("Add rule").click();
  await page.getByText("1 open file has more than the rules grant now.").waitFor();
  await button("Remove the rule /src/main.c=none@200").click();
  await rules.getByText("/src/main.c=none@200").waitFor({ state: "detached" });
  await page.getByLabel("End the processes that hold files").check();
  await page.getByLabel("Rule", { exact: true }).fill("/src/main.c=none@200");
  await button("Add rule").click();
  await page.getByText("1 process ended.").waitFor();
  await button("Remove the rule /src/main.c=none@200").click();
  await rules.getByText("/src/main.c=none@200").waitFor({ state: "detached" });
});

await claim("why_names_the_rule_and_what_it_takes", async () => {
  await page.getByRole("textbox", { name: "Path" }).fill("src/main.c");
  await button("Ask").click();
  const status = page.getByRole("status").filter({ hasText: "src/main.c" });
  await status.getByText("EACCES").waitFor();
  await status.getByText("/**=read", { exact: true }).waitFor();
  await button("Add this rule").click();
  await status.getByText("is allowed").waitFor();
  await eventually(async () => (await level("main.c")) === "write", "the tree is painted anew");
  await page.getByRole("textbox", { name: "Path" }).fill(".env");
  await button("Ask").click();
  await page.getByRole("status").getByText("ENOENT").waitFor();
});

await claim("a_preset_replaces_all_rules_after_a_question", async () => {
  await page.getByLabel("Preset").selectOption("view-only");
  await button("Set preset").click();
  await page.getByRole("dialog").getByRole("button", { name: "Set preset", exact: true }).click();
  await rules.getByText("/**=view").waitFor();
  await eventually(async () => (await level("README.md")) === "view", "the tree is painted anew");
  assert.match(await perm(), /view-only/);
});

await claim("hostile_names_are_text_and_many_files_are_few_elements", async () => {
  await page.getByRole("button", { name: /^view seen, not read/ }).click();
  await row("<img src=x>\\u{202e}").waitFor();
  assert.equal(await tree.locator("img").count(), 0);
  assert.ok((await tree.getByRole("listitem").count()) < 100);
});

await claim("a_reader_changes_nothing", async () => {
  const { secret } = await daemon.call("TokenService/Create", { role: "read-only" });
  const reader = await open(daemon, { token: secret, at: `#/sandboxes/${id}/permissions` });
  await reader.getByRole("list", { name: "Files by level" }).getByText("README.md").waitFor();
  assert.equal(await reader.getByRole("button", { name: /Remove the rule|Add rule|Set preset/ }).count(), 0);
  await reader.context().close();
});

await claim("a_sandbox_without_a_codebase_has_no_such_tab", async () => {
  await go(page, `#/sandboxes/${await idOf("plain")}/summary`);
  const parts = page.getByRole("navigation", { name: "Parts of the sandbox" });
  await parts.getByText("Network").waitFor();
  assert.equal(await parts.getByText("Permissions").count(), 0);
});

rmSync(folder, { recursive: true, force: true });
await finish();
