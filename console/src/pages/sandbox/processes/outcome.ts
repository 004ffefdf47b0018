// How a process ended, in words.
import { KilledBy, Outcome, type Ended, type ProcessInfo } from "@gen/process_pb";

export const SIGNALS: readonly [number, string][] = [
  [15, "SIGTERM"], [9, "SIGKILL"], [2, "SIGINT"], [1, "SIGHUP"], [3, "SIGQUIT"], [10, "SIGUSR1"], [12, "SIGUSR2"],
  [19, "SIGSTOP"], [18, "SIGCONT"],
];
const OTHER_SIGNALS: readonly [number, string][] = [
  [4, "SIGILL"], [5, "SIGTRAP"], [6, "SIGABRT"], [7, "SIGBUS"], [8, "SIGFPE"], [11, "SIGSEGV"], [13, "SIGPIPE"],
  [14, "SIGALRM"],
];

export function signalName(number: number): string {
  return [...SIGNALS, ...OTHER_SIGNALS].find(([each]) => each === number)?.[1] ?? `signal ${number}`;
}

function killed(ended: Ended): string {
  switch (ended.killedBy) {
    case KilledBy.user: return `killed by ${signalName(ended.signal || ended.exitCode - 128)}`;
    case KilledBy.client: return "killed: its client disconnected";
    case KilledBy.rollback: return "killed by a rollback";
    case KilledBy.stop: return "killed: the sandbox was stopped";
    case KilledBy.destroy: return "killed: the sandbox was destroyed";
    case KilledBy.quota: return "killed: the quota was exceeded";
    default: return "killed";
  }
}

export function outcomeText(ended: Ended): string {
  switch (ended.outcome) {
    case Outcome.exited: return `exit ${ended.exitCode}`;
    case Outcome.signaled: return signalName(ended.signal);
    case Outcome.timed_out: return "timed out";
    case Outcome.oom: return "out of memory";
    case Outcome.killed: return killed(ended);
    case Outcome.lost: return "lost";
    case Outcome.not_started: return ended.exitCode === 127 ? "command not found" : "not started";
    default: return "ended";
  }
}

export function isGood(ended: Ended): boolean {
  return ended.outcome === Outcome.exited && ended.exitCode === 0;
}

// Returns the arguments as a line that a shell would take.
export function commandLine(process: Pick<ProcessInfo, "args" | "argsTruncated">): string {
  const words = process.args.map((each) =>
    /^[\w@%+=:,./-]+$/.test(each) ? each : `'${each.replaceAll("'", "'\\''")}'`);
  return words.join(" ") + (process.argsTruncated ? " \u2026" : "");
}
