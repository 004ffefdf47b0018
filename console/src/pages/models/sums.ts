// Sums of what sandboxes have used of models.
import type { ModelUsage } from "@gen/model_pb";

export interface Sum {
  name: string;
  requests: bigint;
  unsettled: bigint;
  input: bigint;
  cacheRead: bigint;
  cacheWrite: bigint;
  output: bigint;
  costNanos: bigint;
}

export type Group = "model" | "sandboxId" | "owner" | "day";

export function total(name: string, rows: readonly ModelUsage[]): Sum {
  const sum: Sum = { name, requests: 0n, unsettled: 0n, input: 0n, cacheRead: 0n, cacheWrite: 0n, output: 0n, costNanos: 0n };
  for (const row of rows) {
    sum.requests += row.requests;
    sum.unsettled += row.unsettled;
    sum.input += row.inputTokens;
    sum.cacheRead += row.cacheReadTokens;
    sum.cacheWrite += row.cacheWriteTokens;
    sum.output += row.outputTokens;
    sum.costNanos += row.costNanos;
  }
  return sum;
}

// One sum for each value of a field: days newest first, others by cost and then by tokens.
export function sumsBy(group: Group, rows: readonly ModelUsage[]): Sum[] {
  const groups = new Map<string, ModelUsage[]>();
  for (const row of rows) groups.set(row[group], [...(groups.get(row[group]) ?? []), row]);
  const sums = [...groups].map(([name, its]) => total(name, its));
  if (group === "day") return sums.sort((one, other) => other.name.localeCompare(one.name));
  return sums.sort((one, other) => Number(other.costNanos - one.costNanos) || Number(other.output - one.output));
}

// Billionths of a dollar.
export function dollars(nanos: bigint, digits = 4): string {
  return `$${(Number(nanos) / 1e9).toFixed(digits)}`;
}
