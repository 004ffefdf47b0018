// Processes: the live list, a log of 100,000 lines, signals, hostile output, a restart of the daemon, a reader.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { claim, countDrawings, drawingsOf, eventually, finish, forgive, forgiveAbsence, go, open, startDaemon } from "./lib.mjs";

const daemon = await startDaemon();
await daemon.holt("create", "--name", "work");
const at = "#/sandboxes/work/processes";
const page = await open(daemon, { at });

const start = async (script, ...flags) => (await daemon.holt("exec", "-d", ...flags, "work", "--", "sh", "-c", script)).trim();
const row = (id) => page.locator(".process-table tr", { has: page.getByRole("button", { name: id, exact: true }) });
const details = (of = page) => of.locator(".process-details");
const choose = (id) => go(page, `${at}?process=${id}`);
const lines = () => page.locator(".output-count").textContent();
const texts = () => page.locator(".output-row .output-text").allTextContents();
const hasLines = (text) => eventually(async () => (await lines()) === text, `there are ${text}`);

await claim("a_process_appears_and_its_end_is_shown", async () => {
  await page.getByText("No process was started yet").waitFor();
  const id = await start("echo hi; exit 3", "--tag", "try");
  await row(id).getByText("exit 3", { exact: true }).waitFor();
  await row(id).getByText("try", { exact: true }).waitFor();
  await choose(id);
  await details().getByText("hi", { exact: true }).waitFor();
});

