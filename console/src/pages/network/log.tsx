// The live log: connections that have ended or were refused, and refused names.
import { NetworkService, type NetworkConnection } from "@gen/network_pb";
import type { Sandbox } from "@gen/sandbox_pb";
import { useState } from "preact/hooks";
import { canWrite } from "../../api/session";
import { client } from "../../api/transport";
import { holt } from "../../lib/cli";
import { bytes, count, millis, plain } from "../../lib/text";
import { query, setQuery } from "../../router";
import { Button } from "../../ui/button";
import { CopyCli } from "../../ui/cli";
import { List, type Column } from "../../ui/list";
import { Field, Foreign, Panel } from "../../ui/parts";
import { toast, toastError } from "../../ui/toast";
import { useLog } from "./feed";
import { ruleFor, targetOf } from "./rules";

const mostShown = 300;

const clock = new Intl.DateTimeFormat(undefined, {
  hour: "2-digit", minute: "2-digit", second: "2-digit", fractionalSecondDigits: 3, hourCycle: "h23",
});

// Adds the rule, then asks whether it suffices: another layer, or a rule that denies, may be in the way.
async function allow(sandbox: Sandbox, line: NetworkConnection, rule: string): Promise<void> {
  try {
    await client(NetworkService).set({ sandboxId: sandbox.id, allow: [rule] });
    const verdict = await client(NetworkService).test({
      sandboxId: sandbox.id, target: targetOf(line), address: line.name ? line.address : "",
    });
    if (verdict.allowed) toast(`Allowed: ${rule}`);
    else toastError(new Error(verdict.rule), `The rule '${rule}' was added, but does not suffice`);
  } catch (error) {
    toastError(error, `'${rule}' was not allowed`);
  }
}

function Allow({ sandbox, line }: { sandbox: Sandbox; line: NetworkConnection }) {
  const rule = ruleFor(line);
  if (!rule || !canWrite.value) return null;
  return (
    <>
      <Button size="small" label={`Allow ${rule}`} onClick={() => allow(sandbox, line, rule)}>Allow this</Button>
      <CopyCli small command={holt("net", "allow", sandbox.id, rule)} />
    </>
  );
}

function columnsFor(sandbox: Sandbox): Column<NetworkConnection>[] {
  return [
    { title: "Time", class: "time mono", cell: (each) => clock.format(millis(each.time)) },
    { title: "Decision", class: "time", cell: (each) => <span class={`net-${each.allowed ? "allow" : "deny"}`}>{each.allowed ? "allowed" : "denied"}</span> },
    { title: "Protocol", cell: (each) => <Foreign text={each.protocol} /> },
    { title: "Name", cell: (each) => each.name && <span class="net-name"><Foreign mono text={each.name} /></span> },
    { title: "Address", class: "id", cell: (each) => each.address && <Foreign mono text={each.address} /> },
    { title: "Port", class: "number", cell: (each) => each.port || "" },
    { title: "Rule and end", cell: (each) => (
      <span class="net-name"><Foreign text={each.rule} />{each.end && (each.allowed || each.end !== "denied") && <span class="muted"> <Foreign text={each.end} /></span>}</span>
    ) },
    { title: "Bytes", class: "number", cell: (each) => (each.allowed ? `${bytes(each.bytesOut)} out, ${bytes(each.bytesIn)} in` : "") },
    { title: "Duration", class: "number", cell: (each) => (each.allowed ? `${each.durationMs.toLocaleString("en")} ms` : "") },
    ...(canWrite.value ? [{ title: "Actions", class: "actions", cell: (each: NetworkConnection) => <Allow sandbox={sandbox} line={each} /> }] : []),
  ];
}

function includes(line: NetworkConnection, words: string): boolean {
  const text = `${line.protocol} ${plain(line.name)} ${line.address} ${line.port} ${plain(line.rule)} ${line.end}`;
  return text.toLowerCase().includes(words.toLowerCase());
}

export function Log({ sandbox }: { sandbox: Sandbox }) {
  const decision = query.value.get("decision") ?? "";
  const words = query.value.get("q") ?? "";
  const [isPaused, setPaused] = useState(false);
  const log = useLog(sandbox.id, isPaused);
  const found = log.lines.filter((each) => (!decision || each.allowed === (decision === "allowed")) && (!words || includes(each, words)));
  return (
    <Panel title={<span aria-live="off">{count(found.length, "connection")}{log.lost > 0 && ` (${log.lost} lost)`}</span>}
      actions={
        <>
          <span class={`state ${isPaused ? "idle" : "good"}`}><span class="dot" aria-hidden="true" />{isPaused ? "paused" : "live"}</span>
          <Button size="small" icon={isPaused ? "play" : "pause"} onClick={() => setPaused(!isPaused)}>
            {isPaused ? "Continue" : "Pause"}
          </Button>
          <CopyCli command={holt("net", "log", "-f", decision === "denied" && "--denied", sandbox.id)} />
        </>
      }>
      <div class="panel-body filters">
        <Field label="Decision">
          {(id) => (
            <select id={id} value={decision} onChange={(event) => setQuery({ decision: event.currentTarget.value })}>
              <option value="">All</option>
              <option value="allowed">Allowed</option>
              <option value="denied">Denied</option>
            </select>
          )}
        </Field>
        <Field label="Search">
          {(id) => (
            <input id={id} type="search" value={words} placeholder="A name, address, port or rule"
              onInput={(event) => setQuery({ q: event.currentTarget.value })} />
          )}
        </Field>
      </div>
      <div class="net-log"><List label="Connections, newest first" columns={columnsFor(sandbox)} rows={log.isOpen || log.error ? found.slice(0, mostShown) : undefined}
        rowKey={(each) => each.number.toString()} error={log.error}
        empty={{ icon: "network", title: "No connections", text: words || decision ? "No line fits the filter." : "New ones appear here when they end or are refused." }} /></div>
      {found.length > mostShown && <div class="panel-foot muted">The {mostShown} newest of {found.length.toLocaleString("en")} are shown.</div>}
    </Panel>
  );
}
