// Starts a command, or a service with a port.
import { useState } from "preact/hooks";
import { ProcessService, Restart, type ProcessInfo } from "@gen/process_pb";
import { client } from "../../../api/transport";
import { holt } from "../../../lib/cli";
import { Button } from "../../../ui/button";
import { CopyCli } from "../../../ui/cli";
import { Dialog } from "../../../ui/dialog";
import { Field, Problem } from "../../../ui/parts";

const RESTARTS: [Restart, string][] = [
  [Restart.no, "never"], [Restart.on_failure, "on failure"], [Restart.always, "always"],
];
const SIZE = { rows: 24, columns: 80 };

interface Form {
  command: string;
  cwd: string;
  user: string;
  tag: string;
  terminal: boolean;
  port: string;
  restart: Restart;
}

// A command that a shell has run is shown as the text of that shell.
function formOf(process: ProcessInfo | undefined): Form {
  const args = process?.args ?? [];
  const isShell = args.length === 3 && args[0] === "sh" && args[1] === "-c";
  const words = args.map((each) => (/^[\w@%+=:,./-]+$/.test(each) ? each : `'${each.replaceAll("'", "'\\''")}'`));
  return {
    command: isShell ? args[2]! : words.join(" "), cwd: process?.cwd ?? "", user: "", tag: process?.tag ?? "",
    terminal: process?.terminal ?? false, port: process?.port ? String(process.port) : "",
    restart: process?.restart ?? Restart.no,
  };
}

async function start(sandboxId: string, form: Form): Promise<string> {
  const process = {
    args: ["sh", "-c", form.command], cwd: form.cwd, user: form.user, tag: form.tag,
    terminal: form.terminal ? SIZE : undefined,
  };
  const port = Number(form.port || 0);
  const reply = port > 0 || form.restart !== Restart.no
    ? await client(ProcessService).launch({ sandboxId, process, port, restart: form.restart })
    : await client(ProcessService).start({ sandboxId, process });
  return reply.process?.id ?? "";
}

const RESTART_WORDS: Partial<Record<Restart, string>> = { [Restart.on_failure]: "on-failure", [Restart.always]: "always" };

function commandOf(sandboxId: string, form: Form): string {
  const restart = RESTART_WORDS[form.restart];
  const isService = Number(form.port || 0) > 0 || restart !== undefined;
  const words = [
    ...(form.port ? ["--port", form.port] : []), ...(restart ? ["--restart", restart] : []),
    ...(form.cwd ? ["--workdir", form.cwd] : []), ...(form.user ? ["--user", form.user] : []),
    ...(form.tag ? ["--tag", form.tag] : []), ...(form.terminal ? ["--tty"] : []),
  ];
  return holt(isService ? "launch" : "exec", !isService && "--detach", ...words, sandboxId, "--", "sh", "-c", form.command);
}

export function StartDialog({ sandboxId, like, onClose, onStarted }: {
  sandboxId: string; like: ProcessInfo | undefined; onClose(): void; onStarted(id: string): void;
}) {
  const [form, setForm] = useState(() => formOf(like));
  const [error, setError] = useState<unknown>(null);
  const set = (change: Partial<Form>) => setForm((old) => ({ ...old, ...change }));
  const submit = () => start(sandboxId, form).then(onStarted, setError);
  const text = (name: "cwd" | "user" | "tag" | "port", placeholder: string) => (id: string, hint: string) => (
    <input id={id} aria-describedby={hint} value={form[name]} placeholder={placeholder} spellcheck={false}
      type={name === "port" ? "number" : "text"} min={1} max={65535}
      onInput={(event) => set({ [name]: event.currentTarget.value })} />
  );
  return (
    <Dialog title="Start a process" wide onClose={onClose} onSubmit={() => void submit()}
      actions={<><CopyCli command={commandOf(sandboxId, form)} /><span class="grow" /><Button onClick={onClose}>Cancel</Button>
        <Button kind="primary" type="submit" disabled={form.command.trim() === ""}>Start</Button></>}>
      <Field label="Command" hint="Run by sh. It continues when this page is closed.">
        {(id, hint) => <textarea id={id} class="mono" aria-describedby={hint} rows={3} value={form.command} autofocus
          spellcheck={false} onInput={(event) => set({ command: event.currentTarget.value })}
          onKeyDown={(event) => {
            if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) event.currentTarget.form?.requestSubmit();
          }} />}
      </Field>
      <div class="fields">
        <Field label="Directory">{text("cwd", "/workspace")}</Field>
        <Field label="User">{text("user", "root")}</Field>
        <Field label="Tag">{text("tag", "")}</Field>
        <Field label="Port" hint="Forwarded to the host until it ends">{text("port", "none")}</Field>
        <Field label="Restart">
          {(id) => (
            <select id={id} value={form.restart} onChange={(event) => set({ restart: Number(event.currentTarget.value) })}>
              {RESTARTS.map(([value, name]) => <option key={value} value={value}>{name}</option>)}
            </select>
          )}
        </Field>
      </div>
      <label class="row"><input type="checkbox" checked={form.terminal} onChange={(event) => set({ terminal: event.currentTarget.checked })} />
        With a terminal</label>
      {error != null && <Problem error={error} />}
    </Dialog>
  );
}
