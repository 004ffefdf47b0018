// Finds a text in lines, also in those that are added later.
import type { Lines } from "./lines";

const MATCHES = 100_000;

export class Search {
  readonly matches: number[] = [];
  private scanned = 0;

  constructor(readonly query: string, private readonly lines: Lines) {}

  // Looks at the lines since the last call, at most `budget` of them. Returns whether all were looked at.
  scan(budget: number): boolean {
    const needle = this.query.toLowerCase();
    let number = Math.max(this.scanned, this.lines.first);
    const end = Math.min(this.lines.completeEnd, number + budget);
    while (this.matches.length > 0 && this.matches[0]! < this.lines.first) this.matches.shift();
    for (; number < end && this.matches.length < MATCHES; number++)
      if (this.lines.at(number)?.text.toLowerCase().includes(needle)) this.matches.push(number);
    this.scanned = number;
    return number >= this.lines.completeEnd || this.matches.length >= MATCHES;
  }

  // Returns the index in matches of the first one at or after a line; -1: there is none.
  from(line: number): number {
    const index = this.matches.findIndex((match) => match >= line);
    return index >= 0 ? index : this.matches.length > 0 ? 0 : -1;
  }
}

// Returns where the query is in a text, as [start, end) pairs.
export function occurrences(text: string, query: string): [number, number][] {
  const found: [number, number][] = [];
  const lower = text.toLowerCase();
  const needle = query.toLowerCase();
  // A text whose length changes with its case has other positions.
  if (needle === "" || lower.length !== text.length) return found;
  for (let at = lower.indexOf(needle); at >= 0 && found.length < 200; at = lower.indexOf(needle, at + needle.length))
    found.push([at, at + needle.length]);
  return found;
}
