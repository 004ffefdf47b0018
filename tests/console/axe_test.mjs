// Accessibility: axe-core finds nothing on any view, in both themes; every view is readable at 200 %, which
// is half the width, and on a phone.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { claim, eventually, finish, forgive, forgiveAbsence, go, open, root, startDaemon } from "./lib.mjs";
import { populate, show, views } from "./views.mjs";

const axe = readFileSync(join(root, "build/console-tests/node_modules/axe-core/axe.min.js"), "utf8");

// Evaluated through the debugger: the content security policy of the page refuses inline scripts.
async function violations(page, within = "html") {
  const debug = await page.context().newCDPSession(page);
  const expression = `${axe}; axe.run(${JSON.stringify(within)}, { resultTypes: ["violations"] }).then(({ violations }) => violations.flatMap((each) =>
    each.nodes.map((node) => each.id + ": " + node.target.join(" ") + ": " + node.failureSummary)))`;
  const { result, exceptionDetails } = await debug.send("Runtime.evaluate", { expression, awaitPromise: true, returnByValue: true });
  await debug.detach();
  assert.equal(exceptionDetails, undefined, JSON.stringify(exceptionDetails));
  return result.value;
}

const overflow = (page) => page.evaluate(() => document.documentElement.scrollWidth - innerWidth);

const daemon = await startDaemon();
const id = await populate(daemon);
const page = await open(daemon);

for (const theme of ["light", "dark"]) {
  await claim(`every_view_passes_axe_in_the_${theme}_theme`, async () => {
    await page.emulateMedia({ colorScheme: theme });
    const found = {};
    for (const view of views(id)) {
      await show(page, view);
      const here = await violations(page);
      if (here.length > 0) found[view[0]] = here;
    }
    assert.deepEqual(found, {});
  });
}

const dialog = page.getByRole("dialog");
const press = (name) => page.getByRole("button", { name, exact: true }).first().click();
const tab = (name) => `#/sandboxes/${id}/${name}`;
const turn = async () => {
  await go(page, tab("turns"));
  await page.locator(".graph-row", { hasText: "turn-0001" }).click();
};

// What is behind a click: name, how it is opened, what is there then. A dialog is closed with Escape.
const opened = [
  ...[["#/", "Create sandbox"], ["#/templates", "New template"], ["#/templates", "Share"], ["#/volumes", "New volume"],
    ["#/access/tokens", "New token"], ["#/owners", "Set ceilings"], ["#/events", "Keyboard shortcuts"],
    [tab("processes"), "Start"], [tab("summary"), "Destroy"]]
    .map(([address, name]) => [name, async () => {
      await go(page, address);
      await press(name);
    }, dialog]),
  ["fork", async () => {
    await turn();
    await press("Fork");
  }, dialog],
  ["rollback", async () => {
    await turn();
    await press("Roll back to it");
  }, dialog.locator(".lost")],
  ["conflict", async () => {
    await go(page, `${tab("files")}?path=/workspace/clash.txt`);
    await page.getByRole("textbox", { name: /^Contents of/ }).fill("mine\n");
    // Again and again: the page may not watch the file yet.
    await eventually(async () => {
      await daemon.holt("exec", "web", "--", "sh", "-c", `echo theirs-${Date.now()} >/workspace/clash.txt`);
      return page.getByText("Somebody else has changed this file").isVisible();
    });
    await press("Save");
  }, dialog.locator(".diff-line").first()],
  ["a login link", async () => {
    const { url } = await daemon.call("ConsoleService/CreateLogin");
    await page.evaluate((hash) => (location.hash = hash), new URL(url).hash);
  }, dialog.getByText("A link asks")],
];

