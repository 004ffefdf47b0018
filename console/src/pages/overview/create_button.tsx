// The button "Create sandbox"; the dialog is loaded when it is first opened.
import { signal } from "@preact/signals";
import { Button } from "../../ui/button";
import { Lazy } from "../../ui/lazy";

const isOpen = signal(false);
const load = () => import("./create");

export function CreateButton() {
  return (
    <>
      <Button kind="primary" icon="plus" onClick={() => (isOpen.value = true)}>Create sandbox</Button>
      {isOpen.value && <Lazy load={load} props={{ onClose: () => (isOpen.value = false) }} />}
    </>
  );
}

