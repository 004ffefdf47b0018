// The settings of a sandbox as texts of a form, the request that changes them, and its holt command.
import type { MessageInitShape } from "@bufbuild/protobuf";
import type { Sandbox, UpdateSandboxRequestSchema } from "@gen/sandbox_pb";
import { holt } from "../../lib/cli";
import { parseCount, parseCpus, parseSize, parseTime, sizeText, timeText } from "../../lib/parse";
import { cpus } from "../../lib/text";

export type Request = MessageInitShape<typeof UpdateSandboxRequestSchema>;

export interface Draft {
  name: string;
  memory: string;
  cpus: string;
  pids: string;
  files: string;
  quota: string;
  ttl: string; // from now; empty: as it is
  expireAction: string;
  idle: string;
  idleAction: string;
  maxSnapshots: string;
  labels: { key: string; value: string }[];
}

const sizeOr = (value: bigint) => (value ? sizeText(value) : "");
const countOr = (value: number) => (value ? String(value) : "");

export function draftOf(sandbox: Sandbox): Draft {
  const limits = sandbox.limits;
  return {
    name: sandbox.name,
    memory: sizeOr(limits?.memoryBytes ?? 0n),
    cpus: limits?.cpuMillis ? cpus(limits.cpuMillis) : "",
    pids: countOr(limits?.pids ?? 0),
    files: countOr(limits?.files ?? 0),
    quota: sizeOr(sandbox.quotaBytes),
    ttl: "",
    expireAction: sandbox.expireAction || "kill",
    idle: sandbox.idleTimeoutMs ? timeText(sandbox.idleTimeoutMs) : "",
    idleAction: sandbox.idleAction || "kill",
    maxSnapshots: countOr(sandbox.maxSnapshots),
    labels: Object.entries(sandbox.labels).sort().map(([key, value]) => ({ key, value })),
  };
}

// The draft with what others have changed since: `base` is what the draft was made of, `now` what the
// sandbox has. A field that was edited here stays; labels count one by one.
export function rebased(draft: Draft, base: Draft, now: Draft): Draft {
  const next = { ...now };
  for (const field of Object.keys(now) as (keyof Draft)[])
    if (field !== "labels" && draft[field] !== base[field]) next[field] = draft[field];
  next.labels = rebasedLabels(draft.labels, base.labels, now.labels);
  return next;
}

function rebasedLabels(draft: Draft["labels"], base: Draft["labels"], now: Draft["labels"]): Draft["labels"] {
  const before = new Map(base.map(({ key, value }) => [key, value]));
  const current = new Map(now.map(({ key, value }) => [key, value]));
  const shown = new Set(draft.map(({ key }) => key));
  const kept = draft.filter(({ key, value }) => before.get(key) !== value || current.has(key))
    .map(({ key, value }) => ({ key, value: before.get(key) === value ? current.get(key) ?? value : value }));
  return [...kept, ...now.filter(({ key }) => !shown.has(key) && !before.has(key))];
}

type Parser = (text: string) => unknown;
const parsers: Partial<Record<keyof Draft, Parser>> = {
  memory: parseSize, cpus: parseCpus, pids: parseCount, files: parseCount, quota: parseSize, ttl: parseTime,
  idle: parseTime, maxSnapshots: parseCount,
};
// The daemon has no call that takes a limit away.
const permanent: (keyof Draft)[] = ["memory", "cpus", "pids", "files", "quota"];

// What is wrong, by field.
export function problems(before: Draft, draft: Draft): Partial<Record<keyof Draft, string>> {
  const found: Partial<Record<keyof Draft, string>> = {};
  for (const [field, parse] of Object.entries(parsers) as [keyof Draft, Parser][]) {
    try {
      parse(draft[field] as string);
    } catch (error) {
      found[field] = (error as Error).message;
    }
  }
  for (const field of permanent) {
    if (before[field] !== "" && (draft[field] as string).trim() === "")
      found[field] = "a limit can be changed, but not removed";
  }
  const keys = draft.labels.map((each) => each.key);
  if (draft.labels.some(({ key }) => !/^[A-Za-z0-9._/-]{1,63}$/.test(key)))
    found.labels = "a key has 1 to 63 letters, digits, '.', '_', '/' and '-'";
  else if (new Set(keys).size < keys.length) found.labels = "two labels have the same key";
  return found;
}

