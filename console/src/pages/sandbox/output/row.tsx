// One line of output. Text only ever becomes text nodes.
import type { JSX } from "preact";
import { BOLD, DEFAULT, DIM, ESCAPED, INVERSE, ITALIC, PLAIN, RGB, STRUCK, UNDERLINE, type Run, type Style } from "./ansi";
import type { Line } from "./lines";
import { occurrences } from "./search";

const LEVELS = [0, 95, 135, 175, 215, 255];

// Colours 16 to 255 of the palette of xterm: a cube of 6x6x6, and 24 grays.
function paletteColour(index: number): string {
  if (index >= 232) {
    const gray = 8 + (index - 232) * 10;
    return `rgb(${gray} ${gray} ${gray})`;
  }
  const cube = index - 16;
  return `rgb(${LEVELS[Math.floor(cube / 36)]} ${LEVELS[Math.floor(cube / 6) % 6]} ${LEVELS[cube % 6]})`;
}

function cssColour(colour: number): string | undefined {
  if (colour === DEFAULT) return undefined;
  if (colour >= RGB) return `#${(colour & 0xffffff).toString(16).padStart(6, "0")}`;
  return colour < 16 ? `var(--ansi-${colour})` : paletteColour(colour);
}

function spanStyle({ fg, bg, flags }: Style): JSX.CSSProperties {
  const [front, back] = flags & INVERSE ? [bg, fg] : [fg, bg];
  return {
    color: cssColour(front) ?? (flags & INVERSE ? "var(--output-bg)" : undefined),
    backgroundColor: cssColour(back) ?? (flags & INVERSE ? "var(--output-fg)" : undefined),
    fontWeight: flags & BOLD ? "bold" : undefined,
    fontStyle: flags & ITALIC ? "italic" : undefined,
    opacity: flags & DIM ? 0.7 : undefined,
    textDecoration: flags & UNDERLINE ? "underline" : flags & STRUCK ? "line-through" : undefined,
  };
}

function piece(text: string, style: Style, isMatch: boolean, key: number) {
  const Tag = isMatch ? "mark" : "span";
  return (
    <Tag key={key} class={style.flags & ESCAPED ? "output-escaped" : undefined} style={isMatch ? undefined : spanStyle(style)}>
      {text}
    </Tag>
  );
}

// Cuts the text at each change of style and at each occurrence of the query.
function pieces(line: Line, query: string) {
  const runs: readonly Run[] = line.runs ?? [{ start: 0, style: PLAIN }];
  const marks = occurrences(line.text, query);
  if (!line.runs && marks.length === 0) return line.text;
  const cuts = [...new Set([...runs.map((run) => run.start), ...marks.flat(), line.text.length])].sort((a, b) => a - b);
  const out = [];
  let run = -1;
  for (let i = 0; i + 1 < cuts.length; i++) {
    const [start, end] = [cuts[i]!, cuts[i + 1]!];
    while (run + 1 < runs.length && runs[run + 1]!.start <= start) run++;
    const style = runs[run]?.style ?? PLAIN;
    out.push(piece(line.text.slice(start, end), style, marks.some(([from, to]) => from <= start && end <= to), start));
  }
  return out;
}

export interface RowProps {
  line: Line;
  number: number;
  query: string;
  isCurrent: boolean;
}

export function Row({ line, number, query, isCurrent }: RowProps) {
  return (
    <div class={`output-row output-${line.kind}${isCurrent ? " output-current" : ""}`} data-line={number}>
      <span class="output-number" aria-hidden="true">{line.kind === "note" ? "" : number + 1}</span>
      <bdi class="output-text" dir="ltr">
        {pieces(line, query)}
        {line.cut > 0 && <span class="output-escaped">{` \u2026 ${line.cut.toLocaleString("en")} more characters`}</span>}
      </bdi>
    </div>
  );
}
