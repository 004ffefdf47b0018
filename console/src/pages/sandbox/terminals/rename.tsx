// Asks for the label of a tab. It is a label in this browser: the name of a shell is part of the sandbox.
import { useRef } from "preact/hooks";
import { Button } from "../../../ui/button";
import { Dialog } from "../../../ui/dialog";
import { Field } from "../../../ui/parts";
import { cleanTitle } from "./title";
import { tabLabel, type TerminalTab } from "./store";

export function Rename({ tab, onDone, onClose }: { tab: TerminalTab; onDone(label: string): void; onClose(): void }) {
  const input = useRef<HTMLInputElement>(null);
  return (
    <Dialog title="Rename the tab" onClose={onClose} onSubmit={() => onDone(cleanTitle(input.current?.value ?? ""))}
      actions={<><Button onClick={onClose}>Cancel</Button><Button kind="primary" type="submit">Rename</Button></>}>
      <Field label="Label" hint={`Shown in this browser only. Empty: ${tab.id}.`}>
        {(id, hint) => <input id={id} ref={input} aria-describedby={hint} maxLength={60} defaultValue={tabLabel(tab)} autofocus />}
      </Field>
    </Dialog>
  );
}
