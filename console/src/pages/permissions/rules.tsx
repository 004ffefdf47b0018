// The rules of a sandbox, and the forms that change them.
import { PermissionService, type PermissionChange } from "@gen/permission_pb";
import type { Permissions, Sandbox } from "@gen/sandbox_pb";
import { useState } from "preact/hooks";
import { errorText } from "../../api/errors";
import { canWrite } from "../../api/session";
import { client } from "../../api/transport";
import { holt } from "../../lib/cli";
import { count, plain } from "../../lib/text";
import { Button } from "../../ui/button";
import { CopyCli } from "../../ui/cli";
import { confirm } from "../../ui/confirm";
import { Icon } from "../../ui/icons";
import { Field, Foreign, Panel } from "../../ui/parts";
import { toast, toastError } from "../../ui/toast";
import { Level, levelOfRule } from "./level";

const presets = ["agent-safe", "development", "read-only", "view-only", "full-access"];

interface Props {
  sandbox: Sandbox;
  permissions: Permissions;
  onChange: () => void;
}

// What open files have more than the new rules grant stays with them, unless their processes are ended.
function tell(change: PermissionChange | undefined) {
  const open = change?.openFiles ?? 0, ended = change?.endedProcesses ?? 0;
  const held = open === 0 ? "" : ended > 0 ? ` ${count(ended, "process", "processes")} ended.`
    : ` ${count(open, "open file")} ${open === 1 ? "has" : "have"} more than the rules grant now.`;
  toast(`The rules apply now.${held}`);
}

function PresetForm({ sandbox, permissions, onChange, revoke }: Props & { revoke: boolean }) {
  const [chosen, setChosen] = useState<string | null>(null);
  const preset = chosen ?? (permissions.preset || "agent-safe");
  const apply = async () => {
    if (permissions.rules.length > 0 && !(await confirm({
      title: `Set the preset ${preset}?`, text: "It replaces all rules of the sandbox.",
      lost: [`${count(permissions.rules.length, "rule")}: ${plain(permissions.rules.join(", ")).slice(0, 500)}`], action: "Set preset",
    }))) return;
    try {
      tell((await client(PermissionService).set({ sandboxId: sandbox.id, preset, revoke })).change);
      setChosen(null);
      onChange();
    } catch (error) {
      toastError(error, "The rules were not changed");
    }
  };
  return (
    <form class="filters net-form" onSubmit={(event) => {
      event.preventDefault();
      void apply();
    }}>
      <Field label="Preset">
        {(id) => (
          <select id={id} value={preset} onChange={(event) => setChosen(event.currentTarget.value)}>
            {presets.map((each) => <option key={each} value={each}>{each}</option>)}
          </select>
        )}
      </Field>
      <Button type="submit">Set preset</Button>
      <CopyCli command={holt("perm", "set", sandbox.id, "--preset", preset)} small />
    </form>
  );
}

function RuleForm({ sandbox, onChange, revoke }: Props & { revoke: boolean }) {
  const [text, setText] = useState("");
  const [error, setError] = useState<string>();
  const rule = text.trim();
  const add = async () => {
    if (!rule) return;
    try {
      tell((await client(PermissionService).add({ sandboxId: sandbox.id, rules: [rule], revoke })).change);
      setText("");
      setError(undefined);
      onChange();
    } catch (thrown) {
      setError(plain(errorText(thrown)));
    }
  };
  return (
    <form class="filters net-form" onSubmit={(event) => {
      event.preventDefault();
      void add();
    }}>
      <Field label="Rule" error={error} hint="/src/**=write, **/.env*=none@100, file:/Makefile=read">
        {(id, describedBy) => (
          <input id={id} class="mono" value={text} placeholder="/src/**=write" aria-describedby={describedBy} aria-invalid={error !== undefined}
            autocomplete="off" spellcheck={false} onInput={(event) => {
              setText(event.currentTarget.value);
              setError(undefined);
            }} />
        )}
      </Field>
      <Button type="submit" icon="plus" disabled={!rule}>Add rule</Button>
      <CopyCli command={holt("perm", "add", sandbox.id, rule || "RULE")} small />
    </form>
  );
}

function List({ sandbox, permissions, onChange, revoke }: Props & { revoke: boolean }) {
  const remove = async (rule: string) => {
    try {
      tell((await client(PermissionService).remove({ sandboxId: sandbox.id, rules: [rule], revoke })).change);
      onChange();
    } catch (error) {
      toastError(error, "The rule was not removed");
    }
  };
  return (
    <ol class="net-rules perm-rules" aria-label="Rules">
      {permissions.rules.map((rule, i) => (
        <li key={`${i} ${rule}`}>
          <Level level={levelOfRule(rule)} /> <Foreign mono text={rule} />
          {canWrite.value && <Button size="small" kind="quiet" icon="trash" label={`Remove the rule ${plain(rule)}`} onClick={() => remove(rule)} />}
        </li>
      ))}
    </ol>
  );
}

export function Rules(props: Props) {
  const { sandbox, permissions } = props;
  const [revoke, setRevoke] = useState(false);
  const isLocked = !permissions.enforced && sandbox.state !== "stopped";
  return (
    <Panel title={<>Rules{permissions.preset && <> <span class="badge">{plain(permissions.preset)}</span></>}</>}
      actions={<CopyCli command={holt("perm", "ls", sandbox.id)} />}>
      <div class="panel-body">
        <p class="muted">
          {permissions.enforced ? <>A path of <Foreign mono text={permissions.path} /> that no rule matches is hidden. Changes apply at once.{" "}
            {permissions.denials > 0n && <>{count(Number(permissions.denials), "operation")} refused since the daemon was started.</>}</>
            : "There are no rules: every file can be written."}
        </p>
        {permissions.rules.length > 0 && <List {...props} revoke={revoke} />}
        {isLocked && <div class="note"><Icon name="info" /><div>This sandbox runs without rules. Stop it to set some.</div></div>}
        {canWrite.value && !isLocked && (
          <>
            <RuleForm {...props} revoke={revoke} />
            <PresetForm {...props} revoke={revoke} />
            <label class="check-row">
              <input type="checkbox" checked={revoke} onChange={(event) => setRevoke(event.currentTarget.checked)} />
              End the processes that hold files which a change forbids them
            </label>
          </>
        )}
      </div>
    </Panel>
  );
}
