// "Copy as CLI": the holt command that does what the page does.
import { signal } from "@preact/signals";
import { Button } from "./button";
import { Dialog } from "./dialog";
import { toast } from "./toast";

const shown = signal<string | null>(null);

// Browsers allow the clipboard to pages from this machine or with TLS; elsewhere the user copies.
export async function copyText(text: string, what: string): Promise<void> {
  try {
    await navigator.clipboard.writeText(text);
    toast(what);
  } catch {
    shown.value = text;
  }
}

// The shortcut "c" presses the first one of a tab, or of a page.
export function CopyCli({ command, small }: { command: string; small?: boolean }) {
  return (
    <span data-cli={command} title={command}>
      <Button icon="copy" kind="quiet" size={small ? "small" : "normal"} label="Copy as CLI"
        onClick={() => copyText(command, `Copied: ${command}`)}>{small ? undefined : "CLI"}</Button>
    </span>
  );
}

export function CopyHost() {
  const text = shown.value;
  if (text === null) return null;
  const close = () => (shown.value = null);
  return (
    <Dialog title="Copy this text" onClose={close} actions={<Button onClick={close}>Close</Button>}>
      <p class="muted">The browser does not allow this page to use the clipboard.</p>
      <textarea class="mono" readOnly rows={4} aria-label="Text to copy" autofocus
        onFocus={(event) => event.currentTarget.select()}>{text}</textarea>
    </Dialog>
  );
}
