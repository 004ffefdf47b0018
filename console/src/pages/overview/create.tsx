// The dialog that creates a sandbox.
import { HostService } from "@gen/host_pb";
import { SandboxService } from "@gen/sandbox_pb";
import { TemplateService } from "@gen/template_pb";
import { useSignal, type Signal } from "@preact/signals";
import { client } from "../../api/transport";
import { attempt, parseCount, parseCpus, parseLabels, parseSize, parseTime } from "../../lib/parse";
import { holt } from "../../lib/cli";
import { plain } from "../../lib/text";
import { href, navigate } from "../../router";
import { usePolled } from "../../store/polled";
import { put } from "../../store/sandboxes";
import { modes, parseRules } from "../network/rules";
import { Button } from "../../ui/button";
import { CopyCli } from "../../ui/cli";
import { Dialog } from "../../ui/dialog";
import { Field, Problem } from "../../ui/parts";

const empty = {
  name: "", template: "", runtime: "", labels: "", memory: "", cpus: "", pids: "", quota: "",
  ttl: "", ttlAction: "kill", idle: "", idleAction: "pause", net: "", allow: "", deny: "",
};
type Form = typeof empty;
type Key = keyof Form;

const hints: Partial<Record<Key, string>> = {
  name: "Optional; letters, digits, '.', '_', '-'",
  labels: "key=value, separated by commas",
  memory: "512M, 2G; empty: default",
  cpus: "0.5, 2; empty: default",
  pids: "Processes and threads",
  quota: "Files and snapshots: 10G",
  ttl: "30m, 8h, 7d; empty: never",
  idle: "Without any activity: 15m",
  allow: "One rule in each line: example.com, *.example.org",
  deny: "A rule here wins over one that allows",
};

const checks: Partial<Record<Key, (text: string) => unknown>> = {
  name: (text) => {
    if (text !== "" && !/^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/.test(text))
      throw new Error("a name has letters, digits, '.', '_' and '-', a letter or digit first");
  },
  labels: parseLabels, memory: parseSize, cpus: parseCpus, pids: parseCount, quota: parseSize,
  ttl: parseTime, idle: parseTime,
};

// Absent: the daemon's default.
function networkOf(form: Form) {
  const allow = parseRules(form.allow);
  const deny = parseRules(form.deny);
  return form.net || allow.length + deny.length > 0 ? { mode: form.net, allow, deny } : undefined;
}

function problemOf(form: Form, key: Key): string | undefined {
  return attempt(() => checks[key]?.(form[key])).error;
}

// Call only with a form in which nothing is wrong.
function request(form: Form) {
  return {
    name: form.name, template: form.template, runtime: form.runtime, labels: parseLabels(form.labels),
    limits: {
      memoryBytes: parseSize(form.memory) ?? 0n, cpuMillis: parseCpus(form.cpus) ?? 0, pids: parseCount(form.pids) ?? 0,
    },
    quotaBytes: parseSize(form.quota) ?? 0n,
    ttlMs: parseTime(form.ttl) ?? 0n, expireAction: form.ttl ? form.ttlAction : "",
    idleTimeoutMs: parseTime(form.idle) ?? 0n, idleAction: form.idle ? form.idleAction : "",
    network: networkOf(form),
  };
}

// The same as a command. Fields that are wrong are left out.
function command(form: Form): string {
  const words: string[] = [];
  const put = (of: Key, option: string, value = form[of].trim()) => {
    if (form[of].trim() !== "" && problemOf(form, of) === undefined) words.push(option, value);
  };
  put("name", "--name");
  put("template", "--template");
  put("runtime", "--runtime");
  for (const [key, value] of Object.entries(attempt(() => parseLabels(form.labels)).value ?? {})) words.push("--label", `${key}=${value}`);
  put("memory", "--memory");
  put("cpus", "--cpus");
  put("pids", "--pids");
  put("quota", "--quota");
  put("ttl", "--ttl", `${form.ttl.trim()}:${form.ttlAction}`);
  put("idle", "--idle-timeout", `${form.idle.trim()}:${form.idleAction}`);
  return holt("create", ...words);
}

function Text({ form, of, label, placeholder }: { form: Signal<Form>; of: Key; label: string; placeholder?: string }) {
  const problem = problemOf(form.value, of);
  return (
    <Field label={label} hint={hints[of]} error={problem}>
      {(id, describedBy) => (
        <input id={id} value={form.value[of]} aria-describedby={describedBy} aria-invalid={problem !== undefined} autocomplete="off"
          spellcheck={false} placeholder={placeholder ?? ""}
          onInput={(event) => (form.value = { ...form.value, [of]: event.currentTarget.value })} />
      )}
    </Field>
  );
}

