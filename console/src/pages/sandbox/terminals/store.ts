// Which terminals of a sandbox are open in this browser, and their labels. Kept over a reload.
export interface TerminalTab {
  // A shell by its name, or a process with a terminal by its id.
  kind: "shell" | "process";
  id: string;
  // Chosen by a person; empty: none.
  label: string;
}

const MOST = 24;

export function tabKey(tab: TerminalTab): string {
  return `${tab.kind}:${tab.id}`;
}

export function tabLabel(tab: TerminalTab): string {
  return tab.label || tab.id;
}

function isTab(value: unknown): value is TerminalTab {
  if (typeof value !== "object" || value === null) return false;
  const { kind, id, label } = value as Record<string, unknown>;
  return (kind === "shell" || kind === "process") && typeof id === "string" && typeof label === "string";
}

const storageKey = (sandboxId: string) => `holt.terminals.${sandboxId}`;

// Returns null if nothing was ever stored.
export function loadTabs(sandboxId: string): TerminalTab[] | null {
  try {
    const stored: unknown = JSON.parse(localStorage.getItem(storageKey(sandboxId)) ?? "null");
    return Array.isArray(stored) ? stored.filter(isTab).slice(0, MOST) : null;
  } catch {
    return null;
  }
}

export function saveTabs(sandboxId: string, tabs: TerminalTab[]): void {
  localStorage.setItem(storageKey(sandboxId), JSON.stringify(tabs.slice(-MOST)));
}

// Returns the tabs with one more, unless it is there.
export function withTab(tabs: TerminalTab[], tab: TerminalTab): TerminalTab[] {
  return tabs.some((each) => tabKey(each) === tabKey(tab)) ? tabs : [...tabs, tab].slice(-MOST);
}

// Returns the first name of a shell that is not taken: main, shell-2, shell-3.
export function freeName(taken: ReadonlySet<string>): string {
  if (!taken.has("main")) return "main";
  for (let number = 2; ; number++) if (!taken.has(`shell-${number}`)) return `shell-${number}`;
}