function labelChanges(before: Draft, draft: Draft) {
  const old = new Map(before.labels.map(({ key, value }) => [key, value]));
  const set = draft.labels.filter(({ key, value }) => old.get(key) !== value);
  const kept = new Set(draft.labels.map(({ key }) => key));
  return { set, removed: [...old.keys()].filter((key) => !kept.has(key)) };
}

// Only what differs. Words are the options of `holt update`.
export function changes(before: Draft, draft: Draft): { request: Request; words: string[] } {
  const request: Request = {};
  const words: string[] = [];
  const limits: NonNullable<Request["limits"]> = {};
  const differs = (field: keyof Draft) => draft[field] !== before[field];
  const put = (option: string, value: string) => words.push(option, value);

  if (differs("name")) {
    request.name = draft.name.trim();
    put("--name", draft.name.trim());
  }
  if (differs("memory")) {
    limits.memoryBytes = parseSize(draft.memory) ?? 0n;
    put("--memory", sizeText(limits.memoryBytes as bigint));
  }
  if (differs("cpus")) {
    limits.cpuMillis = parseCpus(draft.cpus) ?? 0;
    put("--cpus", draft.cpus.trim());
  }
  if (differs("pids")) {
    limits.pids = parseCount(draft.pids) ?? 0;
    put("--pids", draft.pids.trim());
  }
  if (differs("files")) {
    limits.files = parseCount(draft.files) ?? 0;
    put("--files", draft.files.trim());
  }
  if (Object.keys(limits).length > 0) request.limits = limits;
  if (differs("quota")) {
    request.quotaBytes = parseSize(draft.quota) ?? 0n;
    put("--quota", sizeText(request.quotaBytes));
  }
  times(before, draft, request, put);
  if (differs("maxSnapshots")) {
    request.maxSnapshots = parseCount(draft.maxSnapshots) ?? 0;
    put("--max-snapshots", String(request.maxSnapshots));
  }
  const { set, removed } = labelChanges(before, draft);
  if (set.length > 0) request.labels = Object.fromEntries(set.map(({ key, value }) => [key, value]));
  if (removed.length > 0) request.removeLabels = removed;
  for (const { key, value } of set) put("--label", `${key}=${value}`);
  for (const key of removed) put("--remove-label", key);
  return { request, words };
}

function times(before: Draft, draft: Draft, request: Request, put: (option: string, value: string) => void): void {
  const ttl = parseTime(draft.ttl);
  if (ttl !== undefined) {
    request.ttlMs = ttl;
    if (ttl > 0n) request.expireAction = draft.expireAction;
    put("--ttl", ttl > 0n ? `${timeText(ttl)}:${draft.expireAction}` : "0");
  } else if (draft.expireAction !== before.expireAction) {
    request.expireAction = draft.expireAction;
    put("--ttl", `:${draft.expireAction}`);
  }
  if (draft.idle === before.idle) {
    if (draft.idle === "" || draft.idleAction === before.idleAction) return;
    request.idleAction = draft.idleAction;
    put("--idle-timeout", `:${draft.idleAction}`);
  } else {
    const idle = parseTime(draft.idle) ?? 0n;
    request.idleTimeoutMs = idle;
    if (idle > 0n) request.idleAction = draft.idleAction;
    put("--idle-timeout", idle > 0n ? `${timeText(idle)}:${draft.idleAction}` : "0");
  }
}

export function commandOf(sandbox: Sandbox, words: string[]): string {
  return words.length > 0 ? holt("update", ...words, sandbox.id) : holt("inspect", sandbox.id);
}
