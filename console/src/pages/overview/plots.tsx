// CPU and memory of the host in the last hour. The first fetch gets all samples, each further one only
// those since the last.
import { HostService, type HistorySample } from "@gen/host_pb";
import { Code, ConnectError } from "@connectrpc/connect";
import { signal } from "@preact/signals";
import { useMemo, useRef } from "preact/hooks";
import { isAdmin, session } from "../../api/session";
import { client } from "../../api/transport";
import { bytes, count, millis } from "../../lib/text";
import { usePolled } from "../../store/polled";
import { Plot } from "../../ui/plot";

const spanSeconds = 3600;
const height = 112;

interface History {
  cpus: number;
  samples: HistorySample[];
}

async function fetchMore(known: History | null): Promise<History> {
  const last = known?.samples.at(-1);
  const lastMs = millis(last?.at);
  const age = Math.ceil((Date.now() - lastMs) / 1000);
  // The clock of the daemon may be another than that of the browser.
  const isUsable = last !== undefined && age >= 0 && age < spanSeconds;
  const reply = await client(HostService).history({ seconds: isUsable ? age + 10 : 0 });
  if (!known || !isUsable) return { cpus: reply.cpus, samples: reply.samples };
  const fresh = reply.samples.filter((each) => millis(each.at) > lastMs);
  const oldest = Date.now() - spanSeconds * 1000;
  return {
    cpus: reply.cpus,
    samples: [...known.samples, ...fresh].filter((each) => millis(each.at) >= oldest),
  };
}

// A token with a scope of labels is refused, which the session does not tell; once is enough.
const isRefused = signal(false);

async function fetchAllowed(known: History | null): Promise<History | null> {
  try {
    return await fetchMore(known);
  } catch (error) {
    isRefused.value = ConnectError.from(error).code === Code.PermissionDenied;
    throw error;
  }
}

const percent = (value: number) => `${(value * 100).toFixed(0)} %`;

export default function Plots() {
  const isAllowed = isAdmin.value || session.value?.owner === "root";
  return isAllowed && !isRefused.value ? <HostPlots /> : null;
}

function HostPlots() {
  const known = useRef<History | null>(null);
  const { value } = usePolled(async () => (known.current = await fetchAllowed(known.current)), 5000);
  const columns = useMemo(() => {
    const samples = value?.samples ?? [];
    const times = samples.map((each) => millis(each.at) / 1000);
    return {
      cpu: [times, samples.map((each) => each.cpu)] as [number[], number[]],
      memory: [times, samples.map((each) => Number(each.memoryUsedBytes))] as [number[], number[]],
      total: Number(samples.at(-1)?.memoryTotalBytes ?? 0n),
    };
  }, [value]);
  if (!value || value.samples.length === 0) return null;
  return (
    <div class="plots">
      <section class="panel" aria-label="CPU of the host">
        <Plot label="CPU of the host in the last hour" height={height} span={spanSeconds} max={1} format={percent}
          series={[{ label: `CPU, ${count(value.cpus, "core")}`, color: "plot-1", fill: true }]} data={columns.cpu} />
      </section>
      <section class="panel" aria-label="Memory of the host">
        <Plot label="Memory of the host in the last hour" height={height} span={spanSeconds} max={columns.total}
          format={bytes} isBytes series={[{ label: `Memory of ${bytes(columns.total)}`, color: "plot-2", fill: true }]}
          data={columns.memory} />
      </section>
    </div>
  );
}
