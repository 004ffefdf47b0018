// Login, the table of sandboxes, the create dialog, actions, bulk actions, and the view of a reader.
import assert from "node:assert/strict";
import { claim, countDrawings, drawingsOf, eventually, finish, forgive, newContext, open, settled, sleep, startDaemon } from "./lib.mjs";

const daemon = await startDaemon();
for (const name of ["alpha", "beta", "gamma"])
  await daemon.holt("create", "--name", name, "--label", `team=${name === "gamma" ? "blue" : "red"}`);

let page;
const row = (name) => page.getByRole("row").filter({ hasText: name });
const names = () => page.locator(".table-body .name bdi").allTextContents();
const stateOf = async (name) => JSON.parse(await daemon.holt("inspect", name, "-o", "json")).state;

await claim("a_wrong_token_is_refused_with_a_reason", async () => {
  const context = await newContext();
  const login = await context.newPage();
  await login.goto(`${daemon.url}/`);
  await login.getByLabel("Token").fill("holt_wrong");
  await login.getByRole("button", { name: "Log in" }).click();
  await login.locator(".hint.error").waitFor();
  assert.match(await login.locator(".hint.error").textContent(), /token/i);
  await context.close();
  forgive(/status of 401/);
});

await claim("a_link_of_holt_console_logs_in_once", async () => {
  const link = /http:\S+#login=\S+/.exec(await daemon.holt("console"))[0];
  const context = await newContext();
  const first = await context.newPage();
  await first.goto(link);
  await first.getByText("Log in as root (admin)?").waitFor();
  assert.ok(!first.url().includes("login"), first.url());
  assert.equal((await context.cookies()).length, 0, "nobody is logged in unasked");
  await first.getByRole("button", { name: "Log in" }).click();
  await first.getByText("alpha").waitFor();
  await context.close();
  const later = await newContext();
  const second = await later.newPage();
  await second.goto(link);
  await second.locator(".hint.error").waitFor();
  await later.close();
  forgive(/status of 401/);
});

await claim("a_token_logs_in", async () => {
  page = await open(daemon);
  await page.getByText("alpha").waitFor();
});

await claim("a_reload_keeps_the_session", async () => {
  await page.reload();
  await page.getByText("alpha").waitFor();
});

await claim("a_second_tab_gets_the_key_from_the_first", async () => {
  const second = await page.context().newPage();
  await second.goto(`${daemon.url}/`);
  await second.getByText("alpha").waitFor();
  await second.close();
});

await claim("the_overview_shows_the_host", async () => {
  await page.getByRole("region", { name: "Health" }).getByText(/ok|degraded/).waitFor();
  await page.getByRole("region", { name: "Storage" }).getByRole("meter").waitFor();
  await page.getByRole("region", { name: "Warm pool" }).waitFor();
  // The first sample is five seconds younger than the daemon.
  for (const name of ["CPU of the host", "Memory of the host"]) {
    const plot = page.getByRole("region", { name });
    await plot.locator("canvas").waitFor();
    await eventually(async () => /\d/.test(await plot.locator(".plot-value").textContent()));
  }
});

await claim("on_a_phone_nothing_covers_the_cards", async () => {
  const size = page.viewportSize();
  await page.setViewportSize({ width: 390, height: 844 });
  const end = (box) => box.y + box.height;
  const boxes = await Promise.all([".cards", ".card", ".plots", ".sandboxes"].map((each) => page.locator(each).last().boundingBox()));
  const [cards, lastCard, plots, sandboxes] = boxes;
  assert.ok(end(lastCard) <= end(cards) && end(cards) <= plots.y && end(plots) <= sandboxes.y, JSON.stringify(boxes));
  await page.setViewportSize(size);
});

await claim("sandboxes_of_others_appear_and_change_without_a_reload", async () => {
  await daemon.holt("create", "--name", "delta");
  await row("delta").getByText("active").waitFor();
  await daemon.holt("stop", "delta");
  await row("delta").getByText("stopped").waitFor();
  await daemon.holt("rm", "-f", "delta");
  await row("delta").waitFor({ state: "detached" });
});

