// The tab Usage: CPU, memory, processes and storage of a sandbox, live.
import { SandboxService, type SandboxStats } from "@gen/sandbox_pb";
import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { TabProps } from "..";
import { follow } from "../../api/follow";
import { client } from "../../api/transport";
import { holt } from "../../lib/cli";
import { bytes, count, cpus, duration } from "../../lib/text";
import { CopyCli } from "../../ui/cli";
import { Loading, Panel, Problem } from "../../ui/parts";
import { Plot, type Series } from "../../ui/plot";
import { record, recordingOf, type Recording } from "./recording";

const intervalMs = 1000n;

function useRecording(id: string) {
  const [, setRevision] = useState(0);
  const [error, setError] = useState<unknown>(null);
  const recording = recordingOf(id);
  useEffect(() => {
    setError(null);
    return follow((signal) => client(SandboxService).watchStats({ sandboxIds: [id], intervalMs }, { signal }), {
      message: ({ stats }) => {
        const mine = stats[0];
        if (!mine) return;
        record(recordingOf(id), mine, Date.now() / 1000);
        setRevision((before) => before + 1);
      },
      ended: (failure) => failure && setError(failure),
      endIsFinal: true,
    });
  }, [id]);
  return { recording, error };
}

function of(used: string, limit: bigint | number, text: (limit: number) => string): ComponentChildren {
  return <><strong>{used}</strong>{Number(limit) > 0 && <span class="muted"> of {text(Number(limit))}</span>}</>;
}

function Meter({ title, value, used, limit }: {
  title: string; value: ComponentChildren; used: number; limit: number;
}) {
  const part = limit > 0 ? Math.min(1, used / limit) : 0;
  const tone = part > 0.95 ? "bad" : part > 0.8 ? "warn" : "good";
  return (
    <div class="meter-box">
      <div class="muted">{title}</div>
      <div class="meter-value">{value}</div>
      {limit > 0 && <meter class={tone} min={0} max={1} value={part} aria-label={`${title}: part of the limit`} />}
    </div>
  );
}

function Now({ stats }: { stats: SandboxStats }) {
  const millis = stats.cpuMillis ?? 0;
  return (
    <div class="meters">
      <Meter title="CPU" used={millis} limit={stats.cpuLimitMillis}
        value={of(`${cpus(millis)} CPU`, stats.cpuLimitMillis, cpus)} />
      <Meter title="Memory" used={Number(stats.memoryBytes)} limit={Number(stats.memoryLimitBytes)}
        value={of(bytes(stats.memoryBytes), stats.memoryLimitBytes, bytes)} />
      <Meter title="Processes and threads" used={stats.pids} limit={stats.pidsLimit}
        value={of(String(stats.pids), stats.pidsLimit, String)} />
      <Meter title="Storage" used={Number(stats.spaceUsed)} limit={Number(stats.quotaBytes)}
        value={of(bytes(stats.spaceUsed), stats.quotaBytes, bytes)} />
      <Meter title="CPU time" used={0} limit={0} value={<strong>{duration(Number(stats.cpuUs) / 1000)}</strong>} />
      <Meter title="Age" used={0} limit={0} value={<strong>{duration(Number(stats.ageMs))}</strong>} />
    </div>
  );
}

interface Chart {
  title: string;
  lines: Series[];
  columns: (recording: Recording) => (number | null)[][];
  limit: (stats: SandboxStats) => number;
  format: (value: number) => string;
  least: number;
  isBytes?: boolean;
}

const charts: Chart[] = [
  {
    title: "CPU", lines: [{ label: "CPUs", color: "plot-1", fill: true }],
    columns: ({ cpu }) => [cpu], limit: (stats) => stats.cpuLimitMillis / 1000,
    format: (value) => value.toFixed(value < 1 ? 2 : 1), least: 0.1,
  },
  {
    title: "Memory",
    lines: [{ label: "memory", color: "plot-1", fill: true }, { label: "page cache", color: "plot-2" }],
    columns: ({ memory, cache }) => [memory, cache], limit: (stats) => Number(stats.memoryLimitBytes),
    format: bytes, least: 8 << 20, isBytes: true,
  },
  {
    title: "Processes",
    lines: [{ label: "processes and threads", color: "plot-1" }, { label: "started by clients", color: "plot-2" }],
    columns: ({ pids, processes }) => [pids, processes], limit: (stats) => stats.pidsLimit,
    format: (value) => (Number.isInteger(value) ? String(value) : ""), least: 4,
  },
  {
    title: "Storage", lines: [{ label: "files and snapshots", color: "plot-3", fill: true }],
    columns: ({ space }) => [space], limit: (stats) => Number(stats.quotaBytes), format: bytes, least: 1 << 20, isBytes: true,
  },
];

// The limit is drawn when the use is near it: a line far above would flatten the curve.
function isNear(limit: number, columns: (number | null)[][]): boolean {
  const most = Math.max(...columns.map((each) => each.reduce<number>((max, value) => Math.max(max, value ?? 0), 0)));
  return limit > 0 && most > limit / 4;
}

function ChartPanel({ chart, recording, stats }: { chart: Chart; recording: Recording; stats: SandboxStats }) {
  const columns = chart.columns(recording);
  const limit = chart.limit(stats);
  const hasLimit = isNear(limit, columns);
  const lines = hasLimit ? [...chart.lines, { label: "limit", color: "bad", dash: true }] : chart.lines;
  const data: [number[], ...(number | null)[][]] = [recording.times, ...columns, ...(hasLimit ? [recording.times.map(() => limit)] : [])];
  return (
    <Panel title={chart.title}>
      <Plot label={`${chart.title} of the sandbox in the last minutes`} series={lines} data={data} format={chart.format}
        max={chart.least} span={60} isBytes={chart.isBytes ?? false} height={140} />
    </Panel>
  );
}

export default function Usage({ sandbox }: TabProps) {
  const { recording, error } = useRecording(sandbox.id);
  const stats = recording.latest;
  if (error) return <Problem error={error} />;
  if (!stats) return <Loading what="Waiting for the first figures" />;
  const since = recording.times[0] ?? 0;
  return (
    <>
      <div class="row">
        <p class="muted grow">
          One measurement a second, {count(recording.times.length, "point")} since {new Date(since * 1000).toLocaleTimeString()}.
        </p>
        <CopyCli command={holt("stats", sandbox.name || sandbox.id)} />
      </div>
      <Now stats={stats} />
      <div class="charts">
        {charts.map((each) => (
          <ChartPanel key={each.title} chart={each} recording={recording} stats={stats} />
        ))}
      </div>
    </>
  );
}
