// One process: what is known of it, what can be done with it, and its output.
import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { ProcessState, type ProcessInfo } from "@gen/process_pb";
import { canWrite } from "../../../api/session";
import { holt } from "../../../lib/cli";
import { bytes, dateTime } from "../../../lib/text";
import { href } from "../../../router";
import { Button } from "../../../ui/button";
import { CopyCli } from "../../../ui/cli";
import { Foreign } from "../../../ui/parts";
import { Output } from "../output/output";
import { commandLine, outcomeText } from "./outcome";
import { SignalDialog } from "./signal";
import { elapsed, ProcessOutcome, restartText, timeText, useNow } from "./table";

function Fact({ name, children }: { name: string; children: ComponentChildren }) {
  return <div class="fact"><dt>{name}</dt><dd>{children}</dd></div>;
}

function Facts({ process }: { process: ProcessInfo }) {
  const now = useNow();
  const { ended } = process;
  return (
    <dl class="facts">
      <Fact name="Started">{dateTime(process.startedAt)}</Fact>
      <Fact name={ended ? "Took" : "Runs for"}>{timeText(elapsed(process, now))}</Fact>
      {process.pid > 0 && <Fact name="PID">{process.pid}</Fact>}
      <Fact name="Directory"><Foreign text={process.cwd || "/workspace"} mono /></Fact>
      {process.tag && <Fact name="Tag"><Foreign text={process.tag} /></Fact>}
      {process.port > 0 && <Fact name="Port">{process.port}{process.address && <> at <Foreign text={process.address} mono /></>}</Fact>}
      {restartText(process) && <Fact name="Restarts">{restartText(process)}</Fact>}
      {ended && <Fact name="End">{outcomeText(ended)}{ended.reason && <>: <Foreign text={ended.reason} /></>}</Fact>}
      {ended && <Fact name="CPU time">{(Number(ended.cpuMs) / 1000).toFixed(2)} s</Fact>}
      {ended && <Fact name="Peak memory">{bytes(ended.memoryPeakBytes)}</Fact>}
      {ended?.truncated && <Fact name="Output">not kept in full</Fact>}
    </dl>
  );
}

export function Details({ sandboxId, process, onAgain, onClose }: {
  sandboxId: string; process: ProcessInfo; onAgain(process: ProcessInfo): void; onClose(): void;
}) {
  const [isSignalling, setSignalling] = useState(false);
  const isRunning = process.state === ProcessState.running;
  return (
    <section class="panel process-details" aria-label={`Process ${process.id}`}>
      <header class="process-head">
        <h2>{process.id}</h2>
        <ProcessOutcome process={process} />
        <span class="grow cut"><Foreign text={commandLine(process)} mono /></span>
        {process.terminal && isRunning &&
          <a class="button small" href={`${href("sandboxes", sandboxId, "terminals")}?process=${encodeURIComponent(process.id)}`}>Open terminal</a>}
        {canWrite.value && process.args.length > 0 && !process.argsTruncated &&
          <Button size="small" icon="refresh" onClick={() => onAgain(process)}>Run again</Button>}
        {canWrite.value && isRunning && <Button size="small" kind="danger" icon="stop" onClick={() => setSignalling(true)}>Signal</Button>}
        <CopyCli command={holt("logs", isRunning && "--follow", sandboxId, process.id)} small />
        <Button kind="quiet" size="small" icon="close" label="Close the details" onClick={onClose} />
      </header>
      <Facts process={process} />
      <Output sandboxId={sandboxId} processId={process.id} />
      {isSignalling && <SignalDialog sandboxId={sandboxId} process={process} onClose={() => setSignalling(false)} />}
    </section>
  );
}
