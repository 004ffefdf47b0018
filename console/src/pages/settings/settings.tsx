// The tab Settings: name, labels, limits and times of a sandbox.
import { SandboxService, type Sandbox } from "@gen/sandbox_pb";
import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import type { TabProps } from "..";
import { canWrite } from "../../api/session";
import { client } from "../../api/transport";
import { attempt } from "../../lib/parse";
import { bytes, count, cpus, dateTime, duration, millis } from "../../lib/text";
import { Button } from "../../ui/button";
import { CopyCli } from "../../ui/cli";
import { Facts } from "../../ui/list";
import { Field, Foreign, Labels, Panel } from "../../ui/parts";
import { toast, toastError } from "../../ui/toast";
import { changes, commandOf, draftOf, problems, rebased, type Draft } from "./draft";

type TextField = Exclude<keyof Draft, "labels">;

interface FormProps {
  draft: Draft;
  wrong: Partial<Record<keyof Draft, string>>;
  set: (change: Partial<Draft>) => void;
}

function TextInput({ form, field, label, hint, placeholder }: {
  form: FormProps; field: TextField; label: string; hint?: ComponentChildren; placeholder?: string;
}) {
  const error = form.wrong[field];
  return (
    <Field label={label} hint={hint} error={error}>
      {(id, describedBy) => (
        <input id={id} value={form.draft[field]} placeholder={placeholder} autocomplete="off" spellcheck={false}
          aria-describedby={describedBy} aria-invalid={error !== undefined}
          onInput={(event) => form.set({ [field]: event.currentTarget.value })} />
      )}
    </Field>
  );
}

function ActionSelect({ form, field, label }: { form: FormProps; field: "expireAction" | "idleAction"; label: string }) {
  return (
    <Field label={label}>
      {(id) => (
        <select id={id} value={form.draft[field]} onChange={(event) => form.set({ [field]: event.currentTarget.value })}>
          <option value="kill">destroy it</option>
          <option value="pause">pause it</option>
          <option value="stop">stop it</option>
        </select>
      )}
    </Field>
  );
}

function LabelRows({ form }: { form: FormProps }) {
  const rows = form.draft.labels;
  const change = (at: number, part: Partial<{ key: string; value: string }>) =>
    form.set({ labels: rows.map((each, i) => (i === at ? { ...each, ...part } : each)) });
  return (
    <div class="stack label-rows" role="group" aria-label="Labels">
      {rows.map((each, i) => (
        <div class="row" key={i}>
          <input value={each.key} placeholder="key" aria-label={`Key of label ${i + 1}`} maxLength={63}
            onInput={(event) => change(i, { key: event.currentTarget.value })} />
          <span aria-hidden="true">=</span>
          <input value={each.value} placeholder="value" aria-label={`Value of label ${i + 1}`} maxLength={255}
            onInput={(event) => change(i, { value: event.currentTarget.value })} />
          <Button icon="trash" kind="quiet" label={`Remove label ${i + 1}`}
            onClick={() => form.set({ labels: rows.filter((_, at) => at !== i) })} />
        </div>
      ))}
      {form.wrong.labels && <div class="hint error" role="alert">{form.wrong.labels}</div>}
      <div><Button size="small" icon="plus" onClick={() => form.set({ labels: [...rows, { key: "", value: "" }] })}>Add a label</Button></div>
    </div>
  );
}

function expiry(sandbox: Sandbox): string {
  if (!sandbox.expiresAt) return "It does not expire.";
  return `Now: ${sandbox.expireAction} at ${dateTime(sandbox.expiresAt)}.`;
}

