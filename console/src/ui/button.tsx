import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { Icon, type IconName } from "./icons";
import { toastError } from "./toast";

interface Props {
  children?: ComponentChildren;
  icon?: IconName;
  // Read by screen readers and shown as a tooltip; needed if there is no text.
  label?: string;
  kind?: "plain" | "primary" | "danger" | "risky" | "quiet";
  size?: "small" | "normal";
  disabled?: boolean;
  type?: "button" | "submit";
  class?: string;
  pressed?: boolean;
  // Has the focus when its dialog opens.
  autoFocus?: boolean;
  // While a promise that it returns is pending, the button is busy; a rejection becomes a toast.
  onClick?: (event: MouseEvent) => unknown;
}

export function Button({ children, icon, label, kind = "plain", size = "normal", ...rest }: Props) {
  const [isBusy, setBusy] = useState(false);
  const click = async (event: MouseEvent) => {
    const result = rest.onClick?.(event);
    if (!(result instanceof Promise)) return;
    setBusy(true);
    try {
      await result;
    } catch (error) {
      toastError(error);
    } finally {
      setBusy(false);
    }
  };
  const classes = ["button", kind, size, children ? "" : "icon-only", isBusy ? "busy" : "", rest.class ?? ""];
  return (
    <button type={rest.type ?? "button"} class={classes.filter(Boolean).join(" ")}
      disabled={rest.disabled || isBusy} aria-label={label} title={label} aria-busy={isBusy}
      aria-pressed={rest.pressed} data-focus={rest.autoFocus || undefined} onClick={(event) => void click(event)}>
      {icon && <Icon name={icon} />}
      {children && <span>{children}</span>}
    </button>
  );
}
