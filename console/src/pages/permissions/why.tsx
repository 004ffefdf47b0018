// A box that tells what a system call on a path would return, by which rule, and what it would take.
import { PermissionService, type PermissionTestResponse, type PermissionWhyResponse } from "@gen/permission_pb";
import type { Sandbox } from "@gen/sandbox_pb";
import { useState } from "preact/hooks";
import { errorText } from "../../api/errors";
import { canWrite } from "../../api/session";
import { client } from "../../api/transport";
import { holt } from "../../lib/cli";
import { plain } from "../../lib/text";
import { Button } from "../../ui/button";
import { CopyCli } from "../../ui/cli";
import { Icon } from "../../ui/icons";
import { Field, Foreign, Panel } from "../../ui/parts";
import { toastError } from "../../ui/toast";
import { Level } from "./level";

const operations = ["read", "write", "stat", "list", "exec", "create", "delete", "chmod", "chown"];

interface Answer {
  test: PermissionTestResponse;
  why: PermissionWhyResponse;
  operation: string;
}

function Verdict({ answer, onAdd }: { answer: Answer; onAdd: (rule: string) => Promise<void> }) {
  const { test, why, operation } = answer;
  return (
    <div class={`note ${test.allowed ? "good" : "bad"}`}>
      <Icon name={test.allowed ? "check" : "close"} />
      <div>
        <div>
          {operation} of <Foreign mono text={why.path} /> is {test.allowed ? "allowed" : <>refused with <span class="mono">{plain(test.error)}</span></>}: level <Level level={why.level} />{" "}
          {why.rule ? <>by rule <Foreign mono text={why.rule} /></> : "because no rule matches"}
          {why.traversable && ", but it is there as a directory, for what is below it"}
        </div>
        {why.wouldTake && (
          <div class="row">
            <span>To make it writable: <Foreign mono text={why.wouldTake} /></span>
            {canWrite.value && <Button size="small" kind="quiet" icon="plus" onClick={() => onAdd(why.wouldTake)}>Add this rule</Button>}
          </div>
        )}
      </div>
    </div>
  );
}

export function Why({ sandbox, onChange }: { sandbox: Sandbox; onChange: () => void }) {
  const [path, setPath] = useState("");
  const [operation, setOperation] = useState("write");
  const [answer, setAnswer] = useState<Answer | null>(null);
  const [error, setError] = useState<string>();
  const ask = async () => {
    if (!path) return;
    try {
      const about = { sandboxId: sandbox.id, path };
      const [test, why] = await Promise.all([client(PermissionService).test({ ...about, operation }), client(PermissionService).why(about)]);
      setAnswer({ test, why, operation });
      setError(undefined);
    } catch (thrown) {
      setAnswer(null);
      setError(plain(errorText(thrown)));
    }
  };
  const add = async (rule: string) => {
    try {
      await client(PermissionService).add({ sandboxId: sandbox.id, rules: [rule] });
      onChange();
      await ask();
    } catch (thrown) {
      toastError(thrown, "The rule was not added");
    }
  };
  return (
    <Panel title="Why" actions={<CopyCli command={holt("perm", "why", sandbox.id, path || "PATH")} />}>
      <form class="panel-body" onSubmit={(event) => {
        event.preventDefault();
        void ask();
      }}>
        <div class="filters net-form">
          <Field label="Path" error={error} hint="It need not exist.">
            {(id, describedBy) => (
              <input id={id} class="mono" value={path} placeholder="src/main.c" autocomplete="off" spellcheck={false} maxLength={4095}
                aria-describedby={describedBy} aria-invalid={error !== undefined} onInput={(event) => setPath(event.currentTarget.value)} />
            )}
          </Field>
          <Field label="Operation">
            {(id) => (
              <select id={id} value={operation} onChange={(event) => setOperation(event.currentTarget.value)}>
                {operations.map((each) => <option key={each} value={each}>{each}</option>)}
              </select>
            )}
          </Field>
          <Button type="submit" disabled={!path}>Ask</Button>
        </div>
        <div role="status">{answer && <Verdict answer={answer} onAdd={add} />}</div>
      </form>
    </Panel>
  );
}
