// Dialogs that ask for a name or a path.
import { useState } from "preact/hooks";
import { FileService } from "@gen/file_pb";
import { client } from "../../api/transport";
import { plain } from "../../lib/text";
import { Button } from "../../ui/button";
import { Dialog } from "../../ui/dialog";
import { Field, Problem } from "../../ui/parts";
import { toast } from "../../ui/toast";
import { join, nameProblem, requestPath, textPath, type FilePath } from "./path";
import { writeFile } from "./transfer";

interface Props {
  sandboxId: string;
  onClose: () => void;
  // The path that is there now.
  onDone: (path: FilePath) => void;
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

export function NewDialog({ sandboxId, dir, kind, onClose, onDone }: Props & { dir: FilePath; kind: "file" | "directory" }) {
  const [name, setName] = useState("");
  const problem = nameProblem(name);
  const { error, isBusy, run } = useAction(async () => {
    if (problem) throw new Error(problem);
    const path = join(dir, name);
    if (kind === "directory") await client(FileService).makeDir({ sandboxId, ...requestPath(path) });
    else await writeFile(sandboxId, path, new Uint8Array(), { isNew: true }).done;
    toast(`Created ${name}`);
    onDone(path);
  });
  return (
    <Dialog title={kind === "file" ? "New file" : "New directory"} onClose={onClose} onSubmit={run}
      actions={<><Button onClick={onClose}>Cancel</Button><Button type="submit" kind="primary" disabled={isBusy || problem !== ""}>Create</Button></>}>
      <Field label="Name" hint={<>In {plain(dir.text)}</>} error={name && problem ? problem : undefined}>
        {(id, hint) => <input id={id} aria-describedby={hint} value={name} autofocus spellcheck={false} autocomplete="off"
          onInput={(event) => setName(event.currentTarget.value)} />}
      </Field>
      {error !== null && <Problem error={error} />}
    </Dialog>
  );
}

export function MoveDialog({ sandboxId, path, onClose, onDone }: Props & { path: FilePath }) {
  const [to, setTo] = useState(path.text);
  const problem = to === "" || !to.startsWith("/") ? "An absolute path is needed." : to === path.text ? "The path has not changed." : "";
  const { error, isBusy, run } = useAction(async () => {
    if (problem) throw new Error(problem);
    await client(FileService).move({ sandboxId, ...requestPath(path), to });
    toast(`Renamed to ${to}`);
    onDone(textPath(to));
  });
  return (
    <Dialog title="Rename or move" onClose={onClose} onSubmit={run}
      actions={<><Button onClick={onClose}>Cancel</Button><Button type="submit" kind="primary" disabled={isBusy || problem !== ""}>Rename</Button></>}>
      <Field label="New path" hint="An existing file is not replaced." error={to !== path.text && problem ? problem : undefined}>
        {(id, hint) => <input id={id} aria-describedby={hint} class="mono" value={to} autofocus spellcheck={false} autocomplete="off"
          onInput={(event) => setTo(event.currentTarget.value)} />}
      </Field>
      {error !== null && <Problem error={error} />}
    </Dialog>
  );
}
