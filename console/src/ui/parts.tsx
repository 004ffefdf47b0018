// Small pieces that every page uses.
import type { ComponentChildren } from "preact";
import { useId } from "preact/hooks";
import { failureOf } from "../api/errors";
import { plain } from "../lib/text";
import { Icon, type IconName } from "./icons";

// Text from outside: invisible characters are shown, the direction stays inside.
export function Foreign({ text, mono }: { text: string; mono?: boolean }) {
  return <bdi class={mono ? "mono" : undefined}>{plain(text)}</bdi>;
}

export function Loading({ what = "Loading" }: { what?: string }) {
  return <div class="empty" role="status"><span class="spinner" aria-hidden="true" /> {what}…</div>;
}

interface EmptyProps {
  icon?: IconName;
  title: string;
  children?: ComponentChildren;
}

export function Empty({ icon = "info", title, children }: EmptyProps) {
  return (
    <div class="empty">
      <Icon name={icon} size={20} />
      <div class="empty-title">{title}</div>
      {children && <div class="muted">{children}</div>}
    </div>
  );
}

export function Problem({ error }: { error: unknown }) {
  const { message, remedy } = failureOf(error);
  return (
    <div class="problem" role="alert">
      <Icon name="warning" />
      <div>
        <div>{plain(message)}</div>
        {remedy && <div class="muted">{plain(remedy)}</div>}
      </div>
    </div>
  );
}

interface FieldProps {
  label: string;
  hint?: ComponentChildren;
  error?: string | undefined;
  children: (id: string, describedBy: string) => ComponentChildren;
}

// A labelled control: the child gets the id that the label points to.
export function Field({ label, hint, error, children }: FieldProps) {
  const id = useId();
  return (
    <div class="field">
      <label for={id}>{label}</label>
      {children(id, `${id}-hint`)}
      <div class={error ? "hint error" : "hint"} id={`${id}-hint`}>{error ?? hint}</div>
    </div>
  );
}

export function Panel({ title, actions, children, class: more }: {
  title?: ComponentChildren; actions?: ComponentChildren; children: ComponentChildren; class?: string;
}) {
  return (
    <section class={`panel ${more ?? ""}`}>
      {(title || actions) && (
        <header class="panel-head">
          <h2>{title}</h2>
          {actions && <div class="row">{actions}</div>}
        </header>
      )}
      {children}
    </section>
  );
}

const tones: Record<string, string> = {
  active: "good", running: "good", ok: "good",
  paused: "info", pausing: "info", "deep-paused": "info", creating: "info", "rolling-back": "info",
  failed: "bad", unhealthy: "bad", degraded: "warn",
};

export function State({ state }: { state: string }) {
  return <span class={`state ${tones[state] ?? "idle"}`}><span class="dot" aria-hidden="true" />{plain(state)}</span>;
}

export function Labels({ labels }: { labels: Record<string, string> }) {
  return (
    <span class="labels">
      {Object.entries(labels).map(([name, value]) => (
        <span class="label" key={name} title={plain(`${name}=${value}`)}>
          <span class="label-key">{plain(name)}</span>
          {value && <span class="label-value">{plain(value)}</span>}
        </span>
      ))}
    </span>
  );
}
