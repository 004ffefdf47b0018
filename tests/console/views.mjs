// Every view of the console with something to show: for the tests of accessibility and of hostile
// content, and for `make console-shots`.
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { eventually } from "./lib.mjs";

// Fills a daemon. Returns the id of the sandbox that the views are of.
export async function populate(daemon) {
  const folder = mkdtempSync(join(tmpdir(), "holt-codebase."));
  for (const path of ["src", "secrets"]) mkdirSync(join(folder, path));
  for (const path of ["README.md", ".env", "src/main.c", "secrets/key", "Makefile"]) writeFileSync(join(folder, path), "text\n");
  await daemon.holt("codebase", "add", "app", folder);
  rmSync(folder, { recursive: true });
  await daemon.holt("create", "--name", "web", "--codebase", "app:/srv/app", "--preset", "agent-safe", "--perm", "/src/**=write", "--perm", "/Makefile=view", "--label", "team=red", "--label", "job=build", "--memory", "512M",
    "--cpus", "1.5", "--ttl", "8h:stop", "--allow", "registry.example.com", "--allow", "*.example.org", "--deny", "ads.example.org");
  await daemon.holt("create", "--name", "worker", "--label", "team=blue");
  await daemon.holt("create", "--name", "idle");
  await daemon.holt("stop", "idle");
  await daemon.holt("pause", "worker");
  await daemon.holt("exec", "web", "--", "sh", "-c", "echo one >/workspace/notes.txt; mkdir /workspace/src; echo 'int x;' >/workspace/src/a.c");
  await daemon.holt("turn", "web");
  await daemon.holt("exec", "web", "--", "sh", "-c", "echo two >>/workspace/notes.txt; rm -r /workspace/src; echo three >/workspace/new.txt");
  await daemon.holt("turn", "web");
  await daemon.holt("launch", "--port", "8000", "web", "--", "python3", "-m", "http.server", "-d", "/workspace", "8000");
  // Names that are denied are sent nowhere.
  await daemon.holt("exec", "web", "--", "sh", "-c", "for each in telemetry.example ads.example.org; do getent hosts $each; done; :");
  await daemon.holt("volume", "create", "data");
  await daemon.holt("template", "commit", "web", "web-base");
  await daemon.holt("token", "create", "--note", "CI of team red", "--owner", "ann", "--label", "team=red", "--ttl", "30d");
  await daemon.holt("owner", "set", "ann", "--sandboxes", "20", "--memory", "8G");
  return JSON.parse(await daemon.holt("inspect", "web")).id;
}

const tab = (id, name) => `#/sandboxes/${id}/${name}`;

// Name, address, and a selector that is there when the view is complete.
export function views(id) {
  return [
    ["overview", "#/", ".table-body .table-row"],
    ["summary", tab(id, "summary"), ".tab-body .panel"],
    ["terminals", tab(id, "terminals"), ".tab-body"],
    ["processes", tab(id, "processes"), ".tab-body"],
    ["files", tab(id, "files"), ".tree-row"],
    ["file", `${tab(id, "files")}?path=/workspace/notes.txt`, ".editor-area"],
    ["turns", tab(id, "turns"), ".graph-row"],
    ["diff", `${tab(id, "turns")}?to=turn-0002`, ".file-diff .diff-line"],
    ["services", tab(id, "services"), ".records"],
    ["network", tab(id, "network"), ".net-layer"],
    ["permissions", tab(id, "permissions"), ".perm-row"],
    ["usage", tab(id, "usage"), ".plot canvas"],
    ["sandbox-events", tab(id, "events"), ".records"],
    ["settings", tab(id, "settings"), ".settings-foot"],
    ["events", "#/events", ".records"],
    ["templates", "#/templates", ".records"],
    ["volumes", "#/volumes", ".records"],
    ["models", "#/models", ".panel .empty, .records"],
    ["tokens", "#/access/tokens", ".records"],
    ["sessions", "#/access/sessions", ".records"],
    ["owners", "#/owners", ".records"],
    ["audit", "#/audit", ".records"],
    ["doctor", "#/doctor", ".records"],
  ];
}

// Goes to a view and waits until nothing on it loads any more.
export async function show(page, [name, address, selector]) {
  await page.evaluate((hash) => (location.hash = hash), address);
  await page.locator(selector).first().waitFor();
  await eventually(async () => (await page.locator("main .empty .spinner").count()) === 0, `${name} has loaded`);
}
