// Reads the audit log as a stream and keeps the newest lines that match.
import { HostService, type AuditVerdict } from "@gen/host_pb";
import { client } from "../../api/transport";
import { merged } from "../../lib/merge";

export interface Line {
  seq: number;
  time: string;
  event: string;
  sandbox: string;
  owner: string;
  details: [string, string][];
  hash: string;
}

export interface Search {
  lines: Line[]; // newest first
  read: number;
  found: number;
  isRunning: boolean;
  verdict: AuditVerdict | null;
  error: unknown;
}

export const nothing: Search = { lines: [], read: 0, found: 0, isRunning: false, verdict: null, error: null };

const mostKept = 500;
const shownApart = new Set(["seq", "time", "event", "sandbox", "owner", "prev", "hash"]);

function valueText(value: unknown): string {
  return typeof value === "string" ? value : JSON.stringify(value) ?? "";
}

export function parseLine(text: string): Line {
  let fields: Record<string, unknown> = {};
  try {
    fields = JSON.parse(text) as Record<string, unknown>;
  } catch {
    fields = { event: "unreadable", line: text };
  }
  const word = (name: string) => (fields[name] === undefined ? "" : valueText(fields[name]));
  return {
    seq: Number(fields["seq"] ?? 0), time: word("time"), event: word("event"), sandbox: word("sandbox"),
    owner: word("owner"), hash: word("hash"),
    details: Object.entries(fields).filter(([name]) => !shownApart.has(name)).map(([name, value]) => [name, valueText(value)]),
  };
}

// All words must be in the line. Calls `show` at most four times a second, and once at the end.
export async function search(sandboxId: string, text: string, signal: AbortSignal, show: (state: Search) => void): Promise<void> {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  const state: Search = { ...nothing, isRunning: true };
  let kept: string[] = [];
  const present = () => {
    kept = kept.slice(-mostKept);
    show({ ...state, lines: kept.map(parseLine).reverse() });
  };
  const soon = merged(() => {
    if (!signal.aborted && state.isRunning) present();
  });
  soon();
  try {
    for await (const { event } of client(HostService).audit({ sandboxId }, { signal })) {
      if (event.case === "verdict") state.verdict = event.value;
      if (event.case !== "line") continue;
      state.read++;
      const lower = event.value.toLowerCase();
      if (!words.every((each) => lower.includes(each))) continue;
      state.found++;
      kept.push(event.value);
      if (kept.length > 2 * mostKept) kept = kept.slice(-mostKept);
      soon();
    }
  } catch (error) {
    if (signal.aborted) return;
    state.error = error;
  }
  state.isRunning = false;
  if (!signal.aborted) present();
}
