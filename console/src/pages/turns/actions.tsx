// What can be done with the states of a sandbox. Each dialog says what will be lost and asks once.
import { useEffect, useState } from "preact/hooks";
import { ProcessService, ProcessState, type ProcessInfo } from "@gen/process_pb";
import { SandboxService, type Sandbox } from "@gen/sandbox_pb";
import { SnapshotService, type Snapshot } from "@gen/snapshot_pb";
import { client } from "../../api/transport";
import { holt } from "../../lib/cli";
import { count, millis, plain } from "../../lib/text";
import { href, navigate } from "../../router";
import { Button } from "../../ui/button";
import { CopyCli } from "../../ui/cli";
import { Dialog } from "../../ui/dialog";
import { Field, Loading, Problem } from "../../ui/parts";
import { toast } from "../../ui/toast";
import { readChanges, type Changes } from "./changes";

interface Props {
  sandbox: Sandbox;
  onClose: () => void;
}

function useAction(action: () => Promise<void>) {
  const [error, setError] = useState<unknown>(null);
  const [isBusy, setBusy] = useState(false);
  const run = async () => {
    if (isBusy) return;
    setBusy(true);
    setError(null);
    try {
      await action();
    } catch (thrown) {
      setError(thrown);
      setBusy(false);
    }
  };
  return { error, isBusy, run };
}

interface Loss {
  // Since the snapshot, and since the last snapshot: the latter are nowhere else.
  changed: Changes;
  unsaved: Changes;
  processes: ProcessInfo[];
}

async function lossOf(sandbox: Sandbox, snapshot: string, signal: AbortSignal): Promise<Loss> {
  const of = { sandboxId: sandbox.id, to: "", toSandboxId: "" };
  const asked = readChanges({ ...of, from: snapshot }, signal);
  // All at once: one that nobody waits for would be an error of the page when the dialog is closed.
  const [changed, unsaved, { processes }] = await Promise.all([
    asked, sandbox.base === snapshot ? asked : readChanges({ ...of, from: "" }, signal),
    client(ProcessService).list({ sandboxId: sandbox.id }, { signal }),
  ]);
  return { changed, unsaved, processes: processes.filter((each) => each.state === ProcessState.running) };
}

function atLeast(changes: Changes): string {
  return `${changes.isCut ? "more than " : ""}${count(changes.list.length, "path")}`;
}

function commandOf(process: ProcessInfo): string {
  const words = process.args.join(" ");
  return plain(words.length > 60 ? `${words.slice(0, 60)}…` : words) || `process ${process.id}`;
}

function LossList({ loss, isKept, newer }: { loss: Loss; isKept: boolean; newer: number }) {
  const { unsaved, processes } = loss;
  const lines = [];
  if (unsaved.list.length > 0 && !isKept)
    lines.push(<>The changes of {atLeast(unsaved)} that no snapshot has: {unsaved.list.slice(0, 3).map((each) => plain(each.path)).join(", ")}{unsaved.list.length > 3 ? ", …" : ""}</>);
  if (processes.length > 0)
    lines.push(<>{count(processes.length, "running process", "running processes")}, with all terminals and shells: {processes.slice(0, 3).map(commandOf).join(", ")}{processes.length > 3 ? ", …" : ""}</>);
  if (newer > 0) lines.push(<>{count(newer, "newer snapshot")}</>);
  if (lines.length === 0) return <p class="muted">Nothing is lost: all changes are in snapshots and no process runs.</p>;
  return (
    <div class="lost">
      <div class="lost-title">Will be lost</div>
      <ul>{lines.map((each, i) => <li key={i}>{each}</li>)}</ul>
    </div>
  );
}

