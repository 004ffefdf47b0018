// Keyboard shortcuts. They are single characters, so they can be turned off, and they do nothing while
// the focus is in a field, a terminal or a dialog.
import { signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { canWrite, isAdmin } from "../api/session";
import { navigate } from "../router";
import { Button } from "./button";
import { Dialog } from "./dialog";

const storageKey = "holt.shortcuts";
const isOn = signal(localStorage.getItem(storageKey) !== "off");
const isHelpOpen = signal(false);
const chordMs = 1500;

interface Shortcut {
  keys: string;
  text: string;
  run: () => void;
  isOffered?: () => boolean;
}

function go(to: string): () => void {
  return () => navigate(to);
}

function press(selector: string): () => void {
  return () => document.querySelector<HTMLElement>(selector)?.click();
}

// The command of the tab, or that of the page.
function copyCommand(): void {
  (document.querySelector<HTMLElement>("main .tab-body [data-cli] button") ??
    document.querySelector<HTMLElement>("main [data-cli] button"))?.click();
}

// The tab before or after the current one of the page.
function turn(step: number): () => void {
  return () => {
    const tabs = [...document.querySelectorAll<HTMLAnchorElement>("main .tabs .tab")];
    const at = tabs.findIndex((each) => each.getAttribute("aria-current"));
    tabs[(at + step + tabs.length) % tabs.length]?.click();
  };
}

function focusSearch(): void {
  const field = document.querySelector<HTMLInputElement>("main input[type=search]");
  field?.focus();
  field?.select();
}

export const shortcuts: Shortcut[] = [
  { keys: "g o", text: "Overview", run: go("#/") },
  { keys: "g e", text: "Events", run: go("#/events") },
  { keys: "g t", text: "Templates", run: go("#/templates") },
  { keys: "g v", text: "Volumes", run: go("#/volumes") },
  { keys: "g m", text: "Models", run: go("#/models") },
  { keys: "g k", text: "Tokens and sessions", run: go("#/access"), isOffered: () => canWrite.value },
  { keys: "g w", text: "Owners", run: go("#/owners"), isOffered: () => isAdmin.value },
  { keys: "g a", text: "Audit", run: go("#/audit") },
  { keys: "g d", text: "Doctor", run: go("#/doctor"), isOffered: () => isAdmin.value },
  { keys: "/", text: "Search on this page", run: focusSearch },
  { keys: "[", text: "Previous tab", run: turn(-1) },
  { keys: "]", text: "Next tab", run: turn(1) },
  { keys: "n", text: "Create: the main button of the page", run: press("main .page-head .button.primary"), isOffered: () => canWrite.value },
  { keys: "c", text: "Copy the holt command of this page", run: copyCommand },
  { keys: "?", text: "This help", run: () => (isHelpOpen.value = true) },
];

function isTyping(target: EventTarget | null): boolean {
  return target instanceof HTMLElement &&
    (target.isContentEditable || target.closest("input, textarea, select, dialog, [role=menu], .xterm") !== null);
}

let chord = "";
let chordAt = 0;

function pressed(event: KeyboardEvent): void {
  if (!isOn.peek() || event.defaultPrevented || event.ctrlKey || event.altKey || event.metaKey || event.key.length !== 1) return;
  if (isTyping(event.target) || document.querySelector("dialog[open]")) return;
  const keys = chord && event.timeStamp - chordAt < chordMs ? `${chord} ${event.key}` : event.key;
  chord = "";
  const found = shortcuts.find((each) => each.keys === keys && (each.isOffered?.() ?? true));
  if (found) {
    event.preventDefault();
    found.run();
  } else if (shortcuts.some((each) => each.keys.startsWith(`${event.key} `))) {
    chord = event.key;
    chordAt = event.timeStamp;
  }
}

function Keys({ keys }: { keys: string }) {
  return <>{keys.split(" ").map((each, i) => <span key={i}>{i > 0 && " then "}<kbd>{each}</kbd></span>)}</>;
}

function turnOn(value: boolean): void {
  isOn.value = value;
  if (value) localStorage.removeItem(storageKey);
  else localStorage.setItem(storageKey, "off");
}

export function openHelp(): void {
  isHelpOpen.value = true;
}

// Listens to the keys, and shows the list of them.
export function Shortcuts() {
  useEffect(() => {
    addEventListener("keydown", pressed);
    return () => removeEventListener("keydown", pressed);
  }, []);
  if (!isHelpOpen.value) return null;
  const close = () => (isHelpOpen.value = false);
  return (
    <Dialog title="Keyboard shortcuts" onClose={close} actions={<Button kind="primary" onClick={close}>Close</Button>}>
      <dl class="shortcuts">
        {shortcuts.filter((each) => each.isOffered?.() ?? true).map((each) => (
          <div class="shortcut" key={each.keys}><dt><Keys keys={each.keys} /></dt><dd>{each.text}</dd></div>
        ))}
      </dl>
      <label class="check-row">
        <input type="checkbox" checked={isOn.value} onChange={(event) => turnOn(event.currentTarget.checked)} /> Shortcuts are on
      </label>
    </Dialog>
  );
}
