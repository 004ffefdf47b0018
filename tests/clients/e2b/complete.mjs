// Every public method of the SDKs' classes was called by a test, or stands below with the reason why not.
// usage: node complete.mjs CALLED    (what lib.mjs of each test has added)
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";

const exceptions = {
  "Template#addMcpServer": "only for the template mcp-gateway, which pulls images",
  "Template#betaDevContainerPrebuild": "only for the template devcontainer, which pulls images",
  "Template#betaSetDevContainerStart": "as above",
  "Template#bunInstall": "a RUN step that needs a registry of packages",
  "Template#npmInstall": "as above",
  "Template#pipInstall": "as above",
  "Template#aptInstall": "as above, with a mirror",
};
const classes = ["Sandbox.", "Sandbox#", "CodeInterpreter#", "Commands#", "CommandHandle#", "Pty#", "Filesystem#", "WatchHandle#",
  "Git#", "Template.", "Template#", "Volume.", "Volume#", "Secret.", "SandboxPaginator#", "SnapshotPaginator#", "SecretPaginator#"];
const namesOfTypes = { SandboxApi: "Sandbox", TemplateBase: "Template" };

// What the types call private or protected is an ordinary method at run time.
function hiddenOf(packageName, names = namesOfTypes) {
  const require = createRequire(import.meta.url);
  const main = require.resolve(packageName);
  const hidden = new Set();
  let type;
  for (const line of readFileSync(join(main, "..", "index.d.ts"), "utf8").split("\n")) {
    const declared = /^declare (?:abstract )?class (\w+)/.exec(line);
    if (declared) type = names[declared[1]] ?? declared[1];
    const member = /^ {2}(?:private|protected) (static )?(?:readonly |get )?(\w+)/.exec(line);
    if (member) hidden.add(`${type}${member[1] ? "." : "#"}${member[2]}`);
  }
  return hidden;
}

const lines = readFileSync(process.argv[2], "utf8").trim().split("\n").map((line) => line.split(" "));
const named = (kind) => new Set(lines.filter(([word]) => word === kind).map(([, name]) => name));
const seen = named("seen"), called = named("called");
const hidden = new Set([...hiddenOf("e2b"), ...hiddenOf("@e2b/code-interpreter", { Sandbox: "CodeInterpreter" })]);

let failures = 0;
function holds(name, check) {
  try {
    check();
    console.log(`ok: ${name}`);
  } catch (error) {
    failures++;
    console.log(`not ok: ${name}\n    ${String(error.message).replaceAll("\n", "\n    ")}`);
  }
}

const none = (names) => assert.equal(names.sort().join("\n"), "");

holds("every_class_of_the_sdks_was_met", () =>
  none(classes.filter((each) => ![...seen].some((name) => name.startsWith(each)))));
holds("every_method_of_the_sdks_was_called", () =>
  none([...seen].filter((name) => !called.has(name) && !hidden.has(name) && !(name in exceptions))));
holds("no_exception_is_out_of_date", () =>
  none(Object.keys(exceptions).filter((name) => !seen.has(name) || called.has(name))));
process.exit(failures === 0 ? 0 : 1);
