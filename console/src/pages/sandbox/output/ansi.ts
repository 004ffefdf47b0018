// One line of output as text and styled runs. Colours and attributes are kept, all other escape sequences are
// dropped, and control and direction characters become visible text, so that output can only be shown.

export const BOLD = 1;
export const DIM = 2;
export const ITALIC = 4;
export const UNDERLINE = 8;
export const INVERSE = 16;
export const STRUCK = 32;
// Not output itself, but the visible form of a character that has none.
export const ESCAPED = 64;

// A colour: DEFAULT, 0 to 255 of the palette, or RGB | 0xRRGGBB.
export const DEFAULT = -1;
export const RGB = 0x1000000;

export interface Style {
  readonly fg: number;
  readonly bg: number;
  readonly flags: number;
}

export interface Run {
  readonly start: number;
  readonly style: Style;
}

export interface ParsedLine {
  readonly text: string;
  // Null: one run in the plain style.
  readonly runs: readonly Run[] | null;
}

export const PLAIN: Style = { fg: DEFAULT, bg: DEFAULT, flags: 0 };

// Control characters, and characters that change the direction or join invisibly.
// eslint-disable-next-line no-control-regex
const SPECIAL = /[\x00-\x08\x0a-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]/;

const hex = (code: number, digits: number) => code.toString(16).padStart(digits, "0");

// Returns the visible form of a character that SPECIAL matches.
export function visible(code: number): string {
  if (code < 0x20 || code === 0x7f) return `^${String.fromCharCode(code ^ 0x40)}`;
  return code < 0x100 ? `\\x${hex(code, 2)}` : `\\u${hex(code, 4)}`;
}

// Returns the text with all such characters in their visible form.
export function escaped(text: string): string {
  if (!SPECIAL.test(text)) return text;
  let out = "";
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    out += SPECIAL.test(text.charAt(i)) ? visible(code) : text.charAt(i);
  }
  return out;
}

function extendedColour(codes: number[], at: number): { colour: number; next: number } {
  const part = (i: number) => Math.min(255, Math.max(0, codes[i] ?? 0));
  if (codes[at] === 5) return { colour: part(at + 1), next: at + 1 };
  if (codes[at] === 2)
    return { colour: RGB | (part(at + 1) << 16) | (part(at + 2) << 8) | part(at + 3), next: at + 3 };
  return { colour: DEFAULT, next: at };
}

const SETS: Record<number, number> = { 1: BOLD, 2: DIM, 3: ITALIC, 4: UNDERLINE, 7: INVERSE, 9: STRUCK };
const CLEARS: Record<number, number> = {
  22: BOLD | DIM, 23: ITALIC, 24: UNDERLINE, 27: INVERSE, 29: STRUCK,
};

// Applies the parameters of "select graphic rendition" to a style.
export function select(style: Style, parameters: string): Style {
  const codes = parameters.split(/[;:]/, 64).map((word) => Number.parseInt(word, 10) || 0);
  let { fg, bg, flags } = style;
  for (let i = 0; i < codes.length; i++) {
    const code = codes[i] ?? 0;
    if (code === 0) [fg, bg, flags] = [DEFAULT, DEFAULT, 0];
    else if (SETS[code]) flags |= SETS[code];
    else if (CLEARS[code]) flags &= ~CLEARS[code];
    else if (code >= 30 && code <= 37) fg = code - 30;
    else if (code >= 90 && code <= 97) fg = code - 90 + 8;
    else if (code >= 40 && code <= 47) bg = code - 40;
    else if (code >= 100 && code <= 107) bg = code - 100 + 8;
    else if (code === 39) fg = DEFAULT;
    else if (code === 49) bg = DEFAULT;
    else if (code === 38 || code === 48) {
      const { colour, next } = extendedColour(codes, i + 1);
      if (code === 38) fg = colour;
      else bg = colour;
      i = next;
    }
  }
  return fg === DEFAULT && bg === DEFAULT && flags === 0 ? PLAIN : { fg, bg, flags };
}

// Returns the index after the escape sequence that starts at `at`, and the parameters of a colour if it is one.
function skipSequence(raw: string, at: number): { next: number; colours?: string } {
  const kind = raw.charAt(at + 1);
  if (kind === "[") {
    let end = at + 2;
    while (end < raw.length && raw.charCodeAt(end) >= 0x20 && raw.charCodeAt(end) < 0x40) end++;
    const parameters = raw.slice(at + 2, end);
    const isColour = raw.charAt(end) === "m" && /^[0-9;:]*$/.test(parameters);
    return { next: end + 1, colours: isColour ? parameters : undefined };
  }
  if (kind !== "" && "]PX^_".includes(kind)) {
    for (let end = at + 2; end < raw.length; end++) {
      if (raw.charCodeAt(end) === 7) return { next: end + 1 };
      if (raw.charCodeAt(end) === 27) return { next: raw.charAt(end + 1) === "\\" ? end + 2 : end };
    }
    return { next: raw.length };
  }
  let end = at + 1;
  while (end < raw.length && raw.charCodeAt(end) >= 0x20 && raw.charCodeAt(end) < 0x30) end++;
  return { next: end + 1 };
}

class Builder {
  text = "";
  runs: Run[] = [];

  add(piece: string, style: Style) {
    if (piece === "") return;
    const last = this.runs[this.runs.length - 1];
    if (!last || last.style !== style) this.runs.push({ start: this.text.length, style });
    this.text += piece;
  }

  clear() {
    this.text = "";
    this.runs = [];
  }

  backspace() {
    this.text = this.text.slice(0, -1);
    while (this.runs.length > 0 && this.runs[this.runs.length - 1]!.start >= this.text.length) this.runs.pop();
  }

  line(): ParsedLine {
    const isPlain = this.runs.every((run) => run.style === PLAIN);
    return { text: this.text, runs: isPlain ? null : this.runs };
  }
}

// Parses one line, without its newline, that starts in the given style. A carriage return starts the line again,
// as progress bars use it.
export function parseLine(raw: string, start: Style): { line: ParsedLine; style: Style } {
  while (raw.endsWith("\r")) raw = raw.slice(0, -1);
  if (!SPECIAL.test(raw))
    return { line: { text: raw, runs: start === PLAIN || raw === "" ? null : [{ start: 0, style: start }] }, style: start };

  const out = new Builder();
  let style = start;
  let from = 0;
  for (let i = 0; i < raw.length;) {
    const code = raw.charCodeAt(i);
    if (code >= 0x20 && code < 0x7f) {
      i++;
      continue;
    }
    if (code === 9 || !SPECIAL.test(raw.charAt(i))) {
      i++;
      continue;
    }
    out.add(raw.slice(from, i), style);
    if (code === 27) {
      const { next, colours } = skipSequence(raw, i);
      if (colours !== undefined) style = select(style, colours);
      i = next;
    } else {
      if (code === 13) out.clear();
      else if (code === 8) out.backspace();
      else if (code !== 7) out.add(visible(code), { ...style, flags: style.flags | ESCAPED });
      i++;
    }
    from = i;
  }
  out.add(raw.slice(from), style);
  return { line: out.line(), style };
}
