// Takes pictures of every view at three widths, and of the dark theme at one: build/console-shots/.
// usage: tests/console/run tests/console/shots.mjs    (`make console-shots`)
import { finish, go, newContext, open, shot, sleep, startDaemon } from "./lib.mjs";
import { populate, show, views } from "./views.mjs";

const sizes = [["desktop", 1280, 800], ["tablet", 768, 1000], ["phone", 390, 844]];

// What is opened on a view before its picture is taken.
const openings = {
  async terminals(page) {
    await page.getByRole("button", { name: "Open a shell" }).click();
    await page.locator(".xterm").first().click();
    await page.keyboard.type("ls -la /workspace && uname -a\n");
    await sleep(1000);
  },
  processes: (page) => page.locator(".process-table tbody button").first().click(),
  files: (page) => page.getByRole("treeitem").filter({ hasText: "notes.txt" }).click(),
  async turns(page) {
    await page.locator(".graph-row", { hasText: "turn-0002" }).click();
    await page.getByRole("option", { name: "notes.txt" }).click();
  },
  async usage() {
    void daemon.holt("exec", "web", "--", "timeout", "12", "sh", "-c", "sleep 3; x=$(head -c 30000000 /dev/zero | tr '\\0' x); (while :; do :; done) & while :; do sleep 1; :; done").catch(() => undefined);
    await sleep(10_000);
  },
};

const daemon = await startDaemon();
const id = await populate(daemon);
const context = await newContext();
const login = await context.newPage();
await login.goto(`${daemon.url}/`);
await login.getByLabel("Token").waitFor();
for (const [name, width, height] of sizes) {
  await login.setViewportSize({ width, height });
  await shot(login, `login-${name}`);
}
await context.close();

const page = await open(daemon);
for (const view of views(id)) {
  await page.setViewportSize({ width: 1280, height: 800 });
  await show(page, view);
  await openings[view[0]]?.(page);
  await sleep(700);
  for (const [name, width, height] of sizes) {
    await page.setViewportSize({ width, height });
    await sleep(200);
    await shot(page, `${view[0]}-${name}`);
  }
  await page.setViewportSize({ width: 1280, height: 800 });
  await page.emulateMedia({ colorScheme: "dark" });
  await sleep(200);
  await shot(page, `${view[0]}-dark`);
  await page.emulateMedia({ colorScheme: "light" });
}

for (const [address, name, file] of [["#/", "Create sandbox", "create"], ["#/access/tokens", "New token", "new-token"],
  ["#/owners", "Set ceilings", "ceilings"], ["#/events", "Keyboard shortcuts", "shortcuts"]]) {
  await go(page, address);
  await page.getByRole("button", { name, exact: true }).first().click();
  await page.getByRole("dialog").waitFor();
  for (const [size, width, height] of [sizes[0], sizes[2]]) {
    await page.setViewportSize({ width, height });
    await sleep(200);
    await shot(page, `dialog-${file}-${size}`);
  }
  await page.setViewportSize({ width: 1280, height: 800 });
  await page.keyboard.press("Escape");
}
await finish();
