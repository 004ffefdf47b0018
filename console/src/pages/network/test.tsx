// A box that asks whether a connection would be allowed, and by which rule. None is made.
import { NetworkService, type NetworkTestResponse } from "@gen/network_pb";
import type { Sandbox } from "@gen/sandbox_pb";
import { useState } from "preact/hooks";
import { errorText } from "../../api/errors";
import { client } from "../../api/transport";
import { holt } from "../../lib/cli";
import { plain } from "../../lib/text";
import { Button } from "../../ui/button";
import { CopyCli } from "../../ui/cli";
import { Icon } from "../../ui/icons";
import { Field, Foreign, Panel } from "../../ui/parts";

interface Answer extends Pick<NetworkTestResponse, "allowed" | "rule"> {
  target: string;
}

export function Test({ sandbox }: { sandbox: Sandbox }) {
  const [target, setTarget] = useState("");
  const [address, setAddress] = useState("");
  const [answer, setAnswer] = useState<Answer | null>(null);
  const [error, setError] = useState<string>();
  const ask = async () => {
    if (!target.trim()) return;
    try {
      const reply = await client(NetworkService).test({ sandboxId: sandbox.id, target: target.trim(), address: address.trim() });
      setAnswer({ allowed: reply.allowed, rule: reply.rule, target: target.trim() });
      setError(undefined);
    } catch (thrown) {
      setAnswer(null);
      setError(plain(errorText(thrown)));
    }
  };
  return (
    <Panel title="Test" actions={<CopyCli command={holt("net", "test", sandbox.id, target.trim() || "TARGET", ...(address.trim() ? ["--address", address.trim()] : []))} />}>
      <form class="panel-body" onSubmit={(event) => {
        event.preventDefault();
        void ask();
      }}>
        <div class="filters net-form">
          <Field label="Would this be allowed?" error={error} hint="HOST:PORT, https://HOST or tcp://HOST:PORT">
            {(id, describedBy) => (
              <input id={id} class="mono" value={target} placeholder="registry.example.com:443" autocomplete="off" spellcheck={false} maxLength={1024}
                aria-describedby={describedBy} aria-invalid={error !== undefined} onInput={(event) => setTarget(event.currentTarget.value)} />
            )}
          </Field>
          <Field label="If its address is" hint="Empty: a public one">
            {(id, describedBy) => (
              <input id={id} class="mono" value={address} autocomplete="off" spellcheck={false} maxLength={64} aria-describedby={describedBy}
                onInput={(event) => setAddress(event.currentTarget.value)} />
            )}
          </Field>
          <Button type="submit" disabled={!target.trim()}>Test</Button>
        </div>
        <div role="status">
          {answer && (
            <div class={`note ${answer.allowed ? "good" : "bad"}`}>
              <Icon name={answer.allowed ? "check" : "close"} />
              <div><Foreign mono text={answer.target} /> is {answer.allowed ? "allowed" : "denied"}: <Foreign mono text={answer.rule} /></div>
            </div>
          )}
        </div>
      </form>
    </Panel>
  );
}
