// Short notes at the lower edge. Errors stay until they are closed.
import { signal } from "@preact/signals";
import { failureOf } from "../api/errors";
import { plain } from "../lib/text";
import { Icon } from "./icons";

interface Toast {
  id: number;
  kind: "ok" | "error";
  text: string;
  detail: string;
}

const toasts = signal<Toast[]>([]);
const most = 5;
const shownMs = 5000;
let lastId = 0;

function add(kind: Toast["kind"], text: string, detail: string): void {
  const id = ++lastId;
  toasts.value = [...toasts.peek(), { id, kind, text, detail }].slice(-most);
  if (kind === "ok") setTimeout(() => close(id), shownMs);
}

function close(id: number): void {
  toasts.value = toasts.peek().filter((each) => each.id !== id);
}

export function toast(text: string): void {
  add("ok", text, "");
}

// What failed is named by the caller: toastError(error, "Cannot stop work").
export function toastError(error: unknown, what?: string): void {
  const { message, remedy } = failureOf(error);
  add("error", what ? `${what}: ${message}` : message, remedy);
}

export function Toasts() {
  return (
    <div class="toasts" role="status" aria-live="polite">
      {toasts.value.map((each) => (
        <div class={`toast ${each.kind}`} key={each.id}>
          <Icon name={each.kind === "ok" ? "check" : "warning"} />
          <div class="toast-text">
            <div>{plain(each.text)}</div>
            {each.detail && <div class="muted">{plain(each.detail)}</div>}
          </div>
          <button type="button" class="toast-close" aria-label="Close" onClick={() => close(each.id)}>
            <Icon name="close" size={12} />
          </button>
        </div>
      ))}
    </div>
  );
}
