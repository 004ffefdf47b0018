// What the usage plots show: the last minutes of one sandbox, kept while the console is open.
import type { SandboxStats } from "@gen/sandbox_pb";

export const mostPoints = 900; // a quarter of an hour at one a second
const mostRecordings = 8;
const gapSeconds = 5; // a longer silence is drawn as a gap

type Column = (number | null)[];

export interface Recording {
  times: number[]; // seconds since 1970
  cpu: Column; // CPUs
  memory: Column;
  cache: Column;
  pids: Column;
  processes: Column;
  space: Column;
  latest: SandboxStats | null;
}

const recordings = new Map<string, Recording>();

// The recording of a sandbox: the earlier one if the user was here before.
export function recordingOf(id: string): Recording {
  const found = recordings.get(id);
  recordings.delete(id);
  const recording = found ?? {
    times: [], cpu: [], memory: [], cache: [], pids: [], processes: [], space: [], latest: null,
  };
  recordings.set(id, recording);
  const oldest = recordings.keys().next();
  if (recordings.size > mostRecordings && !oldest.done) recordings.delete(oldest.value);
  return recording;
}

function columns(recording: Recording): Column[] {
  const { times, cpu, memory, cache, pids, processes, space } = recording;
  return [times, cpu, memory, cache, pids, processes, space];
}

function push(recording: Recording, row: (number | null)[]): void {
  for (const [i, column] of columns(recording).entries()) {
    column.push(row[i] ?? null);
    if (column.length > mostPoints) column.shift();
  }
}

export function record(recording: Recording, stats: SandboxStats, seconds: number): void {
  const last = recording.times.at(-1);
  if (last !== undefined && seconds <= last) return;
  if (last !== undefined && seconds - last > gapSeconds) push(recording, [last + 1]);
  const runs = stats.state === "active" || stats.state === "paused";
  push(recording, [
    seconds,
    stats.cpuMillis === undefined ? null : stats.cpuMillis / 1000,
    runs ? Number(stats.memoryBytes) : 0,
    runs ? Number(stats.cacheBytes) : 0,
    stats.pids,
    stats.processes,
    Number(stats.spaceUsed),
  ]);
  recording.latest = stats;
}
