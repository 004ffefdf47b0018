// The policy of a sandbox: all layers, and the forms that change its own.
import { NetworkService, type Network, type NetworkLayer } from "@gen/network_pb";
import type { Sandbox } from "@gen/sandbox_pb";
import { useState } from "preact/hooks";
import { errorText } from "../../api/errors";
import { canWrite } from "../../api/session";
import { client } from "../../api/transport";
import { holt } from "../../lib/cli";
import { count, plain } from "../../lib/text";
import { Button } from "../../ui/button";
import { CopyCli } from "../../ui/cli";
import { confirm } from "../../ui/confirm";
import { Field, Foreign, Panel } from "../../ui/parts";
import { toast, toastError } from "../../ui/toast";
import { modes } from "./rules";

const sources: Record<string, string> = { "holt.conf": "holt.conf", owner: "Owner", template: "Template", sandbox: "Sandbox" };

interface Props {
  sandbox: Sandbox;
  network: Network;
  onChange: () => void;
}

export function ownLayer(network: Network): NetworkLayer | undefined {
  return network.layers.find((each) => each.source === "sandbox");
}

function Rules({ layer, kind, onRemove }: { layer: NetworkLayer; kind: "allow" | "deny"; onRemove: ((rule: string) => Promise<void>) | undefined }) {
  return (
    <>
      {layer[kind].map((rule) => (
        <li key={`${kind} ${rule}`}>
          <span class={`net-${kind}`}>{kind}</span> <Foreign mono text={rule} />
          {onRemove && <Button size="small" kind="quiet" icon="trash" label={`Remove the rule ${kind} ${plain(rule)}`} onClick={() => onRemove(rule)} />}
        </li>
      ))}
    </>
  );
}

function Layer({ layer, onRemove }: { layer: NetworkLayer; onRemove?: (rule: string) => Promise<void> }) {
  const hasRules = layer.allow.length + layer.deny.length > 0;
  return (
    <section class="net-layer" aria-label={`Layer ${sources[layer.source] ?? plain(layer.source)}`}>
      <h3>{sources[layer.source] ?? <Foreign text={layer.source} />} <span class="badge"><Foreign text={layer.mode} /></span></h3>
      {hasRules ? (
        <ul class="net-rules">
          <Rules layer={layer} kind="deny" onRemove={onRemove} />
          <Rules layer={layer} kind="allow" onRemove={onRemove} />
        </ul>
      ) : <p class="muted">{layer.mode === "any" ? "No limit." : "No rules."}</p>}
      {layer.proxy && <p class="muted">Connections go through the proxy <Foreign mono text={layer.proxy} />.</p>}
      {layer.allowWins && <p class="muted">Here a rule that allows wins over one that denies.</p>}
    </section>
  );
}

function ModeForm({ sandbox, network, onChange }: Props) {
  const layer = ownLayer(network);
  const current = layer?.mode ?? "none";
  const [chosen, setChosen] = useState<string | null>(null);
  const mode = chosen ?? current;
  const rules = [...(layer?.allow ?? []).map((each) => `allow ${each}`), ...(layer?.deny ?? []).map((each) => `deny ${each}`)];
  const apply = async () => {
    if (mode === "none" && rules.length > 0 && !(await confirm({
      title: "Take the network away?", text: "Open connections are cut.", lost: [`${count(rules.length, "rule")}: ${plain(rules.join(", ")).slice(0, 500)}`], action: "Set mode none",
    }))) return;
    const policy = mode === "none" ? { mode } : { mode, allow: layer?.allow ?? [], deny: layer?.deny ?? [] };
    try {
      await client(NetworkService).set({ sandboxId: sandbox.id, policy });
      setChosen(null);
      onChange();
      toast(`The mode is ${mode} now.`);
    } catch (error) {
      toastError(error, "The mode was not changed");
    }
  };
  return (
    <form class="filters net-form" onSubmit={(event) => {
      event.preventDefault();
      void apply();
    }}>
      <Field label="Mode of the sandbox">
        {(id) => (
          <select id={id} value={mode} onChange={(event) => setChosen(event.currentTarget.value)}>
            {modes.map(([value, text]) => <option key={value} value={value}>{text}</option>)}
          </select>
        )}
      </Field>
      <Button type="submit" disabled={mode === current}>Set mode</Button>
    </form>
  );
}

function RuleForm({ sandbox, onChange }: Props) {
  const [text, setText] = useState("");
  const [error, setError] = useState<string>();
  const rule = text.trim();
  const add = async (kind: "allow" | "deny") => {
    if (!rule) return;
    try {
      await client(NetworkService).set({ sandboxId: sandbox.id, [kind]: [rule] });
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
      void add("allow");
    }}>
      <Field label="Rule" error={error} hint="*.example.com, https://host:8443, 10.0.0.0/8:5432">
        {(id, describedBy) => (
          <input id={id} class="mono" value={text} placeholder="registry.example.com" aria-describedby={describedBy} aria-invalid={error !== undefined}
            autocomplete="off" spellcheck={false} onInput={(event) => {
              setText(event.currentTarget.value);
              setError(undefined);
            }} />
        )}
      </Field>
      <Button type="submit" icon="plus" disabled={!rule}>Allow</Button>
      <Button icon="plus" disabled={!rule} onClick={() => add("deny")}>Deny</Button>
      <CopyCli command={holt("net", "allow", sandbox.id, rule || "RULE")} small />
    </form>
  );
}

export function Policy(props: Props) {
  const { sandbox, network, onChange } = props;
  const remove = async (rule: string) => {
    try {
      await client(NetworkService).set({ sandboxId: sandbox.id, remove: [rule] });
      onChange();
    } catch (error) {
      toastError(error, "The rule was not removed");
    }
  };
  return (
    <Panel title={<>Policy: <span class="badge">{plain(network.mode)}</span></>} actions={<CopyCli command={holt("net", "show", sandbox.id)} />}>
      <div class="panel-body">
        <p class="muted">All layers must allow a connection. A change applies at once; connections that it forbids are cut.</p>
        <div class="net-layers">
          {network.layers.map((each) => (
            <Layer key={each.source} layer={each} {...(each.source === "sandbox" && canWrite.value ? { onRemove: remove } : {})} />
          ))}
        </div>
        {canWrite.value && <><ModeForm {...props} /><RuleForm {...props} /></>}
      </div>
    </Panel>
  );
}
