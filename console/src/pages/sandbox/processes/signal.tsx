// Sends a signal to a process, after a question that says what it does.
import { useState } from "preact/hooks";
import { ProcessService, Restart, type ProcessInfo } from "@gen/process_pb";
import { client } from "../../../api/transport";
import { Button } from "../../../ui/button";
import { Dialog } from "../../../ui/dialog";
import { Field, Foreign, Problem } from "../../../ui/parts";
import { toast } from "../../../ui/toast";
import { commandLine, SIGNALS, signalName } from "./outcome";

const EFFECTS: Record<number, string> = {
  15: "Asks the process to end. It can save its work first.",
  9: "Ends the process at once. It cannot save anything.",
  2: "Interrupts the process, as Ctrl-C does.",
  1: "Tells the process that its terminal is gone; some programs load their configuration again.",
  3: "Ends the process, as Ctrl-\\ does.",
  19: "Stops the process until SIGCONT.",
  18: "Continues a process that was stopped.",
};

export function SignalDialog({ sandboxId, process, onClose }: {
  sandboxId: string; process: ProcessInfo; onClose(): void;
}) {
  const [number, setNumber] = useState(15);
  const [isTree, setTree] = useState(false);
  const [error, setError] = useState<unknown>(null);
  const send = async () => {
    try {
      await client(ProcessService).signal({ sandboxId, processId: process.id, signal: number, tree: isTree });
      toast(`${signalName(number)} was sent to ${process.id}`);
      onClose();
    } catch (thrown) {
      setError(thrown);
    }
  };
  return (
    <Dialog title={`Send a signal to ${process.id}?`} onClose={onClose} onSubmit={() => void send()}
      actions={<><Button onClick={onClose}>Cancel</Button><Button kind="danger" type="submit">Send {signalName(number)}</Button></>}>
      <p><Foreign text={commandLine(process)} mono /></p>
      <Field label="Signal" hint={EFFECTS[number] ?? "What it does depends on the program."}>
        {(id, hint) => (
          <select id={id} aria-describedby={hint} value={number} onChange={(event) => setNumber(Number(event.currentTarget.value))}>
            {SIGNALS.map(([each, name]) => <option key={each} value={each}>{name} ({each})</option>)}
          </select>
        )}
      </Field>
      <label class="row"><input type="checkbox" checked={isTree} onChange={(event) => setTree(event.currentTarget.checked)} />
        Also to everything that it has started</label>
      {process.restart !== Restart.no && <p class="muted">The service is not restarted after the signal of a client ends it.</p>}
      {error != null && <Problem error={error} />}
    </Dialog>
  );
}