function Lines({ form, of, label }: { form: Signal<Form>; of: Key; label: string }) {
  return (
    <Field label={label} hint={hints[of]}>
      {(id, describedBy) => (
        <textarea id={id} class="mono" rows={2} value={form.value[of]} aria-describedby={describedBy} spellcheck={false}
          onInput={(event) => (form.value = { ...form.value, [of]: event.currentTarget.value })} />
      )}
    </Field>
  );
}

function Choice({ form, of, label, hint, choices }: {
  form: Signal<Form>; of: Key; label: string; hint?: string; choices: { value: string; text: string }[];
}) {
  return (
    <Field label={label} hint={hint}>
      {(id, describedBy) => (
        <select id={id} value={form.value[of]} aria-describedby={describedBy}
          onChange={(event) => (form.value = { ...form.value, [of]: event.currentTarget.value })}>
          {choices.map((each) => <option key={each.value} value={each.value}>{each.text}</option>)}
        </select>
      )}
    </Field>
  );
}

const ends = ["kill", "pause", "stop"].map((value) => ({ value, text: value === "kill" ? "destroy" : value }));

export default function CreateDialog({ onClose }: { onClose: () => void }) {
  const form = useSignal<Form>(empty);
  const isBusy = useSignal(false);
  const failure = useSignal<unknown>(null);
  const templates = usePolled(() => client(TemplateService).list({}), 600_000);
  const host = usePolled(() => client(HostService).capabilities({}), 600_000);
  const wrong = (Object.keys(empty) as Key[]).some((each) => problemOf(form.value, each) !== undefined);

  const submit = async () => {
    if (wrong || isBusy.value) return;
    isBusy.value = true;
    failure.value = null;
    try {
      const { sandbox } = await client(SandboxService).create(request(form.value));
      put(sandbox);
      onClose();
      if (sandbox) navigate(href("sandboxes", sandbox.id));
    } catch (error) {
      failure.value = error;
    } finally {
      isBusy.value = false;
    }
  };

  const templateChoices = (templates.value?.templates ?? []).map((each) => ({
    value: each.name, text: plain(each.name),
  }));
  const runtimes = (host.value?.runtimes ?? []).filter((each) => each.works && each.allowed);
  return (
    <Dialog title="Create sandbox" wide onClose={onClose} onSubmit={submit}
      actions={
        <>
          <CopyCli command={command(form.value)} />
          <span class="grow" />
          <Button onClick={onClose}>Cancel</Button>
          <Button type="submit" kind="primary" disabled={wrong || isBusy.value}>
            {isBusy.value ? "Creating…" : "Create"}
          </Button>
        </>
      }>
      {failure.value != null && <Problem error={failure.value} />}
      <div class="fields">
        <Text form={form} of="name" label="Name" />
        <Choice form={form} of="template" label="Template"
          choices={[{ value: "", text: "Default" }, ...templateChoices]} />
      </div>
      <Text form={form} of="labels" label="Labels" placeholder="role=worker, team=red" />
      <div class="fields two">
        <Text form={form} of="ttl" label="Time to live" />
        <Choice form={form} of="ttlAction" label="Then" choices={ends} />
        <Text form={form} of="idle" label="Idle timeout" />
        <Choice form={form} of="idleAction" label="Then" choices={ends} />
      </div>
      <details class="more">
        <summary>Network</summary>
        <div class="fields">
          <Choice form={form} of="net" label="Mode" hint="With rules alone: allow"
            choices={[{ value: "", text: "Default" }, ...modes.map(([value, text]) => ({ value, text }))]} />
          <Lines form={form} of="allow" label="Allow" />
          <Lines form={form} of="deny" label="Deny" />
        </div>
      </details>
      <details class="more">
        <summary>Limits and runtime</summary>
        <div class="fields">
          <Text form={form} of="memory" label="Memory" />
          <Text form={form} of="cpus" label="CPUs" />
          <Text form={form} of="pids" label="Processes" />
          <Text form={form} of="quota" label="Disk quota" />
          <Choice form={form} of="runtime" label="Runtime" choices={[
            { value: "", text: `Default${host.value ? ` (${plain(host.value.defaultRuntime)})` : ""}` },
            ...runtimes.map((each) => ({ value: each.name, text: plain(each.name) })),
          ]} />
        </div>
      </details>
    </Dialog>
  );
}
