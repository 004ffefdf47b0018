// The parts of terminals and logs that read hostile text, without a browser: lines, escapes, titles, pastes.
import assert from "node:assert/strict";
import { mkdirSync } from "node:fs";
import { createRequire } from "node:module";
import { join, resolve } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

const root = resolve(fileURLToPath(import.meta.url), "../../..");
const folder = join(root, "build/console-tests/parts");
const parts = ["output/ansi", "output/lines", "output/search", "terminals/paste", "terminals/title", "terminals/store"];
mkdirSync(folder, { recursive: true });
await createRequire(join(root, "console/"))("esbuild").build({
  entryPoints: parts.map((each) => join(root, `console/src/pages/sandbox/${each}.ts`)),
  outdir: folder, outExtension: { ".js": ".mjs" }, bundle: true, format: "esm", logLevel: "error",
});
const load = (name) => import(pathToFileURL(join(folder, `${name}.mjs`)));
const { parseLine, PLAIN, BOLD, ESCAPED, RGB } = await load("output/ansi");
const { Lines, LINE_CHARACTERS } = await load("output/lines");
const { Search, occurrences } = await load("output/search");
const { cleanPaste, pasteConcern } = await load("terminals/paste");
const { cleanTitle } = await load("terminals/title");
const { freeName, withTab } = await load("terminals/store");

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

const bytes = (text) => new TextEncoder().encode(text);
const text = (raw) => parseLine(raw, PLAIN).line.text;
const all = (lines) => Array.from({ length: lines.end - lines.first }, (_, i) => lines.at(lines.first + i).text);

claim("colours_become_runs_and_last_until_they_are_reset", () => {
  const { line, style } = parseLine("a\x1b[1;31mb\x1b[38;2;1;2;3mc", PLAIN);
  assert.equal(line.text, "abc");
  assert.deepEqual(line.runs.map(({ start, style: { fg, flags } }) => [start, fg, flags]),
    [[0, -1, 0], [1, 1, BOLD], [2, RGB | 0x010203, BOLD]]);
  assert.equal(parseLine("next", style).line.runs[0].style, style);
  assert.equal(parseLine("\x1b[m", style).style, PLAIN);
});

claim("other_sequences_are_dropped", () => {
  assert.equal(text("a\x1b[2Jb\x1b[10;10Hc\x1b[?1049hd"), "abcd");
  assert.equal(text("a\x1b]52;c;AAAA\x07b\x1b]8;;http://x\x1b\\c\x1bPq#0\x1b\\d\x1b_x\x1b\\e"), "abcde");
  assert.equal(text("a\x1b(Bb\x1b=c\x1b"), "abc");
  assert.equal(text("a\x1b]0;never ends"), "a");
});

claim("a_carriage_return_starts_the_line_again_and_a_backspace_goes_back", () => {
  assert.equal(text("10%\r20%\r\r"), "20%");
  assert.equal(text("abc\b\bX"), "aX");
  assert.equal(text("\b\b"), "");
});

claim("controls_and_directions_are_visible", () => {
  const { line } = parseLine("a\x01\x7f\x9b\u202eb\u2066\ufeff", PLAIN);
  assert.equal(line.text, "a^A^?\\x9b\\u202eb\\u2066\\ufeff");
  assert.ok(line.runs.some(({ style }) => style.flags & ESCAPED));
});

claim("any_bytes_leave_no_control_character_and_any_cut_gives_the_same", () => {
  let seed = 7;
  const random = (below) => (seed = (seed * 1103515245 + 12345) % 2147483648) % below;
  const alphabet = ["\x1b", "[", "]", "m", ";", "3", "8", "5", "\x07", "\\", "\r", "\b", "\n", "a", "é", "\u202e", "\x90", "😀", "P"];
  for (let round = 0; round < 500; round++) {
    const raw = bytes(Array.from({ length: 60 }, () => alphabet[random(alphabet.length)]).join(""));
    const [whole, cut] = [new Lines(), new Lines()];
    whole.add("stdout", raw);
    for (let at = 0; at < raw.length;) {
      const next = at + 1 + random(7);
      cut.add("stdout", raw.subarray(at, next));
      at = next;
    }
    assert.deepEqual(all(cut), all(whole));
    // eslint-disable-next-line no-control-regex
    for (const line of all(whole)) assert.doesNotMatch(line, /[\x00-\x08\x0a-\x1f\x7f-\x9f\u202e]/);
  }
});

claim("a_long_line_is_cut_and_counted", () => {
  const lines = new Lines();
  for (let i = 0; i < 100; i++) lines.add("stdout", bytes("x".repeat(10_000)));
  lines.add("stdout", bytes("\nshort\n"));
  assert.equal(lines.at(0).text.length, LINE_CHARACTERS);
  assert.equal(lines.at(0).cut, 1_000_000 - LINE_CHARACTERS);
  assert.equal(lines.at(1).text, "short");
});

claim("both_streams_keep_their_own_open_line", () => {
  const lines = new Lines();
  lines.add("stdout", bytes("out "));
  lines.add("stderr", bytes("err "));
  lines.add("stdout", bytes("put\n"));
  assert.deepEqual(all(lines), ["out put", "err "]);
  assert.equal(lines.at(1).kind, "stderr");
});

claim("the_oldest_lines_are_dropped_and_numbers_stay", () => {
  const lines = new Lines();
  const block = bytes(Array.from({ length: 10_000 }, () => "x\n").join(""));
  for (let i = 0; i < 50; i++) lines.add("stdout", block);
  assert.equal(lines.end, 500_000);
  assert.ok(lines.first > 0 && lines.end - lines.first <= 400_000);
  assert.equal(lines.at(lines.first - 1), undefined);
});

claim("a_search_continues_with_new_lines", () => {
  const lines = new Lines();
  lines.add("stdout", bytes("one\nTwo\n"));
  const search = new Search("o", lines);
  while (!search.scan(1));
  assert.deepEqual(search.matches, [0, 1]);
  lines.add("stdout", bytes("none\nx\n"));
  while (!search.scan(1));
  assert.deepEqual(search.matches, [0, 1, 2]);
  assert.deepEqual(occurrences("aXax", "ax"), [[0, 2], [2, 4]]);
  assert.deepEqual(occurrences("\u0130stanbul", "stan"), []);
});

claim("a_paste_cannot_press_keys", () => {
  assert.equal(cleanPaste("a\x1b[201~\x03b\tc\n"), "a[201~b\tc\n");
  assert.match(pasteConcern("ls\x1b[201~", true), /control characters/);
  assert.match(pasteConcern("ls\nrm x", false), /2 lines/);
  assert.equal(pasteConcern("ls\nrm x", true), null);
  assert.equal(pasteConcern("ls", false), null);
  assert.match(pasteConcern("x".repeat(5000), true), /5000 characters/);
});

claim("a_title_is_one_short_visible_line", () => {
  assert.equal(cleanTitle("a\n\u202eb\x07  c"), "a b c");
  assert.equal(cleanTitle("x".repeat(1000)).length, 61);
});

claim("new_shells_get_free_names_and_tabs_are_opened_once", () => {
  assert.equal(freeName(new Set()), "main");
  assert.equal(freeName(new Set(["main", "shell-2"])), "shell-3");
  const tab = { kind: "shell", id: "main", label: "" };
  assert.deepEqual(withTab([tab], { ...tab }), [tab]);
});

process.exit(failures === 0 ? 0 : 1);
