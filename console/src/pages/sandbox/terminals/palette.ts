// The colours of a screen, from the style sheet.
import type { ITheme } from "@xterm/xterm";

const NAMES = [
  "black", "red", "green", "yellow", "blue", "magenta", "cyan", "white", "brightBlack", "brightRed", "brightGreen",
  "brightYellow", "brightBlue", "brightMagenta", "brightCyan", "brightWhite",
] as const;

// xterm.js needs colours as numbers, and the style sheet has light-dark(): the browser computes them.
function computed(probe: HTMLElement, variable: string): string {
  probe.style.color = `var(${variable})`;
  return getComputedStyle(probe).color;
}

export function screenTheme(): ITheme {
  const probe = document.createElement("span");
  probe.hidden = true;
  document.body.append(probe);
  const theme: ITheme = {
    background: computed(probe, "--output-bg"),
    foreground: computed(probe, "--output-fg"),
    cursor: computed(probe, "--accent"),
    cursorAccent: computed(probe, "--output-bg"),
    selectionBackground: computed(probe, "--output-selection"),
  };
  NAMES.forEach((name, i) => {
    theme[name] = computed(probe, `--ansi-${i}`);
  });
  probe.remove();
  return theme;
}

export function screenFont(): string {
  return getComputedStyle(document.documentElement).getPropertyValue("--mono").trim() || "monospace";
}
