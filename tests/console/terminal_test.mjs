// Terminals: typing, tabs, sizes, a restart of the daemon, hostile output, and the view of a reader.
import assert from "node:assert/strict";
import { claim, eventually, finish, forgive, forgiveAbsence, go, open, startDaemon } from "./lib.mjs";

const daemon = await startDaemon();
await daemon.holt("create", "--name", "work");
const at = "#/sandboxes/work/terminals";
const page = await open(daemon, { at, permissions: ["clipboard-read", "clipboard-write"] });

const sockets = [];
page.on("websocket", (each) => sockets.push(each));

const pane = (of = page) => of.locator(".terminal-pane:not([hidden])");
const isLive = (of = page) => pane(of).locator('[data-phase="live"]').waitFor();
const rows = async (of = page) =>
  (await pane(of).locator(".xterm-rows > div").allTextContents()).map((each) => each.replaceAll("\u00a0", " ").trimEnd());
const shows = (pattern, of = page) =>
  eventually(async () => (await rows(of)).some((each) => pattern.test(each)), `the terminal shows ${pattern}`);
const type = async (text, of = page) => {
  await pane(of).locator(".xterm-helper-textarea").focus();
  await of.keyboard.type(`${text}\n`);
};
const tab = (name, of = page) => of.locator(".terminal-tab-name", { hasText: name });
const size = async (of = page) => (await pane(of).locator(".terminal-status > span").last().textContent()).match(/\d+/g);
// The size that the program has is the one that the console shows.
const hasSize = async (columns, lines) => {
  await type(`clear; until [ "$(stty size)" = "${lines} ${columns}" ]; do sleep 0.05; done; echo fi''ts`);
  await shows(/^fits$/);
};

await claim("a_shell_answers_what_is_typed", async () => {
  await page.getByRole("button", { name: "Open a shell" }).click();
  await isLive();
  await type("echo answer-$((6 * 7))");
  await shows(/^answer-42$/);
});

await claim("a_second_tab_is_a_second_shell", async () => {
  await page.getByRole("button", { name: "New shell" }).click();
  await tab("shell-2").waitFor();
  await isLive();
  await type("cd /tmp; export WHO=second; echo in-$PWD-$WHO");
  await shows(/^in-\/tmp-second$/);
  await tab("main").click();
  await isLive();
  await type("echo in-$PWD-$WHO");
  await shows(/^in-\/workspace-$/);
});

await claim("a_tab_can_be_renamed_and_closed_and_its_shell_continues", async () => {
  await tab("shell-2").dblclick();
  await page.getByLabel("Label").fill("build <b>\u202e");
  await page.getByRole("button", { name: "Rename" }).click();
  await tab("build <b>").waitFor();
  await page.getByRole("button", { name: "Close build <b>" }).click();
  await page.getByRole("button", { name: "Other terminals" }).click();
  await page.locator(".terminal-others button", { hasText: "shell-2" }).click();
  await isLive();
  await type("echo still-$WHO");
  await shows(/^still-second$/);
});