await claim("a_fetch_that_failed_is_repeated", async () => {
  let calls = 0;
  await page.route("**/holt.v1.SandboxService/Get", (route) => (calls++ === 0 ? route.abort() : route.continue()));
  await daemon.holt("update", "beta", "--label", "once=1");
  await row("beta").getByText("once").waitFor();
  assert.ok(calls > 1);
  forgive(/ERR_FAILED.*SandboxService.Get/);
  await page.unroute("**/holt.v1.SandboxService/Get");
  await daemon.holt("update", "beta", "--remove-label", "once");
});

// A reply that was on its way while something changed is older than the change.
await claim("a_late_reply_does_not_undo_a_newer_change", async () => {
  let deliver;
  const held = new Promise((done) => (deliver = done));
  let calls = 0;
  let isTaken = false;
  await page.route("**/holt.v1.SandboxService/Get", async (route) => {
    if (calls++ > 0) return route.continue();
    const response = await route.fetch();
    isTaken = true;
    await held;
    return route.fulfill({ response });
  });
  await daemon.holt("update", "beta", "--label", "note=1");
  await eventually(() => isTaken, "the page fetches what has changed");
  await daemon.holt("pause", "beta");
  await row("beta").getByText("paused").waitFor();
  deliver();
  await eventually(() => calls > 1, "the page fetches it again");
  await row("beta").getByText("note").waitFor();
  assert.ok(await row("beta").getByText("paused").isVisible());
  await page.unroute("**/holt.v1.SandboxService/Get");
  await daemon.holt("resume", "beta");
  await daemon.holt("update", "beta", "--remove-label", "note");
});

await claim("the_filter_finds_names_labels_and_states", async () => {
  const filter = page.getByRole("searchbox");
  await filter.fill("team=red");
  await eventually(async () => (await names()).sort().join() === "alpha,beta");
  await filter.fill("team=red bet");
  await eventually(async () => (await names()).join() === "beta");
  await filter.fill("");
  await page.getByRole("group", { name: "State" }).getByText("Stopped").click();
  await page.getByText("No sandbox matches").waitFor();
  await page.getByRole("group", { name: "State" }).getByText("All").click();
  await eventually(async () => (await names()).length === 3);
});

await claim("a_click_on_a_head_sorts", async () => {
  await page.getByRole("columnheader", { name: "Name" }).getByRole("button").click();
  await eventually(async () => (await names()).join() === "alpha,beta,gamma");
  await page.getByRole("columnheader", { name: "Name" }).getByRole("button").click();
  await eventually(async () => (await names()).join() === "gamma,beta,alpha");
});

