// Modal dialogs: the browser's own <dialog>, which keeps the focus inside and closes with Escape.
import type { ComponentChildren } from "preact";
import { useEffect, useId, useRef } from "preact/hooks";
import { Button } from "./button";

interface Props {
  title: string;
  children: ComponentChildren;
  // Buttons; right aligned.
  actions?: ComponentChildren;
  wide?: boolean;
  onClose: () => void;
  // Makes the dialog a form.
  onSubmit?: () => unknown;
}

export function Dialog({ title, children, actions, wide, onClose, onSubmit }: Props) {
  const ref = useRef<HTMLDialogElement>(null);
  const id = useId();
  useEffect(() => {
    const dialog = ref.current;
    dialog?.showModal();
    dialog?.querySelector<HTMLElement>("[data-focus], .dialog-body :is(input, select, textarea)")?.focus();
    return () => dialog?.close();
  }, []);
  const body = (
    <>
      <header class="dialog-head">
        <h2 id={id}>{title}</h2>
        <Button icon="close" kind="quiet" label="Close" onClick={onClose} />
      </header>
      <div class="dialog-body">{children}</div>
      {actions && <footer class="dialog-foot">{actions}</footer>}
    </>
  );
  return (
    <dialog ref={ref} class={wide ? "dialog wide" : "dialog"} aria-labelledby={id}
      onCancel={(event) => {
        event.preventDefault();
        onClose();
      }}>
      {onSubmit ? (
        <form class="dialog-form" onSubmit={(event) => {
          event.preventDefault();
          onSubmit();
        }}>{body}</form>
      ) : <div class="dialog-form">{body}</div>}
    </dialog>
  );
}
