// The table of processes, newest first.
import { useEffect, useState } from "preact/hooks";
import { ProcessState, Restart, type ProcessInfo } from "@gen/process_pb";
import { visible } from "../../../api/connection";
import { bytes, dateTime, duration, millis } from "../../../lib/text";
import { Button } from "../../../ui/button";
import { Foreign } from "../../../ui/parts";
import { commandLine, isGood, outcomeText } from "./outcome";

const FIRST_ROWS = 200;

// The time, once a second while the page is visible.
export function useNow(): number {
  const [now, setNow] = useState(Date.now());
  const isVisible = visible.value;
  useEffect(() => {
    if (!isVisible) return;
    const timer = setInterval(() => setNow(Date.now()), 1000);
    return () => clearInterval(timer);
  }, [isVisible]);
  return now;
}

export function elapsed(process: ProcessInfo, now: number): number {
  if (process.ended) return Number(process.ended.durationMs);
  return Math.max(0, now - millis(process.startedAt));
}

// "340 ms", "45s", "3h 20m".
export function timeText(ms: number): string {
  return ms < 1000 ? `${Math.round(ms)} ms` : duration(ms);
}

export function ProcessOutcome({ process }: { process: ProcessInfo }) {
  if (process.state === ProcessState.running)
    return <span class="state good"><span class="dot" aria-hidden="true" />running</span>;
  const { ended } = process;
  const tone = !ended ? "idle" : isGood(ended) ? "idle" : "bad";
  return <span class={`state ${tone}`}><span class="dot" aria-hidden="true" />{ended ? outcomeText(ended) : "ended"}</span>;
}

export function restartText(process: ProcessInfo): string {
  const policy = process.restart === Restart.always ? "always" : process.restart === Restart.on_failure ? "on failure" : "";
  if (!policy && process.restarts === 0) return "";
  return policy ? `${process.restarts} (${policy})` : String(process.restarts);
}

function outputBytes(process: ProcessInfo): bigint {
  return (process.stdout?.total ?? 0n) + (process.stderr?.total ?? 0n);
}

function Row({ process, now, isChosen, onChoose }: {
  process: ProcessInfo; now: number; isChosen: boolean; onChoose(id: string): void;
}) {
  return (
    <tr class={isChosen ? "chosen" : undefined} onClick={() => onChoose(process.id)}>
      <td><button type="button" class="process-id" aria-pressed={isChosen}>{process.id}</button></td>
      <td><ProcessOutcome process={process} /></td>
      <td class="process-command"><Foreign text={commandLine(process) || "(unknown)"} mono />
        {process.tag && <span class="label"><span class="label-key"><Foreign text={process.tag} /></span></span>}
        {process.terminal && <span class="label"><span class="label-key">terminal</span></span>}
      </td>
      <td class="number">{process.pid || ""}</td>
      <td class="number">{process.port ? <Foreign text={process.address || String(process.port)} /> : ""}</td>
      <td class="number">{restartText(process)}</td>
      <td class="number">{bytes(outputBytes(process))}</td>
      <td class="number" title={`Started ${dateTime(process.startedAt)}`}>{timeText(elapsed(process, now))}</td>
    </tr>
  );
}

export function ProcessTable({ processes, chosen, onChoose }: {
  processes: ProcessInfo[]; chosen: string; onChoose(id: string): void;
}) {
  const now = useNow();
  const [isLong, setLong] = useState(false);
  const rows = isLong ? processes : processes.slice(0, FIRST_ROWS);
  return (
    <div class="process-table" tabIndex={0} role="region" aria-label="List of processes">
      <table>
        <thead>
          <tr><th>Id</th><th>State</th><th class="process-command">Command</th><th class="number">PID</th>
            <th class="number">Port</th><th class="number">Restarts</th><th class="number">Output</th>
            <th class="number">Time</th></tr>
        </thead>
        <tbody>
          {rows.map((each) => <Row key={each.id} process={each} now={now} isChosen={each.id === chosen} onChoose={onChoose} />)}
        </tbody>
      </table>
      {rows.length < processes.length &&
        <Button kind="quiet" onClick={() => setLong(true)}>Show all {processes.length.toLocaleString("en")}</Button>}
    </div>
  );
}
