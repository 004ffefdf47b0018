// Takes pictures of every view at three widths, and of the dark theme at one: build/console-shots/.
// usage: tests/console/run tests/console/shots.mjs    (`make console-shots`)
import { finish, go, newContext, open, shot, sleep, startDaemon } from "./lib.mjs";
import { populate, show, views } from "./views.mjs";

const sizes = [["desktop", 1280, 800], ["tablet", 768, 1000], ["phone", 390, 844]];

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
// The views with plots need some time to have one.
await daemon.holt("exec", "web", "--", "sh", "-c", "(while :; do :; done) & sleep 1; kill $!");
for (const view of views(id)) {
  await page.setViewportSize({ width: 1280, height: 800 });
  await show(page, view);
  await sleep(view[0] === "usage" ? 8000 : 700);
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
