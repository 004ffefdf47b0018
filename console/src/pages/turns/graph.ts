// Where the states of a sandbox stand in the drawing of their tree: one row each, newest first, in
// lanes that join at the state that they are based on.
import type { Snapshot } from "@gen/snapshot_pb";

// The current files and the template, which are no snapshots. A snapshot cannot have such a name.
export const now = "";
export const template = "template";

export interface Node {
  name: string;
  // Null: the current files or the template.
  snapshot: Snapshot | null;
  parent: string | null;
}

export interface Edge {
  from: number;
  to: number;
}

export interface GraphRow {
  node: Node;
  lane: number;
  // Lanes at the upper and at the lower border that a line joins through this row.
  above: Edge[];
  below: Edge[];
}

export interface Graph {
  rows: GraphRow[];
  lanes: number;
}

export function nodesOf(snapshots: readonly Snapshot[], base: string): Node[] {
  const known = new Set(snapshots.map((each) => each.name));
  // The parent of a state may have been removed: then it hangs on the next older one that is left.
  const exists = (name: string) => (known.has(name) ? name : template);
  return [
    { name: now, snapshot: null, parent: exists(base) },
    ...[...snapshots].reverse().map((each): Node => ({ name: each.name, snapshot: each, parent: exists(each.parent) })),
    { name: template, snapshot: null, parent: null },
  ];
}

// As git log --graph does: each lane waits for the state that its line leads to.
export function layout(nodes: readonly Node[]): Graph {
  const waiting: (string | null)[] = [];
  const rows: GraphRow[] = [];
  let lanes = 1;
  const free = () => {
    const at = waiting.indexOf(null);
    return at >= 0 ? at : waiting.push(null) - 1;
  };
  for (const node of nodes) {
    const mine = waiting.flatMap((each, i) => (each === node.name ? [i] : []));
    const lane = mine[0] ?? free();
    const above: Edge[] = [];
    for (const [i, each] of waiting.entries()) if (each !== null) above.push({ from: i, to: mine.includes(i) ? lane : i });
    for (const i of mine) waiting[i] = null;
    waiting[lane] = node.parent;
    const below: Edge[] = [];
    for (const [i, each] of waiting.entries()) if (each !== null) below.push({ from: i, to: i });
    while (waiting.length > 0 && waiting[waiting.length - 1] === null) waiting.pop();
    lanes = Math.max(lanes, lane + 1, waiting.length);
    rows.push({ node, lane, above, below });
  }
  return { rows, lanes };
}

// A word for a state, for people.
export function stateName(name: string): string {
  if (name === now) return "Current files";
  return name === template ? "Template" : name;
}
