// Light, dark, or as the system has it. A choice is kept in this browser.
import { effect, signal } from "@preact/signals";

export type Theme = "system" | "light" | "dark";

function stored(): Theme {
  const value = localStorage.getItem("holt.theme");
  return value === "light" || value === "dark" ? value : "system";
}

export const theme = signal<Theme>(stored());
const prefersDark = matchMedia("(prefers-color-scheme: dark)");
export const systemIsDark = signal(prefersDark.matches);
prefersDark.addEventListener("change", (event) => (systemIsDark.value = event.matches));

effect(() => {
  if (theme.value === "system") {
    localStorage.removeItem("holt.theme");
    delete document.documentElement.dataset["theme"];
  } else {
    localStorage.setItem("holt.theme", theme.value);
    document.documentElement.dataset["theme"] = theme.value;
  }
});

export function isDark(): boolean {
  return theme.value === "dark" || (theme.value === "system" && systemIsDark.value);
}

// A colour of style/tokens.css as the canvas needs it: color("accent").
export function color(name: string): string {
  const probe = document.createElement("span");
  probe.style.color = `var(--${name})`;
  document.body.append(probe);
  const value = getComputedStyle(probe).color;
  probe.remove();
  return value;
}
