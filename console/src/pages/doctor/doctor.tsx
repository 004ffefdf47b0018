// The page Doctor: what this machine supports, with causes and remedies.
import { HostService, type DoctorCheck, type DoctorResponse } from "@gen/host_pb";
import { useEffect, useState } from "preact/hooks";
import { client } from "../../api/transport";
import { holt } from "../../lib/cli";
import { count } from "../../lib/text";
import { Button } from "../../ui/button";
import { CopyCli } from "../../ui/cli";
import { Icon } from "../../ui/icons";
import { List, type Column } from "../../ui/list";
import { Foreign, Loading, Panel, Problem, State } from "../../ui/parts";

const words: Record<string, string> = { ok: "ok", warn: "degraded", fail: "failed" };
const order = ["fail", "warn", "ok"];

const columns: Column<DoctorCheck>[] = [
  { title: "Verdict", cell: (each) => <State state={words[each.verdict] ?? each.verdict} /> },
  { title: "Check", class: "time", cell: (each) => <strong><Foreign text={each.check} /></strong> },
  { title: "Found", class: "wide", cell: (each) => <Foreign text={each.detail} /> },
  { title: "Remedy", class: "wide", cell: (each) => (each.remedy ? <Foreign text={each.remedy} /> : "") },
];

function Summary({ found }: { found: DoctorResponse }) {
  const wrong = found.checks.filter((each) => each.verdict !== "ok").length;
  const tone = !found.canRun ? "bad" : wrong > 0 ? "warn" : "good";
  return (
    <div class={`note ${tone}`} role="status">
      <Icon name={tone === "good" ? "check" : "warning"} />
      <div>
        {found.canRun ? "Sandboxes can run on this machine." : "Sandboxes cannot run on this machine."}
        {wrong > 0 && ` ${count(wrong, "check")} of ${found.checks.length} ${wrong === 1 ? "needs" : "need"} attention.`}
      </div>
    </div>
  );
}

export default function DoctorPage() {
  const [found, setFound] = useState<DoctorResponse | null>(null);
  const [error, setError] = useState<unknown>(null);
  const [isBusy, setBusy] = useState(false);
  const run = async () => {
    setBusy(true);
    setError(null);
    try {
      setFound(await client(HostService).doctor({}));
    } catch (failure) {
      setError(failure);
    } finally {
      setBusy(false);
    }
  };
  useEffect(() => void run(), []);
  const checks = found && [...found.checks].sort((a, b) => order.indexOf(a.verdict) - order.indexOf(b.verdict));
  return (
    <>
      <header class="page-head">
        <h1 class="grow">Doctor</h1>
        <CopyCli command={holt("doctor")} />
        <Button icon="refresh" disabled={isBusy} onClick={() => run()}>Check again</Button>
      </header>
      {error !== null && <Problem error={error} />}
      {found && <Summary found={found} />}
      {isBusy && !found && <Panel><Loading what="Checking this machine, which takes some seconds" /></Panel>}
      {checks && (
        <Panel title={count(checks.length, "check")}>
          <List label="Checks" columns={columns} rows={checks} rowKey={(each) => each.check} empty={{ icon: "doctor", title: "No checks" }} />
        </Panel>
      )}
    </>
  );
}