await claim("a_shell_ends_after_a_question", async () => {
  await page.getByRole("button", { name: "End shell" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByText("Will be lost").waitFor();
  await dialog.getByRole("button", { name: "End shell" }).click();
  await tab("shell-2").waitFor({ state: "detached" });
  assert.ok(!(await daemon.holt("shells", "work")).includes("shell-2"));
});

await claim("the_terminal_has_the_size_of_the_window", async () => {
  await isLive();
  await hasSize(...await size());
  const before = await size();
  await page.setViewportSize({ width: 900, height: 600 });
  await eventually(async () => (await size()).every((each, i) => Number(each) < Number(before[i])));
  await hasSize(...await size());
});

await claim("another_page_replays_the_output_and_the_smallest_window_counts", async () => {
  const alone = (await size()).join();
  await type("clear; echo before-the-other");
  await shows(/^before-the-other$/);
  const other = await open(daemon, { at, viewport: { width: 700, height: 500 } });
  await shows(/^before-the-other$/, other);
  await isLive(other);
  await eventually(async () => (await size()).join() !== alone && (await size()).join() === (await size(other)).join());
  await hasSize(...await size());
  await other.context().close();
  await eventually(async () => (await size()).join() === alone);
  await hasSize(...alone.split(","));
  await page.setViewportSize({ width: 1280, height: 800 });
});

await claim("a_question_of_a_program_is_answered_once_and_never_for_a_replay", async () => {
  // Everything that the program receives is in a file. It asks for the cursor, the device and a colour.
  const id = await daemon.holt("exec", "-d", "-t", "work", "--", "bash", "-c",
    "stty raw -echo; exec 3<&0; cat <&3 >/tmp/received & echo asking; until [ -e /tmp/ask ]; do sleep 0.05; done;" +
    "printf '\\033[6n\\033[c\\033]11;?\\033\\\\'; echo asked; wait");
  const received = () => daemon.holt("exec", "work", "--", "cat", "-v", "/tmp/received");
  const show = async () => {
    const one = await open(daemon, { at: `${at}?process=${id}` });
    await isLive(one);
    await shows(/asking/, one);
    return one;
  };
  const first = await show();
  const second = await show();
  await daemon.holt("exec", "work", "--", "touch", "/tmp/ask");
  await shows(/asked/, first);
  await shows(/asked/, second);
  const later = await show();
  await shows(/asked/, later);
  await first.reload();
  await tab(id, first).click();
  await shows(/asked/, first);
  await isLive(first);
  // What is typed last comes last.
  await pane(later).locator(".xterm-helper-textarea").focus();
  await later.keyboard.type("typed");
  await eventually(async () => (await received()).endsWith("typed"));
  const answers = (await received()).slice(0, -"typed".length);
  assert.match(answers, /^\^\[\[\d+;\d+R\^\[\[\?1;2c\^\[\]11;rgb:[0-9a-f/]+\^\[\\$/, answers);
  for (const each of [first, second, later]) await each.context().close();
  await daemon.holt("kill", "work", id);
});

const numbers = async () => (await rows()).filter((each) => /^n\d+$/.test(each)).map((each) => Number(each.slice(1)));

await claim("a_terminal_goes_on_where_it_was_after_a_kill_of_the_daemon", async () => {
  await page.evaluate(() => (globalThis.wasNotReloaded = true));
  // Nothing clears the screen here, so output that came twice would be seen.
  await page.getByRole("button", { name: "New shell" }).click();
  await tab("shell-2").waitFor();
  await isLive();
  await type("for i in $(seq 30); do echo n$i; sleep 0.1; done; echo last-$i");
  await shows(/^n5$/);
  await daemon.kill();
  await pane().locator('[data-phase="away"]').waitFor();
  await page.keyboard.type("echo typed-while-away\n");
  await daemon.start();
  const back = Date.now();
  await isLive();
  console.log(`    the terminal was back ${((Date.now() - back) / 1000).toFixed(2)} s after the daemon`);
  await shows(/^last-30$/);
  assert.deepEqual(await numbers(), Array.from({ length: 30 }, (_, i) => i + 1));
  await shows(/^typed-while-away$/);
  assert.equal((await rows()).filter((each) => each === "typed-while-away").length, 1);
  assert.ok(await page.evaluate(() => globalThis.wasNotReloaded));
  await page.getByRole("button", { name: "Close shell-2" }).click();
  await isLive();
});

await claim("a_flood_of_output_does_not_freeze_the_page", async () => {
  await type("clear; yes");
  await shows(/^y$/);
  // Frames are drawn, the process waits for the screen, and a key still stops it.
  await page.evaluate(() => new Promise((done) => {
    let left = 60;
    const frame = () => (--left > 0 ? requestAnimationFrame(frame) : done());
    requestAnimationFrame(frame);
  }));
  await page.keyboard.press("Control+c");
  await type("echo stopped-$?");
  await shows(/^stopped-130$/);
  assert.ok(!(await rows()).some((each) => each.includes("not kept")));
});

await claim("output_that_a_hidden_tab_could_not_keep_is_not_sent", async () => {
  let received = 0;
  const count = ({ payload }) => (received += payload.length);
  const written = async () => (await daemon.call("ProcessService/List", { sandboxId: "work" })).processes
    .reduce((sum, each) => sum + Number(each.stdout.total), 0);
  const before = await written();
  await type("clear; echo g''o; sleep 2; head -c 30000000 /dev/zero | tr '\\0' z | fold -w 100; echo; echo caught-up");
  await shows(/^go$/);
  await page.getByRole("button", { name: "New shell" }).click();
  await tab("shell-3").waitFor();
  await isLive();
  await eventually(async () => (await written()) > before + 30_000_000, "the output is there");
  sockets.forEach((each) => each.on("framereceived", count));
  await tab("main").click();
  await shows(/^caught-up$/);
  assert.ok(received < 10_000_000, `${received} bytes were sent`);
  await page.getByRole("button", { name: "Close shell-3" }).click();
});

await claim("hostile_output_is_only_shown", async () => {
  await page.evaluate(() => navigator.clipboard.writeText("mine"));
  await type("clear; printf '\\033]52;c;c3RvbGVu\\007\\033]8;;javascript:alert(1)\\007link\\033]8;;\\007" +
    "\\033]0;\\342\\200\\256<img src=x>'; head -c 3000 /dev/zero | tr '\\0' T; printf '\\007'; echo '<script>alert(1)</script>'");
  await shows(/^link<script>alert\(1\)<\/script>$/);
  const title = pane().locator(".terminal-status bdi");
  await eventually(async () => (await title.textContent()).startsWith("<img src=x>TTT"));
  assert.ok((await title.textContent()).length < 100);
  assert.equal(await page.evaluate(() => navigator.clipboard.readText()), "mine");
  assert.equal(await pane().locator("a, img, script").count(), 0);
  assert.equal(await pane().locator("[class*=xterm-underline]").count(), 0, "the link is marked as one");
  await type("clear; head -c 1000000 /dev/zero | tr '\\0' A; echo; printf '\\033[38;5;99;48;2;1;2;3mcolour\\033[0m\\n'");
  await shows(/^colour$/);
  await type("reset; printf '\\342\\200\\256\\342\\201\\246right\\n'; head -c 4096 /dev/urandom; reset; echo s''ane");
  await shows(/^sane$/);
  assert.equal(page.context().pages().length, 1);
});

await claim("a_paste_with_control_characters_is_shown_first", async () => {
  await type("clear");
  await page.evaluate(() => navigator.clipboard.writeText("echo pas''ted\x1b[201~\n"));
  await page.keyboard.press("Control+Shift+V");
  const dialog = page.getByRole("dialog");
  await dialog.getByText("control characters").waitFor();
  await dialog.getByRole("button", { name: "Cancel" }).click();
  assert.ok(!(await rows()).some((each) => each.includes("pas")));
  await page.keyboard.press("Control+Shift+V");
  await dialog.getByRole("button", { name: "Paste" }).click();
  await shows(/echo pas''ted\[201~/);
  await page.keyboard.press("Control+c");
});

await claim("a_rollback_brings_the_shell_back_with_its_state", async () => {
  await type("clear; cd /var; KEPT=yes; echo set-$KEPT");
  await shows(/^set-yes$/);
  const turn = (await daemon.holt("turn", "-q", "work")).trim();
  await type("cd /; KEPT=no; echo changed-$KEPT");
  await shows(/^changed-no$/);
  await daemon.holt("rollback", "work", turn);
  await shows(/rollback: the shell continues/);
  await isLive();
  await type("echo back-$PWD-$KEPT");
  await shows(/^back-\/var-yes$/);
});

await claim("an_ended_shell_says_so_and_starts_again", async () => {
  await type("exit 3");
  await pane().getByText("Ended: exit 3").waitFor();
  await pane().getByRole("button", { name: "Start again" }).click();
  await isLive();
  await type("echo new-$((1 + 1))");
  await shows(/^new-2$/);
});

await claim("a_process_with_a_terminal_is_opened_from_the_processes", async () => {
  const process = (await daemon.holt("exec", "-d", "-t", "work", "--", "cat")).trim();
  await go(page, `#/sandboxes/work/processes?process=${process}`);
  await page.getByRole("link", { name: "Open terminal" }).click();
  await isLive();
  await tab(process).waitFor();
  await type("echoed");
  await shows(/^echoed$/);
});

await claim("a_reader_sees_terminals_and_cannot_type", async () => {
  const { secret } = await daemon.call("TokenService/Create", { readOnly: true });
  const reader = await open(daemon, { token: secret, at });
  await shows(/^new-2$/, reader);
  await isLive(reader);
  const wide = (await size()).join();
  await reader.setViewportSize({ width: 700, height: 500 });
  await eventually(async () => (await size(reader)).join() === wide);
  assert.equal((await size()).join(), wide);
  assert.equal(await reader.getByRole("button", { name: /New shell|End shell|Open a shell/ }).count(), 0);
  await type("touch /workspace/forbidden", reader);
  await type("echo reader-$((2 + 2))", reader);
  await tab("main").click();
  await isLive();
  await type("ls /workspace/forbidden; echo checked-$?");
  await shows(/^checked-[12]$/);
  assert.ok(!(await rows()).some((each) => each.includes("reader-")));
  await reader.context().close();
});

forgiveAbsence();
forgive(/404.*ProcessService\/Resize/); // a process may end before it hears of the size of its window
await finish();
