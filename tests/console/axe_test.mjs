// Accessibility: axe-core finds nothing on any view, in both themes; every view is readable at 200 %, which
// is half the width, and on a phone.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { claim, finish, go, open, root, startDaemon } from "./lib.mjs";
import { populate, show, views } from "./views.mjs";

const axe = readFileSync(join(root, "build/console-tests/node_modules/axe-core/axe.min.js"), "utf8");

// Evaluated through the debugger: the content security policy of the page refuses inline scripts.
async function violations(page) {
  const debug = await page.context().newCDPSession(page);
  const expression = `${axe}; axe.run({ resultTypes: ["violations"] }).then(({ violations }) => violations.flatMap((each) =>
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

await claim("dialogs_pass_axe", async () => {
  const found = {};
  const dialogs = [["#/", "Create sandbox"], ["#/templates", "New template"], ["#/templates", "Share"], ["#/volumes", "New volume"],
    ["#/access/tokens", "New token"], ["#/owners", "Set ceilings"], ["#/events", "Keyboard shortcuts"]];
  for (const [address, name] of dialogs) {
    await go(page, address);
    await page.getByRole("button", { name, exact: true }).first().click();
    await page.getByRole("dialog").waitFor();
    const here = await violations(page);
    if (here.length > 0) found[name] = here;
    await page.keyboard.press("Escape");
    await page.getByRole("dialog").waitFor({ state: "detached" });
  }
  assert.deepEqual(found, {});
});

await claim("the_login_page_passes_axe", async () => {
  const context = await page.context().browser().newContext();
  const login = await context.newPage();
  await login.goto(`${daemon.url}/`);
  await login.getByLabel("Token").waitFor();
  assert.deepEqual(await violations(login), []);
  await context.close();
});

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

await finish();
