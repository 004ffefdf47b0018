// The dialog that changes which owners may use a template or a volume.
import { useState } from "preact/hooks";
import { holt } from "../lib/cli";
import { Button } from "./button";
import { CopyCli } from "./cli";
import { Dialog } from "./dialog";
import { Field } from "./parts";
import { toastError } from "./toast";

interface Props {
  kind: "template" | "volume";
  name: string; // as the command takes it
  owners: string[];
  isPublic: boolean;
  // What others may do with it.
  right: string;
  save: (owners: string[], isPublic: boolean) => Promise<unknown>;
  onClose: () => void;
}

export function ShareDialog({ kind, name, owners, isPublic, right, save, onClose }: Props) {
  const [text, setText] = useState(owners.join(", "));
  const [isForAll, setForAll] = useState(isPublic);
  const wanted = text.split(/[\s,]+/).filter(Boolean);
  const isPrivate = !isForAll && wanted.length === 0;
  const command = holt(kind, "share", name, ...(isForAll ? ["--public"] : []),
    ...wanted.flatMap((each) => ["--with", each]), isPrivate && "--private");
  const submit = async () => {
    try {
      await save(wanted, isForAll);
      onClose();
    } catch (error) {
      toastError(error, `Cannot share ${name}`);
    }
  };
  return (
    <Dialog title={`Share the ${kind} ${name}`} onClose={onClose} onSubmit={() => void submit()}
      actions={
        <>
          <CopyCli command={command} />
          <Button onClick={onClose}>Cancel</Button>
          <Button type="submit" kind="primary">Share</Button>
        </>
      }>
      <Field label="Owners" hint={`They may ${right}. Empty: only its own owner.`}>
        {(id, describedBy) => (
          <input id={id} value={text} placeholder="ann, bob" aria-describedby={describedBy} autocomplete="off" spellcheck={false}
            onInput={(event) => setText(event.currentTarget.value)} />
        )}
      </Field>
      <label class="check-row">
        <input type="checkbox" checked={isForAll} onChange={(event) => setForAll(event.currentTarget.checked)} />
        All owners of this host
      </label>
    </Dialog>
  );
}

export function SharedWith({ owners, isPublic }: { owners: string[]; isPublic: boolean }) {
  if (isPublic) return <span class="badge">all owners</span>;
  if (owners.length === 0) return <span class="muted">private</span>;
  return <>{owners.join(", ")}</>;
}