export function RollbackDialog({ sandbox, snapshot, snapshots, onClose }: Props & { snapshot: Snapshot; snapshots: readonly Snapshot[] }) {
  const [loss, setLoss] = useState<Loss | null>(null);
  const [problem, setProblem] = useState<unknown>(null);
  const [isKept, setKept] = useState(false);
  const [isPruned, setPruned] = useState(false);
  const newer = snapshots.filter((each) => millis(each.createdAt) > millis(snapshot.createdAt)).length;
  useEffect(() => {
    const ending = new AbortController();
    lossOf(sandbox, snapshot.name, ending.signal).then(setLoss, (error: unknown) => ending.signal.aborted || setProblem(error));
    return () => ending.abort();
  }, [snapshot.name]);
  const { error, isBusy, run } = useAction(async () => {
    const sandboxId = sandbox.id;
    if (isKept) await client(SnapshotService).turnComplete({ sandboxId });
    await client(SnapshotService).rollback({ sandboxId, snapshot: snapshot.name, pruneNewer: isPruned });
    toast(`Rolled back to ${snapshot.name}`);
    onClose();
  });
  const canKeep = loss !== null && loss.unsaved.list.length > 0;
  return (
    <Dialog title={`Roll back to ${plain(snapshot.name)}?`} onClose={onClose} onSubmit={run}
      actions={<>
        <CopyCli command={(isKept ? `${holt("turn", sandbox.id)} && ` : "") + holt("rollback", isPruned && "--prune-newer", sandbox.id, snapshot.name)} />
        <span class="grow" />
        <Button onClick={onClose}>Cancel</Button>
        <Button type="submit" kind="danger" disabled={isBusy || !loss}>{isBusy ? "Rolling back…" : "Roll back"}</Button></>}>
      {!loss && !problem && <Loading what="Comparing with the current files" />}
      {problem !== null && <Problem error={problem} />}
      {loss && (
        <>
          <p>
            {loss.changed.list.length === 0
              ? "The files are already those of this snapshot; only processes end."
              : <>{atLeast(loss.changed)} {loss.changed.list.length === 1 ? "differs from it now and gets its" : "differ from it now and get their"} state of {plain(snapshot.name)} again.</>}
          </p>
          <LossList loss={loss} isKept={isKept} newer={isPruned ? newer + (isKept ? 1 : 0) : 0} />
          {canKeep && !isPruned && <Check label="End a turn first, so that the current files are kept" isOn={isKept} onChange={setKept} />}
          {newer > 0 && !isKept && <Check label={`Remove the ${count(newer, "newer snapshot")}, too`} isOn={isPruned} onChange={setPruned} />}
        </>
      )}
      {error !== null && <Problem error={error} />}
    </Dialog>
  );
}

function Check({ label, isOn, onChange }: { label: string; isOn: boolean; onChange: (isOn: boolean) => void }) {
  return (
    <label class="check">
      <input type="checkbox" checked={isOn} onChange={(event) => onChange(event.currentTarget.checked)} />
      <span>{label}</span>
    </label>
  );
}