await claim("the_dialog_starts_a_process", async () => {
  await page.getByRole("button", { name: "Start", exact: true }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("Command").fill("echo \"$PWD and $((6 * 7))\"; sleep 1000");
  await dialog.getByLabel("Directory").fill("/tmp");
  await dialog.getByRole("button", { name: "Start", exact: true }).click();
  await details().getByText("/tmp and 42").waitFor();
});

await claim("a_signal_is_sent_after_a_question", async () => {
  await details().getByRole("button", { name: "Signal" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByText("Asks the process to end").waitFor();
  await dialog.getByRole("button", { name: "Cancel" }).click();
  await details().getByText("running").waitFor();
  await details().getByRole("button", { name: "Signal" }).click();
  await dialog.getByLabel("Signal", { exact: true }).selectOption("9");
  await dialog.getByRole("button", { name: "Send SIGKILL" }).click();
  await details().getByText("killed by SIGKILL").first().waitFor();
});

await claim("output_changes_the_page_at_most_four_times_a_second", async () => {
  const id = await start("echo first; until [ -e /tmp/go ]; do sleep 0.05; done; " +
    "i=0; while [ $i -lt 300 ]; do echo tick-$i; i=$((i+1)); sleep 0.01; done; echo over");
  await choose(id);
  await page.locator(".output-row").first().waitFor();
  await countDrawings(page, ".output-view");
  await daemon.holt("exec", "work", "--", "touch", "/tmp/go");
  await details().getByText("over", { exact: true }).waitFor();
  const { drawings, seconds } = await drawingsOf(page);
  console.log(`    ${drawings} drawings in ${seconds.toFixed(1)} s`);
  assert.ok(drawings >= 1 && drawings <= 5 * (seconds + 1), `${drawings} drawings in ${seconds} s`);
});

let log;
await claim("a_log_of_100000_lines_is_followed", async () => {
  log = await start("seq -f 'line %.0f of the log' 100000; while read -r more; do echo \"$more\"; done", "-i");
  await choose(log);
  await hasLines("100,000 lines");
  await page.getByText("line 100000 of the log").waitFor();
  assert.ok(await page.locator(".output-row").count() < 200);
  await daemon.call("ProcessService/SendInput", {
    sandboxId: "work", processId: log, data: Buffer.from("one more\n").toString("base64"),
  });
  await details().getByText("one more").waitFor();
  await hasLines("100,001 lines");
});

await claim("scrolling_up_stops_following_and_the_button_starts_it", async () => {
  const view = page.locator(".output-view");
  const follow = page.getByRole("button", { name: "Follow" });
  await view.evaluate((element) => (element.scrollTop = 20 * 1000));
  await page.getByText("line 1001 of the log").waitFor();
  assert.equal(await follow.getAttribute("aria-pressed"), "false");
  await follow.click();
  await page.getByText("one more").waitFor();
});

await claim("a_search_finds_all_lines", async () => {
  await page.getByLabel("Search in the output").fill("LINE 5000");
  await page.getByText("1 of 11").waitFor();
  await page.locator(".output-current", { hasText: "line 5000 of the log" }).waitFor();
  await page.getByLabel("Search in the output").press("Enter");
  await page.locator(".output-current", { hasText: "line 50000 of the log" }).waitFor();
  assert.equal(await page.locator(".output-current mark").textContent(), "line 5000");
  await page.getByLabel("Search in the output").fill("");
});

await claim("the_download_has_every_byte", async () => {
  const [download] = await Promise.all([
    page.waitForEvent("download"), page.getByRole("button", { name: "Download" }).click(),
  ]);
  assert.equal(readFileSync(await download.path(), "utf8"), `${await daemon.holt("logs", "work", log)}\n`);
});

await claim("a_followed_log_goes_on_after_a_kill_of_the_daemon", async () => {
  const id = await start("for i in $(seq 60); do echo tick-$i; sleep 0.05; done");
  await choose(id);
  await page.getByText("tick-5", { exact: true }).waitFor();
  await daemon.kill();
  await page.locator(".banner").waitFor();
  await daemon.start();
  await hasLines("60 lines");
  await details().getByText("exit 0").first().waitFor();
  assert.equal(await daemon.holt("logs", "work", id), Array.from({ length: 60 }, (_, i) => `tick-${i + 1}`).join("\n"));
  await page.locator(".output-view").evaluate((element) => (element.scrollTop = 0));
  await page.getByText("tick-1", { exact: true }).waitFor();
  const shown = (await texts()).filter((each) => each.startsWith("tick-")).map((each) => Number(each.slice(5)));
  assert.deepEqual(shown, shown.map((_, i) => shown[0] + i));
});

await claim("hostile_output_is_only_shown", async () => {
  const id = await start("printf '\\033[31mred\\033[0m <img src=x onerror=alert(1)><script>alert(2)</script>\\n'; " +
    "printf 'a\\342\\200\\256b\\001\\033]52;c;c3RvbGVu\\007\\033]8;;javascript:alert(3)\\007link\\033]8;;\\007\\n'; " +
    "head -c 1000000 /dev/zero | tr '\\0' L; echo; printf '\\377\\376\\n\\rover\\rwritten\\n'; echo the end", "--tag", "<b>bold</b>");
  await choose(id);
  await details().getByText("the end", { exact: true }).waitFor();
  const shown = await texts();
  assert.equal(shown[0], "red <img src=x onerror=alert(1)><script>alert(2)</script>");
  assert.equal(shown[1], "a\\u202eb^Alink");
  assert.match(shown[2], /^L{8192} … 991,808 more characters$/);
  assert.deepEqual(shown.slice(3), ["\ufffd\ufffd", "written", "the end"]);
  assert.equal(await page.locator(".content img, .content script, .output a").count(), 0);
  const red = await page.locator(".output-text span", { hasText: /^red$/ }).evaluate((each) => getComputedStyle(each).color);
  assert.notEqual(red, await page.locator(".output-view").evaluate((each) => getComputedStyle(each).color));
  await details().getByText("<b>bold</b>").waitFor();
  // One long line neither widens the page nor covers the rest.
  assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth));
});

await claim("a_service_shows_its_port_and_its_restarts", async () => {
  const { process } = await daemon.call("ProcessService/Launch", {
    sandboxId: "work", port: 8000, restart: "on_failure",
    process: { args: ["sh", "-c", "[ -e /tmp/second ] && exec sleep 1000; touch /tmp/second; exit 1"] },
  });
  await row(process.id).getByText("1 (on failure)").waitFor();
  await row(process.id).getByText(process.address).waitFor();
});

await claim("a_reader_sees_everything_and_changes_nothing", async () => {
  const { secret } = await daemon.call("TokenService/Create", { readOnly: true });
  const reader = await open(daemon, { token: secret, at: `${at}?process=${log}` });
  await reader.getByText("one more").waitFor();
  assert.equal(await reader.getByRole("button", { name: /^(Start|Signal|Run again)$/ }).count(), 0);
  const status = await reader.evaluate(async (processId) => {
    const reply = await fetch("/holt.v1.ProcessService/Signal", {
      method: "POST", body: JSON.stringify({ sandboxId: "work", processId, signal: 9 }),
      headers: { "Content-Type": "application/json", "X-Holt-Session": sessionStorage.getItem("holt.key") },
    });
    return reply.status;
  }, log);
  assert.equal(status, 403);
  await reader.context().close();
});

forgiveAbsence();
forgive(/status of 403/);
await finish();
