// Lines of a comparison, unified or side by side; only the visible ones exist.
import { useMemo } from "preact/hooks";
import { plainLines } from "../../lib/text";
import { Window } from "../../ui/window";
import { pairs, type Line } from "./patch";

const rowHeight = 19;
// Of one line; the rest is counted.
const mostChars = 2000;

function Text({ text }: { text: string }) {
  const isLong = text.length > mostChars;
  return (
    <bdi class="diff-text">
      {plainLines(isLong ? text.slice(0, mostChars) : text).replace(/\n/g, "\\n") || " "}
      {isLong && <span class="diff-more"> … {(text.length - mostChars).toLocaleString("en")} more characters</span>}
    </bdi>
  );
}

const signs = { same: " ", added: "+", deleted: "-", hunk: "", note: "\\" };
const spoken = { same: "", added: "added: ", deleted: "deleted: ", hunk: "", note: "" };

function Unified({ line }: { line: Line }) {
  return (
    <div class={`diff-line ${line.kind}`} role="presentation">
      <span class="diff-number" aria-hidden="true">{line.old || ""}</span>
      <span class="diff-number" aria-hidden="true">{line.new || ""}</span>
      <span class="diff-sign" aria-hidden="true">{signs[line.kind]}</span>
      {spoken[line.kind] && <span class="hidden-text">{spoken[line.kind]}</span>}
      <Text text={line.text} />
    </div>
  );
}

function Half({ line, side }: { line: Line | null; side: "old" | "new" }) {
  if (!line) return <div class="diff-half void" />;
  return (
    <div class={`diff-half ${line.kind}`}>
      <span class="diff-number" aria-hidden="true">{line[side] || ""}</span>
      {spoken[line.kind] && <span class="hidden-text">{spoken[line.kind]}</span>}
      <Text text={line.text} />
    </div>
  );
}

export function DiffLines({ lines, isSplit, label }: { lines: readonly Line[]; isSplit: boolean; label: string }) {
  const halves = useMemo(() => (isSplit ? pairs(lines) : []), [lines, isSplit]);
  const width = useMemo(() => {
    let most = 0;
    for (const each of lines) most = Math.max(most, Math.min(each.text.length, mostChars + 40));
    return `${most + 16}ch`;
  }, [lines]);
  if (isSplit) {
    return (
      <Window count={halves.length} rowHeight={rowHeight} label={label} class="diff-lines split" row={(i) => {
        const pair = halves[i];
        return (
          <div class="diff-pair" key={i}>
            <Half line={pair?.left ?? null} side="old" />
            <Half line={pair?.right ?? null} side="new" />
          </div>
        );
      }} />
    );
  }
  return (
    <Window count={lines.length} rowHeight={rowHeight} label={label} class="diff-lines" width={width}
      row={(i) => <Unified key={i} line={lines[i] as Line} />} />
  );
}
