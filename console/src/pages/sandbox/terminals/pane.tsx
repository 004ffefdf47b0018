// One terminal: its screen, and a line that says how it is.
import { effect, useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { isDark } from "../../../lib/theme";
import { plainLines } from "../../../lib/text";
import { Button } from "../../../ui/button";
import { confirm } from "../../../ui/confirm";
import { Link } from "./link";
import { screenFont, screenTheme } from "./palette";
import { cleanPaste, pasteConcern } from "./paste";
import { Screen } from "./screen";
import { tabLabel, type TerminalTab } from "./store";
import type { Phase } from "./session";

const FONT_SIZE = 13;
const SHOWN_PASTE = 2000;

async function pasteIsWanted(text: string, isBracketed: boolean): Promise<boolean> {
  const concern = pasteConcern(text, isBracketed);
  if (!concern) return true;
  const shown = plainLines(cleanPaste(text).slice(0, SHOWN_PASTE));
  return confirm({
    title: "Paste this text?",
    text: <>{concern}<pre class="paste-text">{shown}{text.length > SHOWN_PASTE ? "\n\u2026" : ""}</pre></>,
    action: "Paste",
    isDanger: false,
  });
}

interface Props {
  sandboxId: string;
  isSandboxActive: boolean;
  tab: TerminalTab;
  isActive: boolean;
  mayWrite: boolean;
  onLeave(): void;
}

const WORDS: Record<Phase, string> = {
  connecting: "Connecting", live: "Connected", away: "Reconnecting", ended: "Ended", failed: "Not available",
};
const TONES: Record<Phase, string> = { connecting: "info", live: "good", away: "warn", ended: "idle", failed: "bad" };

export function Pane({ sandboxId, isSandboxActive, tab, isActive, mayWrite, onLeave }: Props) {
  const box = useRef<HTMLDivElement>(null);
  const parts = useRef<{ screen: Screen; link: Link } | null>(null);
  const title = useSignal("");
  const size = useSignal("");
  const state = useSignal({ phase: "connecting" as Phase, problem: "", outcome: "" });

  useEffect(() => {
    const screen = new Screen(
      { label: `Terminal ${tabLabel(tab)}`, readOnly: !mayWrite, theme: screenTheme(), font: screenFont(), fontSize: FONT_SIZE },
      {
        typed: (data) => parts.current?.link.type(data),
        answered: (data) => parts.current?.link.answer(data),
        titled: (text) => (title.value = text),
        resized: (rows, columns) => parts.current?.link.resize(rows, columns),
        shown: (rows, columns) => (size.value = `${columns} \u00d7 ${rows}`),
        pasting: pasteIsWanted,
        left: onLeave,
      },
    );
    const link = new Link(sandboxId, tab, screen, mayWrite);
    parts.current = { screen, link };
    screen.open(box.current!);
    const disposals = [
      effect(() => {
        state.value = { phase: link.phase.value, problem: link.problem.value, outcome: link.outcome.value };
      }),
      effect(() => {
        isDark();
        queueMicrotask(() => screen.paint(screenTheme()));
      }),
    ];
    return () => {
      parts.current = null;
      disposals.forEach((dispose) => dispose());
      link.close();
      screen.close();
    };
  }, []);

  useEffect(() => {
    const { screen, link } = parts.current!;
    if (!isActive) return link.hide();
    screen.fitNow();
    link.show();
    screen.terminal.focus();
  }, [isActive]);

  useEffect(() => {
    if (isSandboxActive) void parts.current?.link.sandboxIsActive();
  }, [isSandboxActive]);

  const { phase, problem, outcome } = state.value;
  const canRestart = phase === "ended" && tab.kind === "shell" && mayWrite;
  return (
    <div class="terminal-pane" hidden={!isActive}>
      <div class={`terminal-box${mayWrite ? "" : " read-only"}`} ref={box} data-phase={phase} />
      <div class="terminal-status">
        <span class={`state ${TONES[phase]}`} role="status">
          <span class="dot" aria-hidden="true" />{WORDS[phase]}{outcome && `: ${outcome}`}
        </span>
        {!mayWrite && <span class="state idle">read-only</span>}
        <bdi class="cut grow muted">{problem || title.value}</bdi>
        {canRestart && <Button size="small" icon="refresh" onClick={() => parts.current?.link.again()}>Start again</Button>}
        {phase === "failed" && <Button size="small" icon="refresh" onClick={() => parts.current?.link.again()}>Try again</Button>}
        <span class="muted terminal-hint">Shift+Esc leaves the terminal</span>
        <span class="muted">{size.value}</span>
      </div>
    </div>
  );
}