await claim("the_dialog_creates_a_sandbox_and_opens_it", async () => {
  await page.getByRole("button", { name: "Create sandbox" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("Time to live").fill("soon");
  assert.ok(await dialog.getByRole("button", { name: "Create" }).isDisabled());
  await dialog.getByLabel("Time to live").fill("2h");
  await dialog.getByLabel("Name").fill("made-here");
  await dialog.getByLabel("Labels").fill("team=green, job=test");
  await dialog.getByText("Limits and runtime").click();
  await dialog.getByLabel("Memory").fill("256M");
  await dialog.getByRole("button", { name: "Create" }).click();
  await page.getByRole("heading", { name: "made-here" }).waitFor();
  const made = JSON.parse(await daemon.holt("inspect", "made-here", "-o", "json"));
  assert.deepEqual(made.labels, { team: "green", job: "test" });
  assert.equal(Number(made.limits.memoryBytes), 256 << 20);
  assert.ok(made.expiresAt);
});

await claim("a_refused_create_says_why_and_keeps_the_form", async () => {
  await page.evaluate(() => (location.hash = "#/"));
  await page.getByRole("button", { name: "Create sandbox" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("Name").fill("made-here");
  await dialog.getByRole("button", { name: "Create" }).click();
  await dialog.getByRole("alert").getByText("made-here").waitFor();
  assert.equal(await dialog.getByLabel("Name").inputValue(), "made-here");
  await dialog.getByRole("button", { name: "Cancel" }).click();
  await dialog.waitFor({ state: "detached" });
  forgive(/status of 409/);
});

await claim("the_header_of_a_sandbox_has_the_actions_of_its_state", async () => {
  await row("made-here").getByRole("link").click();
  const actions = page.getByRole("group", { name: "Actions" });
  await actions.getByRole("button", { name: "Pause" }).click();
  await page.locator(".page-head").getByText("paused").waitFor();
  await actions.getByRole("button", { name: "Resume" }).click();
  await page.locator(".page-head").getByText("active").waitFor();
  await actions.getByRole("button", { name: "Stop" }).click();
  await page.getByRole("dialog").getByText("running processes").waitFor();
  await page.getByRole("dialog").getByRole("button", { name: "Cancel" }).click();
  assert.equal(await stateOf("made-here"), "active");
  await actions.getByRole("button", { name: "Stop" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Stop" }).click();
  await page.locator(".page-head").getByText("stopped").waitFor();
  await actions.getByRole("button", { name: "Start" }).click();
  await page.locator(".page-head").getByText("active").waitFor();
});

await claim("a_sandbox_that_cannot_be_read_for_a_moment_is_not_called_destroyed", async () => {
  await page.goto(`${daemon.url}/#/sandboxes/beta/terminals`);
  await page.getByRole("button", { name: "Open a shell" }).click();
  await page.locator('[data-phase="live"]').waitFor();
  await page.evaluate(() => (document.querySelector(".terminal-pane").isTheSame = true));
  await page.route("**/holt.v1.SandboxService/Get", (route) => route.fulfill({
    status: 429, contentType: "application/json", body: '{"code":"resource_exhausted","message":"too many calls"}',
  }));
  await daemon.holt("update", "beta", "--label", "note=2");
  await page.getByText("too many calls").waitFor();
  assert.equal(await page.getByText("This sandbox was destroyed").count(), 0);
  await page.unroute("**/holt.v1.SandboxService/Get");
  await daemon.holt("update", "beta", "--remove-label", "note");
  await page.getByText("too many calls").waitFor({ state: "detached" });
  assert.ok(await page.evaluate(() => document.querySelector(".terminal-pane").isTheSame), "the terminal stayed");
  forgive(/status of 429/);
});

await claim("a_bulk_destroy_says_what_is_lost_and_asks_once", async () => {
  await daemon.holt("turn", "alpha");
  await page.evaluate(() => (location.hash = "#/"));
  await page.getByRole("searchbox").fill("team=red");
  await eventually(async () => (await names()).length === 2);
  await page.getByLabel("Select all").check();
  await page.getByRole("group", { name: "Actions on the selection" }).getByRole("button", { name: "Destroy" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByText("Destroy 2 sandboxes?").waitFor();
  await dialog.getByText("alpha: its files, 1 snapshot, its processes").waitFor();
  await dialog.getByRole("button", { name: "Destroy 2" }).click();
  await page.getByText("No sandbox matches").waitFor();
  await page.getByText("Destroyed 2 sandboxes").waitFor();
  assert.deepEqual((await daemon.holt("ls", "-q")).split("\n").length, 2);
  await page.getByRole("searchbox").fill("");
});

await claim("a_burst_of_events_changes_the_page_at_most_four_times_a_second", async () => {
  await row("gamma").waitFor();
  await countDrawings(page, ".table-body");
  const rounds = 300;
  for (let i = 0; i < rounds; i++)
    await daemon.call("SandboxService/Update", { sandboxId: "gamma", labels: { round: String(i) } });
  await row("gamma").getByText(String(rounds - 1)).waitFor();
  const { drawings, seconds } = await drawingsOf(page);
  console.log(`    ${rounds} events in ${seconds.toFixed(1)} s, ${drawings} drawings`);
  // Ages and statistics change the page as well.
  assert.ok(drawings >= 1 && drawings <= 6 * (seconds + 1), `${drawings} drawings in ${seconds} s`);
});

await claim("a_hidden_tab_receives_nothing_and_is_current_when_it_is_shown", async () => {
  let frames = 0;
  const hidden = await open(daemon);
  const sockets = [];
  hidden.on("websocket", (socket) => {
    sockets.push(socket);
    socket.on("framereceived", () => frames++);
  });
  await hidden.reload();
  await hidden.getByText("gamma").waitFor();
  const setHidden = (isHidden) => hidden.evaluate((value) => {
    Object.defineProperty(document, "hidden", { configurable: true, get: () => value });
    document.dispatchEvent(new Event("visibilitychange"));
  }, isHidden);
  assert.ok(frames > 0);
  await setHidden(true);
  await settled(() => frames);
  frames = 0;
  const requests = [];
  hidden.on("request", (request) => requests.push(request.url()));
  await daemon.holt("create", "--name", "meanwhile");
  await eventually(() => sockets.every((each) => each.isClosed()), "the connection is closed");
  assert.equal(frames, 0);
  assert.deepEqual(requests, [], "nothing is polled");
  assert.equal(await hidden.getByText("meanwhile").count(), 0);
  await setHidden(false);
  await hidden.getByText("meanwhile").waitFor();
  await hidden.context().close();
});

await claim("a_reader_sees_no_actions_and_is_refused", async () => {
  const created = await daemon.call("TokenService/Create", { role: "read-only" });
  const reader = await open(daemon, { token: created.secret });
  await reader.getByText("gamma").waitFor();
  assert.equal(await reader.getByRole("button", { name: "Create sandbox" }).count(), 0);
  assert.equal(await reader.getByRole("checkbox").count(), 0);
  await reader.getByText("gamma").click();
  await reader.getByRole("heading", { name: "gamma" }).waitFor();
  assert.equal(await reader.getByRole("group", { name: "Actions" }).count(), 0);
  for (const tab of await reader.locator(".tab").all()) {
    await tab.click();
    await eventually(async () => (await reader.locator(".tab-body .spinner").count()) === 0);
    await sleep(100);
    const offered = reader.locator(".button.primary, .button.danger, .button.risky");
    assert.deepEqual(await offered.allTextContents(), [], await tab.textContent());
  }
  const status = await reader.evaluate(async () => {
    const reply = await fetch("/holt.v1.SandboxService/Stop", {
      method: "POST",
      headers: { "Content-Type": "application/json", "X-Holt-Session": sessionStorage.getItem("holt.key") },
      body: JSON.stringify({ sandboxId: "gamma" }),
    });
    return reply.status;
  });
  assert.equal(status, 403);
  const processId = await daemon.holt("exec", "-d", "-t", "gamma", "--", "sleep", "100");
  const refused = await reader.evaluate(async (calls) => {
    const found = [];
    for (const [method, message] of calls) {
      const reply = await fetch(`/holt.v1.${method}`, {
        method: "POST",
        headers: { "Content-Type": "application/json", "X-Holt-Session": sessionStorage.getItem("holt.key") },
        body: JSON.stringify(message),
      });
      if (reply.status !== 403) found.push(`${method}: ${reply.status}`);
    }
    return found;
  }, [
    ["ProcessService/SendInput", { sandboxId: "gamma", processId, data: "eA==" }],
    ["ShellService/Open", { sandboxId: "gamma", name: "main" }],
    ["SandboxService/Update", { sandboxId: "gamma", name: "x" }],
    ["SandboxService/Fork", { sandboxId: "gamma" }],
    ["SnapshotService/TurnComplete", { sandboxId: "gamma" }],
    ["TokenService/Create", {}], ["VolumeService/Create", { name: "x" }], ["TemplateService/Remove", { name: "x" }],
    ["ConsoleService/CreateLogin", {}],
  ]);
  assert.deepEqual(refused, []);
  await daemon.holt("kill", "gamma", processId);
  forgive(/status of 403/);
  assert.equal(await stateOf("gamma"), "active");
  await reader.context().close();
});

await claim("another_owner_sees_neither_the_sandboxes_nor_the_host", async () => {
  const created = await daemon.call("TokenService/Create", { role: "user", owner: "ann" });
  const user = await open(daemon, { token: created.secret });
  await user.getByText("No sandboxes yet").waitFor();
  await user.getByRole("region", { name: "Health" }).waitFor();
  for (const name of ["Storage", "Warm pool", "CPU of the host"])
    assert.equal(await user.getByRole("region", { name }).count(), 0, name);
  await user.context().close();
});

await claim("a_logout_ends_the_session", async () => {
  await page.getByRole("button", { name: "Log out" }).click();
  await page.getByLabel("Token").waitFor();
  assert.equal(await page.evaluate(() => sessionStorage.getItem("holt.key")), null);
  await page.reload();
  await page.getByLabel("Token").waitFor();
});

await finish();
