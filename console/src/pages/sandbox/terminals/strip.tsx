// The row of open terminals.
import type { RefObject } from "preact";
import { Icon } from "../../../ui/icons";
import { Foreign } from "../../../ui/parts";
import { tabKey, tabLabel, type TerminalTab } from "./store";

interface Props {
  box: RefObject<HTMLDivElement>;
  tabs: TerminalTab[];
  current: string;
  onShow(key: string): void;
  onClose(tab: TerminalTab): void;
  onRename(tab: TerminalTab): void;
}

// Arrow keys move between the tabs.
function moved(event: KeyboardEvent, box: HTMLElement) {
  const step = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
  const buttons = [...box.querySelectorAll<HTMLElement>(".terminal-tab-name")];
  const at = buttons.indexOf(document.activeElement as HTMLElement);
  if (step !== 0 && at >= 0) buttons[(at + step + buttons.length) % buttons.length]?.focus();
}

export function TabStrip({ box, tabs, current, onShow, onClose, onRename }: Props) {
  return (
    <div class="terminal-tabs" role="group" aria-label="Open terminals" ref={box}
      onKeyDown={(event) => moved(event, event.currentTarget)}>
      {tabs.map((tab) => {
        const key = tabKey(tab);
        return (
          <div key={key} class={`terminal-tab${key === current ? " current" : ""}`}>
            <button type="button" class="terminal-tab-name" aria-current={key === current ? "true" : undefined}
              title="Double-click or F2 renames the tab" onClick={() => onShow(key)} onDblClick={() => onRename(tab)}
              onKeyDown={(event) => event.key === "F2" && onRename(tab)}>
              <Icon name={tab.kind === "shell" ? "terminal" : "process"} size={14} />
              <Foreign text={tabLabel(tab)} />
            </button>
            <button type="button" class="terminal-tab-close" aria-label={`Close ${tabLabel(tab)}`}
              title="Close the tab; the program continues" onClick={() => onClose(tab)}>
              <Icon name="close" size={11} />
            </button>
          </div>
        );
      })}
    </div>
  );
}
