// Two thousand sandboxes in the table. The list is made up, because real ones take minutes; everything
// else is real.
import assert from "node:assert/strict";
import { claim, eventually, finish, newContext, startDaemon } from "./lib.mjs";

const many = 2000;
const daemon = await startDaemon();
await daemon.holt("create", "--name", "real");
const { sandboxes: [real] } = await daemon.call("SandboxService/List");
const states = ["active", "paused", "stopped"];
const crowd = Array.from({ length: many }, (_, i) => ({
  ...real, id: `sb-${String(i).padStart(16, "0")}`, name: `crowd-${String(i).padStart(4, "0")}`,
  state: states[i % 3], labels: { team: `t${i % 10}`, shard: String(i) },
  createdAt: new Date(Date.parse(real.createdAt) - i * 1000).toISOString(),
}));

const context = await newContext();
await context.route("**/holt.v1.SandboxService/List", (route) => route.fulfill({ json: { sandboxes: crowd } }));
const page = await context.newPage();
await page.goto(`${daemon.url}/`);
await page.getByLabel("Token").fill(daemon.token);
const start = Date.now();
await page.getByRole("button", { name: "Log in" }).click();

const rows = page.locator(".table-body .table-row");

await claim("only_rows_in_view_exist", async () => {
  await page.getByText("crowd-0000").waitFor();
  console.log(`    ${many} sandboxes: first rows ${Date.now() - start} ms after the login`);
  const count = await rows.count();
  assert.ok(count > 10 && count < 80, `${count} rows`);
  assert.equal(await page.getByRole("table").getAttribute("aria-rowcount"), String(many + 1));
});

await claim("the_last_row_is_reached_by_scrolling", async () => {
  await page.locator(".table").evaluate((table) => table.scrollTo(0, table.scrollHeight));
  await page.getByText("crowd-1999").waitFor();
  assert.ok(await rows.count() < 80);
});

await claim("scrolling_draws_frames_all_the_time", async () => {
  const times = await page.locator(".table").evaluate(async (table) => {
    const drawn = [];
    while (drawn.length < 30) {
      table.scrollTop = (table.scrollTop + 700) % table.scrollHeight;
      drawn.push(await new Promise((done) => requestAnimationFrame(done)));
    }
    return drawn;
  });
  const longest = Math.max(...times.slice(1).map((each, i) => each - times[i]));
  console.log(`    ${times.length} frames of scrolling in ${(times.at(-1) - times[0]).toFixed(0)} ms, the longest took ${longest.toFixed(0)} ms`);
});

await claim("the_filter_searches_all_of_them", async () => {
  await page.getByRole("searchbox").fill("shard=1234");
  await eventually(async () => (await rows.count()) === 1);
  await page.getByText("crowd-1234").waitFor();
  await page.getByRole("searchbox").fill("team=t7");
  await eventually(async () => (await page.getByRole("table").getAttribute("aria-rowcount")) === String(many / 10 + 1));
});

await claim("all_that_match_are_selected_at_once", async () => {
  await page.getByLabel("Select all").check();
  await page.getByText("200 selected").waitFor();
});

await claim("a_sandbox_to_compare_with_is_found_among_all", async () => {
  await page.evaluate((hash) => (location.hash = hash), `#/sandboxes/${real.id}/turns`);
  const choice = page.getByLabel("Sandbox to compare with", { exact: true });
  await choice.waitFor();
  assert.ok((await choice.locator("option").count()) <= 102);
  await page.getByLabel("Find a sandbox to compare with").fill("crowd-1999");
  await eventually(async () => (await choice.locator("option").allTextContents()).join() === "this sandbox,crowd-1999");
  await page.evaluate(() => (location.hash = "#/"));
  await page.getByText("crowd-0000").waitFor();
});

await claim("an_event_changes_one_row", async () => {
  await page.getByRole("searchbox").fill("real");
  await daemon.holt("update", "real", "--label", "seen=yes");
  await page.getByText("real", { exact: true }).waitFor();
});

await finish();
