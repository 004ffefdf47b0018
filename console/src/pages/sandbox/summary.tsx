// What a sandbox is and what it uses now.
import { SandboxService, type Sandbox, type SandboxStats } from "@gen/sandbox_pb";
import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { TabProps } from "..";
import { follow } from "../../api/follow";
import { client } from "../../api/transport";
import { bytes, cpus, dateTime, duration, plain } from "../../lib/text";
import { Foreign, Labels, Panel } from "../../ui/parts";

function useStats(id: string, isActive: boolean): SandboxStats | null {
  const [stats, setStats] = useState<SandboxStats | null>(null);
  useEffect(() => {
    setStats(null);
    const call = { sandboxIds: [id], intervalMs: 2000n };
    return follow((signal) => client(SandboxService).watchStats(call, { signal }), {
      message: (reply) => setStats(reply.stats[0] ?? null),
    });
  }, [id, isActive]);
  return stats;
}

function Fact({ name, children }: { name: string; children: ComponentChildren }) {
  return <><dt>{name}</dt><dd>{children}</dd></>;
}

function of(limit: string | null) {
  return limit ? <span class="muted"> of {limit}</span> : null;
}

function Usage({ stats }: { stats: SandboxStats | null }) {
  if (!stats) return <dl class="summary-facts"><Fact name="CPU">–</Fact></dl>;
  return (
    <dl class="summary-facts">
      <Fact name="CPU">
        {stats.cpuMillis === undefined ? "–" : (stats.cpuMillis / 1000).toFixed(2)}
        {of(stats.cpuLimitMillis ? cpus(stats.cpuLimitMillis) : null)}
        <span class="muted">, {duration(Number(stats.cpuUs) / 1000)} in total</span>
      </Fact>
      <Fact name="Memory">
        {bytes(stats.memoryBytes)}{of(stats.memoryLimitBytes ? bytes(stats.memoryLimitBytes) : null)}
        {stats.cacheBytes > 0n && <span class="muted">, {bytes(stats.cacheBytes)} of cache</span>}
      </Fact>
      <Fact name="Processes">
        {stats.pids}{of(stats.pidsLimit ? String(stats.pidsLimit) : null)}
        <span class="muted">, {stats.processes} of clients</span>
      </Fact>
      <Fact name="Storage">{bytes(stats.spaceUsed)}{of(stats.quotaBytes ? bytes(stats.quotaBytes) : null)}</Fact>
    </dl>
  );
}

function limit(value: number | bigint | undefined, format: (value: number) => string): string {
  return value ? format(Number(value)) : "default";
}

function Properties({ sandbox }: { sandbox: Sandbox }) {
  const hasLabels = Object.keys(sandbox.labels).length > 0;
  return (
    <dl class="summary-facts">
      <Fact name="Id"><span class="mono">{sandbox.id}</span></Fact>
      <Fact name="Name">{sandbox.name ? <Foreign text={sandbox.name} /> : <span class="muted">none</span>}</Fact>
      <Fact name="Owner"><Foreign text={sandbox.owner} /></Fact>
      <Fact name="Template"><Foreign text={sandbox.template} /></Fact>
      <Fact name="Runtime">{plain(sandbox.runtime)}</Fact>
      <Fact name="Created">{dateTime(sandbox.createdAt)}</Fact>
      <Fact name="Last active">{dateTime(sandbox.lastActiveAt)}</Fact>
      <Fact name="Labels">{hasLabels ? <Labels labels={sandbox.labels} /> : <span class="muted">none</span>}</Fact>
      {sandbox.volumes.length > 0 && (
        <Fact name="Volumes">
          {sandbox.volumes.map((each) => <div key={each.path}><Foreign text={`${each.volume} on ${each.path}`} mono /></div>)}
        </Fact>
      )}
    </dl>
  );
}

function verb(action: string): string {
  return action === "pause" || action === "stop" ? action : "destroy";
}

function Limits({ sandbox }: { sandbox: Sandbox }) {
  const idle = sandbox.idleTimeoutMs > 0n
    ? `${duration(Number(sandbox.idleTimeoutMs))}, then ${verb(sandbox.idleAction)}` : "none";
  const ttl = sandbox.expiresAt ? `${dateTime(sandbox.expiresAt)}, then ${verb(sandbox.expireAction)}` : "never";
  return (
    <dl class="summary-facts">
      <Fact name="Memory">{limit(sandbox.limits?.memoryBytes, bytes)}</Fact>
      <Fact name="CPUs">{limit(sandbox.limits?.cpuMillis, cpus)}</Fact>
      <Fact name="Processes">{limit(sandbox.limits?.pids, String)}</Fact>
      <Fact name="Disk quota">{sandbox.quotaBytes ? bytes(sandbox.quotaBytes) : "none"}</Fact>
      <Fact name="Expires">{ttl}</Fact>
      <Fact name="Idle timeout">{idle}</Fact>
      <Fact name="Turns">{sandbox.turns}{sandbox.maxSnapshots > 0 && <span class="muted">, {sandbox.maxSnapshots} kept</span>}</Fact>
      <Fact name="Snapshots">{sandbox.snapshots}{sandbox.base && <span class="muted">, files based on <Foreign text={sandbox.base} /></span>}</Fact>
    </dl>
  );
}

export default function Summary({ sandbox }: TabProps) {
  const stats = useStats(sandbox.id, sandbox.state === "active");
  return (
    <div class="summary">
      <Panel title="Usage"><Usage stats={stats} /></Panel>
      <Panel title="Limits"><Limits sandbox={sandbox} /></Panel>
      <Panel title="Properties"><Properties sandbox={sandbox} /></Panel>
    </div>
  );
}
