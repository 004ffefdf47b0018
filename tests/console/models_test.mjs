// The page Models: which there are with their prices, and what a sandbox has used of a local provider.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { claim, eventually, finish, go, open, root, startDaemon } from "./lib.mjs";

const dir = mkdtempSync(join(tmpdir(), "holt-models."));
const upstream = spawn(process.execPath, [join(root, "tests/system/llm/upstream.mjs")], { stdio: ["ignore", "pipe", "inherit"] });
process.on("exit", () => {
  upstream.kill();
  rmSync(dir, { recursive: true });
});
let said = "";
upstream.stdout.on("data", (bytes) => (said += bytes));
const [, port] = await eventually(() => /listening (\d+)/.exec(said));
const file = (name, text) => {
  writeFileSync(join(dir, name), text, { mode: 0o600 });
  return join(dir, name);
};
const prices = { date: "2026-01-01", models: { "claude-test": { input: 2, cacheRead: 0.5, cacheWrite: 4, output: 10 } } };
const models = {
  providers: [{ name: "local", kind: "anthropic", url: `http://127.0.0.1:${port}`, keyFile: file("key", "a-real-key\n") }],
  models: [{ name: "fast", provider: "local", model: "claude-test" }],
  prices: file("prices.json", JSON.stringify(prices)),
};
const daemon = await startDaemon("--models", file("models.json", JSON.stringify(models)));
const page = await open(daemon);
const row = (text) => page.getByRole("row").filter({ hasText: text });

await claim("models_are_listed_with_their_prices", async () => {
  await go(page, "#/models");
  await row("claude-test").waitFor();
  assert.match(await row("claude-test").textContent(), /fast.*anthropic.*local.*\$2\.00\$0\.50\$4\.00\$10\.00/);
  await page.getByText("Prices of 2026-01-01").waitFor();
  await page.getByText("Nothing was used in this time").waitFor();
});

await claim("usage_appears_and_is_summed_by_model_sandbox_owner_and_day", async () => {
  await daemon.holt("create", "--name", "web", "--model", "fast", "--label", "team=red");
  const { id } = JSON.parse(await daemon.holt("inspect", "web"));
  const body = JSON.stringify({ model: "fast", max_tokens: 9, messages: [{ role: "user", content: "[[say x]] [[usage 1000 20 300 40]]" }] });
  await daemon.holt("exec", "web", "-e", `BODY=${body}`, "--", "sh", "-c",
    'curl -sf "$ANTHROPIC_BASE_URL/v1/messages" -H "x-api-key: $ANTHROPIC_API_KEY" -d "$BODY"');
  const usage = page.getByRole("table", { name: "Usage of models" }).locator("tbody tr");
  await usage.filter({ hasText: "fast" }).waitFor(); // the page fetches again by itself
  assert.match(await usage.textContent(), /^fast11,0003004020\$0\.0025/);
  await page.getByRole("heading", { name: "1 request, $0.0025" }).waitFor();
  const choice = page.getByLabel("Sum by");
  await choice.selectOption("Sandbox");
  await usage.getByRole("link", { name: id }).waitFor();
  await choice.selectOption("Owner");
  await usage.filter({ hasText: "root" }).waitFor();
  await choice.selectOption("Day");
  await usage.filter({ hasText: /^\d{4}-\d\d-\d\d/ }).waitFor();
  await page.getByRole("searchbox").fill("team=blue");
  await page.getByText("Nothing was used in this time").waitFor();
  await page.getByRole("searchbox").fill("team=red");
  await usage.first().waitFor();
});

await finish();
