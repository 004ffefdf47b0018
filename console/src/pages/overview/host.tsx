// The host at a glance: health, sandboxes, storage, warm pool.
import { HostService, type HealthResponse } from "@gen/host_pb";
import type { ComponentChildren } from "preact";
import { client } from "../../api/transport";
import { bytes, count, duration, plain } from "../../lib/text";
import { usePolled } from "../../store/polled";
import { Icon } from "../../ui/icons";
import { Problem, State } from "../../ui/parts";

function Card({ title, value, children }: { title: string; value: ComponentChildren; children?: ComponentChildren }) {
  return (
    <section class="panel card" aria-label={title}>
      <h2 class="card-title">{title}</h2>
      <div class="card-value">{value}</div>
      <div class="card-more">{children}</div>
    </section>
  );
}

// A bar that fills; the text beside it says the same.
export function Meter({ percent, warnFrom = 85, badFrom = 95, label }: {
  percent: number; warnFrom?: number; badFrom?: number; label: string;
}) {
  const tone = percent >= badFrom ? "bad" : percent >= warnFrom ? "warn" : "";
  return (
    <div class="meter" role="meter" aria-label={label} aria-valuemin={0} aria-valuemax={100} aria-valuenow={percent}>
      <div class={`meter-fill ${tone}`} style={{ width: `${Math.min(100, percent)}%` }} />
    </div>
  );
}

function Storage({ health }: { health: HealthResponse }) {
  const storage = health.storage;
  if (!storage || storage.sizeBytes === 0n) return null;
  const state = storage.state && storage.state !== "ONLINE" ? `, ${plain(storage.state)}` : "";
  return (
    <Card title="Storage" value={<>{bytes(storage.usedBytes)} <small>of {bytes(storage.sizeBytes)}</small></>}>
      <Meter percent={storage.usedPercent} label="Storage in use, percent" />
      <span>{storage.usedPercent} % {plain(storage.backend)}{state}</span>
    </Card>
  );
}

export function Host() {
  const { value: health, error } = usePolled(() => client(HostService).health({}), 5000);
  if (error && !health) return <Problem error={error} />;
  if (!health) return <div class="cards" aria-busy="true" />;
  return (
    <>
      {health.errors.length > 0 && (
        <div class="problem warn" role="alert">
          <Icon name="warning" />
          <ul>{health.errors.map((each) => <li key={each}>{plain(each)}</li>)}</ul>
        </div>
      )}
      <div class="cards">
        <Card title="Health" value={<State state={health.status} />}>
          Holt {plain(health.version)}, up {duration(Number(health.uptimeMs))}
        </Card>
        <Card title="Sandboxes" value={health.sandboxes}>
          {count(health.processes, "process", "processes")}, {count(health.tools, "tool call")}
        </Card>
        <Storage health={health} />
        {health.poolSize > 0 && (
          <Card title="Warm pool" value={<>{health.poolReady} <small>of {health.poolSize} ready</small></>}>
            <Meter percent={Math.round((100 * health.poolReady) / health.poolSize)} warnFrom={101} badFrom={101}
              label="Warm machines, percent" />
            <span>{plain(health.runtime)}</span>
          </Card>
        )}
      </div>
    </>
  );
}
