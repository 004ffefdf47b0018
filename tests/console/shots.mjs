// Takes pictures of every view at three widths, and of the dark theme at one: build/console-shots/.
// usage: tests/console/run tests/console/shots.mjs [VIEW...]    (`make console-shots`; without VIEW, all)
// SHOTS_SECONDS=N measures for N seconds before the overview, and up to a minute before the usage.
import { finish, go, newContext, open, shot, sleep, startDaemon } from "./lib.mjs";
import { populate, show, views } from "./views.mjs";

const measureMs = Number(process.env.SHOTS_SECONDS ?? 10) * 1000;
const wanted = process.argv.slice(2);
const sizes = [["desktop", 1280, 800], ["tablet", 768, 1000], ["phone", 390, 844]];

// Views that a desktop of 800 pixels cuts off.
const heights = { network: 1060, permissions: 1000 };

// What is opened on a view before its picture is taken.
const openings = {
  async overview(page) {
    await sleep(measureMs);
    await page.locator(".plots canvas").first().waitFor();
  },
  async terminals(page) {
    await page.getByRole("button", { name: "Open a shell" }).click();
    await page.locator(".xterm").first().click();
    await page.keyboard.type("ls -la /workspace && cat notes.txt\n");
    await sleep(1000);
  },
  processes: (page) => page.locator(".process-table tbody button").first().click(),
  files: (page) => page.getByRole("treeitem").filter({ hasText: "primes.py" }).click(),
  async turns(page) {
    await page.locator(".graph-row", { hasText: "turn-0002" }).click();
    await page.getByRole("option", { name: "notes.txt" }).click();
  },
  async network(page) {
    await page.getByLabel("Would this be allowed?").fill("https://ads.example.org");
    await page.getByRole("button", { name: "Test", exact: true }).click();
    await page.getByText("is denied").waitFor();
  },
  async usage() {
    const ms = Math.min(measureMs, 60_000);
    const seconds = String(Math.ceil(ms / 1000) + 2);
    void daemon.holt("exec", "web", "--", "timeout", seconds, "sh", "-c", "sleep 3; x=$(head -c 30000000 /dev/zero | tr '\\0' x); (while :; do :; done) & while :; do sleep 1; :; done").catch(() => undefined);
    await sleep(ms);
  },
};

const daemon = await startDaemon();
const id = await populate(daemon);
await daemon.holt("snapshots", "note", "web", "turn-0002", "tests pass");
await daemon.holt("exec", "web", "--", "sh", "-c", `cat >/workspace/primes.py <<'END'
"""Prints the primes below a limit."""
import sys


def primes(limit):
    sieve = [True] * limit
    for n in range(2, limit):
        if sieve[n]:
            yield n
            for multiple in range(n * n, limit, n):
                sieve[multiple] = False


for n in primes(int(sys.argv[1])):
    print(n)
END`);
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
for (const view of views(id).filter(([name]) => wanted.length === 0 || wanted.includes(name))) {
  await page.setViewportSize({ width: 1280, height: 800 });
  await show(page, view);
  await openings[view[0]]?.(page);
  await sleep(700);
  for (const [name, width, height] of sizes) {
    await page.setViewportSize({ width, height: name === "desktop" ? heights[view[0]] ?? height : height });
    await sleep(200);
    await shot(page, `${view[0]}-${name}`);
  }
  await page.setViewportSize({ width: 1280, height: 800 });
  await page.emulateMedia({ colorScheme: "dark" });
  await sleep(200);
  await shot(page, `${view[0]}-dark`);
  await page.emulateMedia({ colorScheme: "light" });
}

for (const [address, name, file] of wanted.length > 0 ? [] : [["#/", "Create sandbox", "create"], ["#/access/tokens", "New token", "new-token"],
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