for (const theme of ["light", "dark"]) {
  await claim(`dialogs_pass_axe_in_the_${theme}_theme`, async () => {
    await page.emulateMedia({ colorScheme: theme });
    await daemon.holt("exec", "web", "--", "sh", "-c", "echo one >/workspace/clash.txt");
    const found = {};
    for (const [name, open, there] of opened) {
      await open();
      await there.waitFor();
      const here = await violations(page);
      if (here.length > 0) found[name] = here;
      await page.keyboard.press("Escape");
      await dialog.waitFor({ state: "detached" });
      if (name === "conflict") {
        await page.getByRole("button", { name: "Read again" }).first().click();
        await dialog.getByRole("button", { name: "Discard" }).click();
        await page.getByText("not saved").waitFor({ state: "detached" });
      }
    }
    forgive(/status of 412|Resize/);
    assert.deepEqual(found, {});
  });

  await claim(`an_open_terminal_and_output_pass_axe_in_the_${theme}_theme`, async () => {
    await go(page, tab("terminals"));
    if (theme === "light") await press("Open a shell");
    await page.locator('[data-phase="live"]').waitFor();
    await press("Other terminals");
    assert.deepEqual(await violations(page), []);
    const process = await daemon.holt("exec", "-d", "web", "--", "sh", "-c", "echo some output; sleep 600");
    await go(page, `${tab("processes")}?process=${process}`);
    await page.locator(".output-row").first().waitFor();
    assert.deepEqual(await violations(page), []);
  });

  await claim(`the_login_page_passes_axe_in_the_${theme}_theme`, async () => {
    const context = await page.context().browser().newContext({ colorScheme: theme });
    const login = await context.newPage();
    await login.goto(`${daemon.url}/`);
    await login.getByLabel("Token").waitFor();
    assert.deepEqual(await violations(login), []);
    await login.goto("about:blank");
    await login.goto((await daemon.call("ConsoleService/CreateLogin")).url);
    await login.getByText("Log in as root").waitFor();
    assert.deepEqual(await violations(login), []);
    await context.close();
  });
}

for (const [name, width] of [["at_200_percent", 640], ["on_a_phone", 375]]) {
  await claim(`no_view_is_wider_than_the_window_${name}`, async () => {
    await page.setViewportSize({ width, height: 720 });
    const found = {};
    for (const view of views(id)) {
      await show(page, view);
      if ((await overflow(page)) > 0) found[view[0]] = await overflow(page);
    }
    assert.deepEqual(found, {});
  });
}

await claim("every_link_of_the_navigation_is_in_sight_on_a_phone", async () => {
  await page.setViewportSize({ width: 375, height: 720 });
  const hidden = await page.locator(".nav-link").evaluateAll((links) => links
    .map((each) => [each.textContent, each.getBoundingClientRect()])
    .filter(([, box]) => box.width === 0 || box.left < 0 || box.right > innerWidth || box.bottom > innerHeight).map(([name]) => name));
  assert.deepEqual(hidden, []);
  assert.ok((await page.locator(".nav-link").count()) >= 8);
});

await claim("the_keyboard_reaches_every_link_and_button_of_a_page", async () => {
  await page.setViewportSize({ width: 1280, height: 800 });
  await go(page, "#/templates");
  await page.locator(".records").waitFor();
  const wanted = await page.locator("a[href]:visible, button:enabled:visible, input:enabled:visible, [tabindex='0']:visible").count();
  const reached = new Set();
  await page.locator(".brand").focus();
  for (let i = 0; i < wanted + 2; i++) {
    reached.add(await page.evaluate(() => {
      const all = [...document.querySelectorAll("a[href], button, input, [tabindex='0']")];
      return all.indexOf(document.activeElement);
    }));
    await page.keyboard.press("Tab");
  }
  reached.delete(-1);
  // The link that skips to the content is before the first.
  assert.ok(reached.size >= wanted - 1, `${reached.size} of ${wanted}`);
});

await claim("the_banner_passes_axe", async () => {
  await go(page, "#/");
  await daemon.kill();
  await page.locator(".banner").waitFor();
  for (const theme of ["light", "dark"]) {
    await page.emulateMedia({ colorScheme: theme });
    assert.deepEqual(await violations(page, ".banner"), []);
  }
  await daemon.start();
  await page.locator(".banner").waitFor({ state: "detached" });
});

forgiveAbsence();
await finish();
