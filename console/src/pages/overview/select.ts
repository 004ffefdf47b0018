// Which sandboxes the table shows, and in which order.
import type { Sandbox } from "@gen/sandbox_pb";
import { millis } from "../../lib/text";
import type { Sort } from "../../ui/table";

export const groups = ["all", "active", "paused", "stopped", "other"] as const;
export type Group = (typeof groups)[number];

export function groupOf(state: string): Group {
  if (state === "active") return "active";
  if (state === "paused" || state === "pausing" || state === "deep-paused") return "paused";
  if (state === "stopped") return "stopped";
  return "other";
}

// Each word must be found; KEY=VALUE is a label whose value begins so, any other word is part of the
// name, id, template, owner, state or a label.
export function matcher(text: string): (sandbox: Sandbox) => boolean {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  return (sandbox) => words.every((word) => {
    const at = word.indexOf("=");
    const labels = Object.entries(sandbox.labels);
    if (at > 0) {
      const [key, value] = [word.slice(0, at), word.slice(at + 1)];
      return labels.some(([k, v]) => k.toLowerCase() === key && v.toLowerCase().startsWith(value));
    }
    return [sandbox.name, sandbox.id, sandbox.template, sandbox.owner, sandbox.state]
      .some((each) => each.toLowerCase().includes(word)) ||
      labels.some(([k, v]) => k.toLowerCase().includes(word) || v.toLowerCase().includes(word));
  });
}

// The words after `holt ls` that list what the filter shows.
export function listWords(text: string, group: Group): string[] {
  const filters = text.split(/\s+/).filter(Boolean).map((word) => (word.includes("=") ? `label=${word}` : `name=*${word}*`));
  if (group !== "all" && group !== "other") filters.push(`state=${group}`);
  return filters.flatMap((each) => ["--filter", each]);
}

const never = Number.MAX_SAFE_INTEGER;

export const orders: Record<string, (sandbox: Sandbox) => string | number> = {
  name: (each) => (each.name || each.id).toLowerCase(),
  state: (each) => each.state,
  template: (each) => each.template,
  owner: (each) => each.owner,
  turns: (each) => each.turns,
  // The age grows as the time of creation shrinks.
  age: (each) => -millis(each.createdAt),
  expires: (each) => millis(each.expiresAt) || never,
};

export function sorted(rows: Sandbox[], sort: Sort): Sandbox[] {
  const order = orders[sort.column] ?? orders["age"]!;
  const sign = sort.isDown ? -1 : 1;
  const keyed = rows.map((row) => ({ row, key: order(row) }));
  keyed.sort((a, b) => {
    if (a.key < b.key) return -sign;
    if (a.key > b.key) return sign;
    return a.row.id < b.row.id ? -1 : 1;
  });
  return keyed.map((each) => each.row);
}