export function ForkDialog({ sandbox, from, onClose }: Props & { from: string }) {
  const [name, setName] = useState("");
  const [number, setNumber] = useState(1);
  const [forks, setForks] = useState<Sandbox[] | null>(null);
  const isValid = Number.isInteger(number) && number >= 1 && number <= 256;
  const { error, isBusy, run } = useAction(async () => {
    const reply = await client(SandboxService).fork({ sandboxId: sandbox.id, from, count: number, name });
    toast(`Created ${count(reply.sandboxes.length, "fork")}`);
    if (reply.sandboxes.length === 1 && reply.sandboxes[0]) {
      onClose();
      navigate(href("sandboxes", reply.sandboxes[0].id, "turns"));
    } else {
      setForks(reply.sandboxes);
    }
  });
  if (forks) {
    return (
      <Dialog title={`${count(forks.length, "fork")} created`} onClose={onClose} actions={<Button kind="primary" onClick={onClose}>Close</Button>}>
        <ul class="fork-list">
          {forks.map((each) => <li key={each.id}><a href={href("sandboxes", each.id, "turns")} onClick={onClose}>{plain(each.name || each.id)}</a></li>)}
        </ul>
      </Dialog>
    );
  }
  return (
    <Dialog title={from ? `Fork from ${plain(from)}` : "Fork the current files"} onClose={onClose} onSubmit={run}
      actions={<>
        <CopyCli command={holt("fork", ...(number > 1 ? ["--count", String(number)] : []), ...(from ? ["--from", from] : []), ...(name ? ["--name", name] : []), sandbox.id)} />
        <span class="grow" />
        <Button onClick={onClose}>Cancel</Button>
        <Button type="submit" kind="primary" disabled={isBusy || !isValid}>{isBusy ? "Forking…" : "Fork"}</Button></>}>
      <p>A fork is a new sandbox with these files, without processes. This one does not change.</p>
      <div class="fields">
        <Field label="Number" hint="1 to 256" error={isValid ? undefined : "A number from 1 to 256 is needed."}>
          {(id, hint) => <input id={id} aria-describedby={hint} type="number" min={1} max={256} value={number}
            onInput={(event) => setNumber(event.currentTarget.valueAsNumber)} />}
        </Field>
        <Field label="Name" hint={number > 1 && name ? `${name}-1 to ${name}-${number}` : "May be empty"}>
          {(id, hint) => <input id={id} aria-describedby={hint} value={name} spellcheck={false} autocomplete="off"
            onInput={(event) => setName(event.currentTarget.value)} />}
        </Field>
      </div>
      {error !== null && <Problem error={error} />}
    </Dialog>
  );
}

export function SnapshotDialog({ sandbox, onClose }: Props) {
  const [name, setName] = useState("");
  const isValid = /^[A-Za-z0-9][A-Za-z0-9._-]{0,254}$/.test(name) && name !== "template";
  const { error, isBusy, run } = useAction(async () => {
    await client(SnapshotService).create({ sandboxId: sandbox.id, name });
    toast(`Created the snapshot ${name}`);
    onClose();
  });
  return (
    <Dialog title="New snapshot" onClose={onClose} onSubmit={run}
      actions={<><CopyCli command={holt("snapshot", sandbox.id, name || "NAME")} /><span class="grow" /><Button onClick={onClose}>Cancel</Button><Button type="submit" kind="primary" disabled={isBusy || !isValid}>Create</Button></>}>
      <Field label="Name" hint="Letters, digits, '.', '_' and '-'. Named snapshots are kept until they are removed."
        error={name && !isValid ? "This cannot be the name of a snapshot." : undefined}>
        {(id, hint) => <input id={id} aria-describedby={hint} value={name} autofocus spellcheck={false} autocomplete="off"
          onInput={(event) => setName(event.currentTarget.value)} />}
      </Field>
      {error !== null && <Problem error={error} />}
    </Dialog>
  );
}

// The name that people give to a snapshot; the one that commands use stays.
export function NoteDialog({ sandbox, snapshot, onClose }: Props & { snapshot: Snapshot }) {
  const [note, setNote] = useState(snapshot.note);
  const problem = new TextEncoder().encode(note).length > 255 ? "At most 255 bytes." : plain(note) !== note ? "No control characters." : "";
  const { error, isBusy, run } = useAction(async () => {
    await client(SnapshotService).update({ sandboxId: sandbox.id, snapshot: snapshot.name, note });
    toast(note ? `Named ${snapshot.name}` : `Removed the name of ${snapshot.name}`);
    onClose();
  });
  return (
    <Dialog title={`Name ${plain(snapshot.name)}`} onClose={onClose} onSubmit={run}
      actions={<><Button onClick={onClose}>Cancel</Button><Button type="submit" kind="primary" disabled={isBusy || problem !== ""}>Save</Button></>}>
      <Field label="Name" hint={`Shown beside ${plain(snapshot.name)}, which commands use; may be empty.`} error={problem || undefined}>
        {(id, hint) => <input id={id} aria-describedby={hint} value={note} autofocus autocomplete="off"
          onInput={(event) => setNote(event.currentTarget.value)} />}
      </Field>
      {error !== null && <Problem error={error} />}
    </Dialog>
  );
}
