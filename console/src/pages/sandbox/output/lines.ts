// The output of a process as lines: decoded, parsed and bounded.
import { PLAIN, parseLine, type ParsedLine, type Style } from "./ansi";

export interface Line extends ParsedLine {
  readonly kind: "stdout" | "stderr" | "note";
  // The number of characters at its end that are not shown.
  readonly cut: number;
}

// A longer line is cut: nobody reads it, and the browser would take seconds to lay it out.
export const LINE_CHARACTERS = 8192;
// Of all lines, beyond which the oldest are dropped. The daemon keeps 64 MiB of a stream.
const LINES = 400_000;
const CHARACTERS = 96 * 1024 * 1024;

class Stream {
  private readonly decoder = new TextDecoder();
  private style: Style = PLAIN;
  private rest = "";
  private restCut = 0;

  constructor(private readonly kind: "stdout" | "stderr") {}

  private keep(piece: string) {
    const space = LINE_CHARACTERS - this.rest.length;
    this.rest += piece.length > space ? piece.slice(0, space) : piece;
    this.restCut += Math.max(0, piece.length - space);
  }

  private parsed(): { line: Line; style: Style } {
    const { line, style } = parseLine(this.rest, this.style);
    return { line: { ...line, kind: this.kind, cut: this.restCut }, style };
  }

  private close(): Line {
    const { line, style } = this.parsed();
    this.style = style;
    this.rest = "";
    this.restCut = 0;
    return line;
  }

  // Appends complete lines to `lines`.
  add(bytes: Uint8Array, lines: Line[]) {
    const text = this.decoder.decode(bytes, { stream: true });
    let from = 0;
    for (let end = text.indexOf("\n"); end >= 0; end = text.indexOf("\n", from)) {
      this.keep(text.slice(from, end));
      lines.push(this.close());
      from = end + 1;
    }
    if (from < text.length) this.keep(text.slice(from));
  }

  // The line that has no end yet.
  open(): Line | undefined {
    return this.rest === "" ? undefined : this.parsed().line;
  }

  // Ends that line: what follows is not its continuation.
  flush(lines: Line[]) {
    if (this.rest !== "") lines.push(this.close());
  }
}

export class Lines {
  private readonly lines: Line[] = [];
  private readonly streams = { stdout: new Stream("stdout"), stderr: new Stream("stderr") };
  private characters = 0;
  // The number of lines that were dropped at the front; the first one kept has this number.
  first = 0;
  // Changes with every change of the lines.
  version = 0;

  // One more than the number of the last line, including lines that have no end yet.
  get end(): number {
    return this.first + this.lines.length + this.openLines().length;
  }

  // One more than the number of the last complete line.
  get completeEnd(): number {
    return this.first + this.lines.length;
  }

  private openLines(): Line[] {
    return [this.streams.stdout.open(), this.streams.stderr.open()].filter((line) => line !== undefined);
  }

  at(number: number): Line | undefined {
    const index = number - this.first;
    return index < this.lines.length ? this.lines[index] : this.openLines()[index - this.lines.length];
  }

  add(stream: "stdout" | "stderr", bytes: Uint8Array) {
    const before = this.lines.length;
    this.streams[stream].add(bytes, this.lines);
    this.count(before);
  }

  note(text: string) {
    const before = this.lines.length;
    this.streams.stdout.flush(this.lines);
    this.streams.stderr.flush(this.lines);
    this.lines.push({ text, runs: null, kind: "note", cut: 0 });
    this.count(before);
  }

  private count(before: number) {
    for (let i = before; i < this.lines.length; i++) this.characters += this.lines[i]!.text.length;
    this.version++;
    if (this.lines.length > LINES || this.characters > CHARACTERS) this.drop();
  }

  // Drops an eighth at once, because each time moves all lines.
  private drop() {
    let number = 0;
    let characters = 0;
    while (number < this.lines.length && (number < LINES / 8 || this.characters - characters > CHARACTERS * 7 / 8))
      characters += this.lines[number++]!.text.length;
    this.lines.splice(0, number);
    this.characters -= characters;
    this.first += number;
  }
}
