// The processes of a sandbox, live, and the output of the one that is chosen.
import { useComputed, useSignal } from "@preact/signals";
import { useEffect, useState } from "preact/hooks";
import { EventService } from "@gen/event_pb";
import { ProcessService, ProcessState, type ProcessInfo } from "@gen/process_pb";
import type { Sandbox } from "@gen/sandbox_pb";
import { follow } from "../../../api/follow";
import { canWrite } from "../../../api/session";
import { client } from "../../../api/transport";
import { holt } from "../../../lib/cli";
import { merged } from "../../../lib/merge";
import { query, setQuery } from "../../../router";
import { Button } from "../../../ui/button";
import { CopyCli } from "../../../ui/cli";
import { Empty, Loading, Problem } from "../../../ui/parts";
import { Details } from "./details";
import { commandLine } from "./outcome";
import { StartDialog } from "./start";
import { ProcessTable } from "./table";

// The list, kept up to date by events.
function useProcesses(sandboxId: string) {
  const processes = useSignal<ProcessInfo[] | null>(null);
  const error = useSignal<unknown>(null);
  useEffect(() => {
    const refresh = () => client(ProcessService).list({ sandboxId }).then((found) => {
      processes.value = found.processes;
      error.value = null;
    }, (thrown: unknown) => {
      error.value = thrown;
    });
    const refreshSoon = merged(() => void refresh());
    return follow((signal) => client(EventService).watch({
      sandboxId, types: ["process.*", "port.*", "sandbox.*"],
    }, { signal }), { message: refreshSoon });
  }, [sandboxId]);
  return { processes, error };
}

export default function Processes({ sandbox }: { sandbox: Sandbox }) {
  const { processes, error } = useProcesses(sandbox.id);
  const filter = useSignal("");
  const showsEnded = useSignal(true);
  const [isStarting, setStarting] = useState<ProcessInfo | boolean>(false);
  const shown = useComputed(() => {
    const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
    return (processes.value ?? []).filter((each) => showsEnded.value || each.state === ProcessState.running)
      .filter((each) => {
        const text = `${each.id} ${each.tag} ${each.pid} ${commandLine(each)}`.toLowerCase();
        return words.every((word) => text.includes(word));
      }).reverse();
  });
  const chosenId = query.value.get("process") ?? "";
  const chosen = processes.value?.find((each) => each.id === chosenId);

  if (error.value && !processes.value) return <Problem error={error.value} />;
  if (!processes.value) return <Loading />;
  const running = processes.value.filter((each) => each.state === ProcessState.running).length;
  return (
    <>
      <section class={`panel${chosen ? " process-chosen" : ""}`} aria-label="Processes">
        <div class="process-bar">
          <input type="search" placeholder="Filter" aria-label="Filter processes" value={filter.value}
            onInput={(event) => (filter.value = event.currentTarget.value)} />
          <label class="row"><input type="checkbox" checked={showsEnded.value}
            onChange={(event) => (showsEnded.value = event.currentTarget.checked)} />Ended</label>
          <span class="grow" />
          <span class="muted">{running} running, {processes.value.length - running} ended</span>
          <CopyCli command={holt("ps", showsEnded.value && "--all", sandbox.id)} small />
          {canWrite.value && <Button kind="primary" icon="plus" onClick={() => setStarting(true)}>Start</Button>}
        </div>
        {shown.value.length > 0
          ? <ProcessTable processes={shown.value} chosen={chosenId} onChoose={(id) => setQuery({ process: id })} />
          : <Empty icon="process" title={processes.value.length ? "No process matches" : "No process was started yet"} />}
      </section>
      {chosen && <Details key={chosen.id} sandboxId={sandbox.id} process={chosen} onAgain={setStarting}
        onClose={() => setQuery({ process: null })} />}
      {isStarting && <StartDialog sandboxId={sandbox.id} like={isStarting === true ? undefined : isStarting}
        onClose={() => setStarting(false)} onStarted={(id) => {
          setStarting(false);
          setQuery({ process: id });
        }} />}
    </>
  );
}
