// Lines of a comparison: from a unified diff, or made here from two texts.
export interface Line {
  kind: "same" | "added" | "deleted" | "hunk" | "note";
  text: string;
  // From 1; 0: the line is not in that state.
  old: number;
  new: number;
}

const hunkHead = /^@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@/;

// The lines of a patch of one file, without its header. Stops after `most` lines.
export function parsePatch(patch: string, most: number): { lines: Line[]; isCut: boolean } {
  const lines: Line[] = [];
  let old = 0;
  let now = 0;
  let isInHunk = false;
  for (let at = 0; at < patch.length;) {
    if (lines.length >= most) return { lines, isCut: true };
    const end = patch.indexOf("\n", at);
    const text = end < 0 ? patch.slice(at) : patch.slice(at, end);
    at = end < 0 ? patch.length : end + 1;
    const head = hunkHead.exec(text);
    if (head) {
      old = Number(head[1]);
      now = Number(head[2]);
      isInHunk = true;
      lines.push({ kind: "hunk", text, old: 0, new: 0 });
    } else if (isInHunk) {
      const rest = text.slice(1);
      if (text[0] === "+") lines.push({ kind: "added", text: rest, old: 0, new: now++ });
      else if (text[0] === "-") lines.push({ kind: "deleted", text: rest, old: old++, new: 0 });
      else if (text[0] === "\\") lines.push({ kind: "note", text: "no newline at the end of the file", old: 0, new: 0 });
      else lines.push({ kind: "same", text: rest, old: old++, new: now++ });
    }
  }
  return { lines, isCut: false };
}

export interface Pair {
  left: Line | null;
  right: Line | null;
}

// The same lines side by side: deleted ones beside the added ones that follow.
export function pairs(lines: readonly Line[]): Pair[] {
  const result: Pair[] = [];
  let deleted: Line[] = [];
  let added: Line[] = [];
  const flush = () => {
    for (let i = 0; i < Math.max(deleted.length, added.length); i++)
      result.push({ left: deleted[i] ?? null, right: added[i] ?? null });
    deleted = [];
    added = [];
  };
  for (const each of lines) {
    if (each.kind === "deleted") {
      if (added.length > 0) flush();
      deleted.push(each);
    } else if (each.kind === "added") {
      added.push(each);
    } else if (each.kind !== "note") {
      flush();
      result.push({ left: each, right: each });
    }
  }
  flush();
  return result;
}

// Hunks with this many equal lines around each change.
const context = 3;

// Compares two texts by lines. Beyond `mostCost` steps the middle is reported as replaced, so that the
// time is bounded whatever the texts are.
export function compareTexts(before: string, after: string, mostCost = 4_000_000): Line[] {
  const a = before.split("\n");
  const b = after.split("\n");
  let head = 0;
  while (head < a.length && head < b.length && a[head] === b[head]) head++;
  let tail = 0;
  while (tail < a.length - head && tail < b.length - head && a[a.length - 1 - tail] === b[b.length - 1 - tail]) tail++;
  const middle = script(a.slice(head, a.length - tail), b.slice(head, b.length - tail), mostCost);
  const all: Line[] = [];
  let old = 1;
  let now = 1;
  const same = (text: string) => all.push({ kind: "same", text, old: old++, new: now++ });
  for (let i = 0; i < head; i++) same(a[i] as string);
  for (const each of middle) {
    if (each.kind === "same") same(each.text);
    else if (each.kind === "deleted") all.push({ kind: "deleted", text: each.text, old: old++, new: 0 });
    else all.push({ kind: "added", text: each.text, old: 0, new: now++ });
  }
  for (let i = a.length - tail; i < a.length; i++) same(a[i] as string);
  return hunks(all);
}

type Step = { kind: "same" | "added" | "deleted"; text: string };

// Myers' greedy algorithm. trace[d] has the furthest x of each diagonal after d edits.
function script(a: string[], b: string[], mostCost: number): Step[] {
  const replaced = (): Step[] => [
    ...a.map((text): Step => ({ kind: "deleted", text })), ...b.map((text): Step => ({ kind: "added", text })),
  ];
  const most = a.length + b.length;
  if (a.length === 0 || b.length === 0) return replaced();
  const trace: Int32Array[] = [];
  const reach = new Int32Array(2 * most + 2);
  let cost = 0;
  for (let d = 0; d <= most; d++) {
    cost += 2 * d + 1;
    if (cost > mostCost) return replaced();
    trace.push(reach.slice(most - d, most + d + 2));
    for (let k = -d; k <= d; k += 2) {
      const isDown = k === -d || (k !== d && (reach[most + k - 1] as number) < (reach[most + k + 1] as number));
      let x = isDown ? (reach[most + k + 1] as number) : (reach[most + k - 1] as number) + 1;
      let y = x - k;
      while (x < a.length && y < b.length && a[x] === b[y]) {
        x++;
        y++;
      }
      reach[most + k] = x;
      if (x >= a.length && y >= b.length) return backtrack(a, b, trace, d);
    }
  }
  return replaced();
}

function backtrack(a: string[], b: string[], trace: Int32Array[], last: number): Step[] {
  const steps: Step[] = [];
  let x = a.length;
  let y = b.length;
  for (let d = last; d > 0; d--) {
    const reach = trace[d] as Int32Array;
    const at = (k: number) => reach[k + d] as number;
    const k = x - y;
    const isDown = k === -d || (k !== d && at(k - 1) < at(k + 1));
    const before = isDown ? k + 1 : k - 1;
    const fromX = at(before);
    const fromY = fromX - before;
    while (x > fromX && y > fromY) {
      steps.push({ kind: "same", text: a[--x] as string });
      y--;
    }
    if (isDown) steps.push({ kind: "added", text: b[--y] as string });
    else steps.push({ kind: "deleted", text: a[--x] as string });
  }
  while (x > 0 && y > 0) {
    steps.push({ kind: "same", text: a[--x] as string });
    y--;
  }
  return steps.reverse();
}

function hunks(all: readonly Line[]): Line[] {
  const isShown = new Uint8Array(all.length);
  for (const [i, each] of all.entries()) {
    if (each.kind === "same") continue;
    for (let j = Math.max(0, i - context); j <= Math.min(all.length - 1, i + context); j++) isShown[j] = 1;
  }
  const result: Line[] = [];
  for (const [i, each] of all.entries()) {
    if (!isShown[i]) continue;
    if (i === 0 || !isShown[i - 1]) {
      const at = all.slice(i, i + 2 * context).find((one) => one.kind === "same") ?? each;
      result.push({ kind: "hunk", text: `@@ -${at.old} +${at.new} @@`, old: 0, new: 0 });
    }
    result.push(each);
  }
  return result;
}
