// The parts of comparisons and of the graph that compute, without a browser: patches, texts, lanes, paths.
import assert from "node:assert/strict";
import { mkdirSync } from "node:fs";
import { createRequire } from "node:module";
import { join, resolve } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

const root = resolve(fileURLToPath(import.meta.url), "../../..");
const folder = join(root, "build/console-tests/diff-parts");
mkdirSync(folder, { recursive: true });
await createRequire(join(root, "console/"))("esbuild").build({
  entryPoints: ["diff/patch", "turns/graph", "files/path"].map((each) => join(root, `console/src/pages/${each}.ts`)),
  outdir: folder, outExtension: { ".js": ".mjs" }, bundle: true, format: "esm", logLevel: "error",
});
const load = (name) => import(pathToFileURL(join(folder, `${name}.mjs`)));
const { compareTexts, pairs, parsePatch } = await load("diff/patch");
const { layout, nodesOf } = await load("turns/graph");
const { encodePath, join: joinPath, keyOf, nameProblem, parentOf } = await load("files/path");

let failures = 0;
function claim(name, body) {
  try {
    body();
    console.log(`ok: ${name}`);
  } catch (error) {
    failures++;
    console.log(`not ok: ${name}\n    ${error.stack}`);
  }
}

const drawn = (lines) => lines.map((each) => ({ same: " ", added: "+", deleted: "-", hunk: "@", note: "\\" })[each.kind] + each.text);
const patch = "--- a/f\n+++ b/f\n@@ -1,3 +1,3 @@\n one\n-two\n+2\n+--- not a head\n three\n\\ No newline at end of file\n";

claim("a_patch_becomes_lines_with_numbers", () => {
  const { lines, isCut } = parsePatch(patch, 100);
  assert.equal(isCut, false);
  assert.deepEqual(drawn(lines).slice(1, 6), [" one", "-two", "+2", "+--- not a head", " three"]);
  assert.deepEqual(lines.slice(1, 6).map((each) => [each.old, each.new]), [[1, 1], [2, 0], [0, 2], [0, 3], [3, 4]]);
  assert.equal(lines[6].kind, "note");
});

claim("a_patch_is_cut", () => {
  const { lines, isCut } = parsePatch(patch, 3);
  assert.equal(lines.length, 3);
  assert.equal(isCut, true);
});

claim("sides_stand_beside_each_other", () => {
  const sides = pairs(parsePatch(patch, 100).lines).slice(1);
  assert.deepEqual(sides.map(({ left, right }) => [left?.text ?? null, right?.text ?? null]),
    [["one", "one"], ["two", "2"], [null, "--- not a head"], ["three", "three"]]);
});

// What the lines say must lead from one text to the other; equal lines far from a change are left out.
function check(before, after, most) {
  const lines = compareTexts(before, after, most);
  const a = before.split("\n");
  const b = after.split("\n");
  for (const each of lines) {
    if (each.old) assert.equal(each.text, a[each.old - 1]);
    if (each.new) assert.equal(each.text, b[each.new - 1]);
  }
  const deleted = new Set(lines.filter((each) => each.kind === "deleted").map((each) => each.old - 1));
  const added = new Set(lines.filter((each) => each.kind === "added").map((each) => each.new - 1));
  assert.deepEqual(a.filter((_, i) => !deleted.has(i)), b.filter((_, i) => !added.has(i)));
  return deleted.size + added.size;
}

claim("texts_are_compared", () => {
  assert.equal(check("a\nb\nc", "a\nb\nc"), 0);
  assert.equal(check("a\nb\nc", "a\nx\nc"), 2);
  assert.equal(check("", "a\nb"), 3);
  assert.equal(check("a\nb\nc\nd", "d\na\nb\nc"), 2);
});

claim("random_texts_are_compared", () => {
  let seed = 1;
  const random = (most) => (seed = (seed * 48271) % 2147483647) % most;
  for (let i = 0; i < 300; i++) {
    const words = () => Array.from({ length: random(30) }, () => "abcde"[random(5)]).join("\n");
    check(words(), words());
  }
});

claim("a_costly_comparison_ends_and_is_right", () => {
  const one = Array.from({ length: 20_000 }, (_, i) => `a${i}`).join("\n");
  const other = Array.from({ length: 20_000 }, (_, i) => `b${i}`).join("\n");
  assert.equal(check(one, other, 10_000), 40_000);
});

const snapshot = (name, parent) => ({ name, parent });

claim("a_line_of_turns_has_one_lane", () => {
  const { rows, lanes } = layout(nodesOf([snapshot("1", ""), snapshot("2", "1")], "2"));
  assert.deepEqual(rows.map((each) => [each.node.name, each.lane]), [["", 0], ["2", 0], ["1", 0], ["template", 0]]);
  assert.equal(lanes, 1);
});

claim("branches_have_lanes_that_join_at_their_base", () => {
  const { rows, lanes } = layout(nodesOf([snapshot("1", ""), snapshot("2", "1"), snapshot("3", "1")], "3"));
  assert.equal(lanes, 2);
  const at = Object.fromEntries(rows.map((each) => [each.node.name, each]));
  assert.deepEqual([at["3"].lane, at["2"].lane, at["1"].lane], [0, 1, 0]);
  assert.deepEqual(at["1"].above, [{ from: 0, to: 0 }, { from: 1, to: 0 }]);
});

claim("a_state_whose_parent_was_removed_hangs_on_the_template", () => {
  const { rows } = layout(nodesOf([snapshot("9", "8")], "8"));
  assert.deepEqual(rows.map((each) => each.node.parent), ["template", "template", null]);
});

claim("a_thousand_turns_with_branches_are_placed", () => {
  const all = Array.from({ length: 1000 }, (_, i) => snapshot(String(i), i === 0 ? "" : String(Math.floor(i / 3))));
  const { rows, lanes } = layout(nodesOf(all, "999"));
  assert.equal(rows.length, 1002);
  for (const row of rows) for (const edge of [...row.above, ...row.below]) assert.ok(edge.from < lanes && edge.to < lanes);
});

claim("paths_of_bytes_stay_exact", () => {
  const raw = { text: "/a/?", raw: new Uint8Array([0x2f, 0x61, 0x2f, 0xff]) };
  assert.equal(encodePath(raw), "%2f%61%2f%ff");
  assert.equal(encodePath({ text: "/a b&c", raw: new Uint8Array() }), "%2Fa%20b%26c");
  assert.deepEqual(parentOf(raw), { text: "/a", raw: new Uint8Array() });
  assert.deepEqual([...joinPath(raw, "x").raw], [0x2f, 0x61, 0x2f, 0xff, 0x2f, 0x78]);
  assert.notEqual(keyOf(raw), keyOf({ text: "/a/?", raw: new Uint8Array() }));
  assert.equal(parentOf({ text: "/a", raw: new Uint8Array() }).text, "/");
});

claim("names_are_checked", () => {
  for (const name of ["", ".", "..", "a/b", "a\0b", "é".repeat(128)]) assert.notEqual(nameProblem(name), "", name);
  for (const name of ["a", "-", " ", "é".repeat(127), "a\nb"]) assert.equal(nameProblem(name), "", name);
});

process.exit(failures === 0 ? 0 : 1);
