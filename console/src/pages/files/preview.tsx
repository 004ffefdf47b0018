// Contents that are shown and not edited: text with invisible characters made visible, or bytes.
import { useMemo } from "preact/hooks";
import { plainLines } from "../../lib/text";
import { Window } from "../../ui/window";

const rowHeight = 19;
const mostChars = 2000;

export function TextPreview({ text, label }: { text: string; label: string }) {
  const lines = useMemo(() => text.split("\n"), [text]);
  const width = useMemo(() => lines.reduce((most, each) => Math.max(most, Math.min(each.length, mostChars + 40)), 0), [lines]);
  return (
    <Window class="preview-lines" count={lines.length} rowHeight={rowHeight} label={label} width={`${width + 10}ch`} row={(i) => {
      const line = lines[i] as string;
      const isLong = line.length > mostChars;
      return (
        <div class="diff-line" key={i}>
          <span class="diff-number" aria-hidden="true">{i + 1}</span>
          <bdi class="diff-text">
            {plainLines(isLong ? line.slice(0, mostChars) : line) || " "}
            {isLong && <span class="diff-more"> … {(line.length - mostChars).toLocaleString("en")} more characters</span>}
          </bdi>
        </div>
      );
    }} />
  );
}

export function HexPreview({ bytes, label }: { bytes: Uint8Array; label: string }) {
  return (
    <Window class="preview-lines" count={Math.ceil(bytes.length / 16)} rowHeight={rowHeight} label={label} row={(i) => {
      const part = [...bytes.subarray(i * 16, i * 16 + 16)];
      const hex = part.map((each) => each.toString(16).padStart(2, "0")).join(" ");
      const letters = part.map((each) => (each >= 0x20 && each < 0x7f ? String.fromCharCode(each) : "·")).join("");
      return (
        <div class="diff-line" key={i}>
          <span class="hex-offset">{(i * 16).toString(16).padStart(8, "0")}</span>
          <span class="hex-bytes">{hex.padEnd(48)}</span>
          <span>{letters}</span>
        </div>
      );
    }} />
  );
}