function Form({ form, sandbox }: { form: FormProps; sandbox: Sandbox }) {
  const none = "the daemon's default";
  return (
    <>
      <Panel title="Name and labels">
        <div class="panel-body">
          <TextInput form={form} field="name" label="Name" hint="Letters, digits, '.', '_' and '-'. Empty: no name." />
          <LabelRows form={form} />
        </div>
      </Panel>
      <Panel title="Limits">
        <div class="panel-body fields">
          <TextInput form={form} field="memory" label="Memory" placeholder={none} hint="512M, 2G; at once" />
          <TextInput form={form} field="cpus" label="CPUs" placeholder={none} hint="1.5; at once" />
          <TextInput form={form} field="pids" label="Processes and threads" placeholder={none} hint="At once" />
          <TextInput form={form} field="files" label="Descriptors of a process" placeholder={none} hint="For new processes" />
          <TextInput form={form} field="quota" label="Storage" placeholder={none} hint="2G; files and snapshots" />
          <TextInput form={form} field="maxSnapshots" label="Turns to keep" placeholder="all" hint="Older ones are removed" />
        </div>
      </Panel>
      <Panel title="Lifetime">
        <div class="panel-body fields">
          <TextInput form={form} field="ttl" label="Time to live from now" placeholder="unchanged" hint={`30m, 8h; 0: never. ${expiry(sandbox)}`} />
          <ActionSelect form={form} field="expireAction" label="Then" />
          <TextInput form={form} field="idle" label="Without a request for" placeholder="no limit" hint="30m, 8h" />
          <ActionSelect form={form} field="idleAction" label="Then" />
        </div>
      </Panel>
    </>
  );
}

function orDefault(value: number | bigint | undefined, text: (value: number) => string): string {
  return value ? text(Number(value)) : "the daemon's default";
}

function ReadOnly({ sandbox }: TabProps) {
  const limits = sandbox.limits;
  return (
    <Panel title="Settings" actions={<CopyCli command={commandOf(sandbox, [])} />}>
      <Facts facts={[
        ["Name", sandbox.name ? <Foreign text={sandbox.name} /> : "none"],
        ["Memory", orDefault(limits?.memoryBytes, bytes)],
        ["CPUs", orDefault(limits?.cpuMillis, cpus)],
        ["Processes and threads", orDefault(limits?.pids, String)],
        ["Descriptors of a process", orDefault(limits?.files, String)],
        ["Storage", orDefault(sandbox.quotaBytes, bytes)],
        ["Turns to keep", sandbox.maxSnapshots ? count(sandbox.maxSnapshots, "turn") : "all"],
        ["Expires", sandbox.expiresAt ? `${dateTime(millis(sandbox.expiresAt))} (${sandbox.expireAction})` : "never"],
        ["Without a request for", sandbox.idleTimeoutMs ? `${duration(Number(sandbox.idleTimeoutMs))} (${sandbox.idleAction})` : "no limit"],
        ["Labels", Object.keys(sandbox.labels).length > 0 ? <Labels labels={sandbox.labels} /> : "none"],
      ]} />
    </Panel>
  );
}

function Editor({ sandbox }: TabProps) {
  const before = draftOf(sandbox);
  const [draft, setDraft] = useState(before);
  // Changes of others replace what was not edited here, so only what was edited differs from `before`.
  const state = JSON.stringify(before);
  const base = useRef(before);
  useEffect(() => {
    const old = base.current;
    base.current = before;
    setDraft((now) => rebased(now, old, before));
  }, [state]);

  const wrong = problems(before, draft);
  const isValid = Object.keys(wrong).length === 0;
  const found = isValid ? attempt(() => changes(before, draft)).value : undefined;
  const isChanged = found !== undefined && Object.keys(found.request).length > 0;
  const save = async () => {
    if (!found) return;
    try {
      const { sandbox: after } = await client(SandboxService).update({ ...found.request, sandboxId: sandbox.id });
      if (after) {
        base.current = draftOf(after);
        setDraft(base.current);
      }
      toast("The settings were saved.");
    } catch (error) {
      toastError(error, "The settings were not saved");
    }
  };
  const form = { draft, wrong, set: (change: Partial<Draft>) => setDraft((now) => ({ ...now, ...change })) };
  return (
    <form class="stack" onSubmit={(event) => {
      event.preventDefault();
      void save();
    }}>
      <Form form={form} sandbox={sandbox} />
      <div class="panel panel-foot settings-foot">
        <code class="grow cut muted">{found && isChanged ? commandOf(sandbox, found.words) : ""}</code>
        <CopyCli command={commandOf(sandbox, found?.words ?? [])} />
        <Button disabled={JSON.stringify(draft) === JSON.stringify(before)} onClick={() => setDraft(before)}>Reset</Button>
        <Button type="submit" kind="primary" disabled={!isChanged}>Save</Button>
      </div>
    </form>
  );
}

export default function Settings({ sandbox }: TabProps) {
  return canWrite.value ? <Editor sandbox={sandbox} /> : <ReadOnly sandbox={sandbox} />;
}
