// The page Models: which there are, and what sandboxes have used of them.
import { ModelService, type Model } from "@gen/model_pb";
import { client } from "../../api/transport";
import { holt } from "../../lib/cli";
import { useResource } from "../../lib/resource";
import { count } from "../../lib/text";
import { href, query, setQuery } from "../../router";
import { CopyCli } from "../../ui/cli";
import { List, type Column } from "../../ui/list";
import { Field, Foreign, Panel } from "../../ui/parts";
import { dollars, sumsBy, total, type Group, type Sum } from "./sums";

const everyMs = 5_000;
const groups: [Group, string][] = [["model", "Model"], ["sandboxId", "Sandbox"], ["owner", "Owner"], ["day", "Day"]];
const spans: [number, string][] = [[1, "Today"], [7, "7 days"], [30, "30 days"], [92, "92 days"]];

const tokens = (value: bigint) => value.toLocaleString("en");
const price = (nanos: bigint | undefined) => (nanos === undefined ? "–" : dollars(nanos * 1_000_000n, 2));

const modelColumns: Column<Model>[] = [
  { title: "Model", cell: (each) => <strong><Foreign text={each.name} /></strong> },
  { title: "Format", cell: (each) => <span class="badge">{each.kind}</span> },
  { title: "Provider", cell: (each) => <Foreign text={each.provider} /> },
  { title: "There called", cell: (each) => <Foreign text={each.upstream} /> },
  { title: "Input", class: "number", cell: (each) => price(each.inputNanos) },
  { title: "Cache read", class: "number", cell: (each) => price(each.cacheReadNanos) },
  { title: "Cache write", class: "number", cell: (each) => price(each.cacheWriteNanos) },
  { title: "Output", class: "number", cell: (each) => price(each.outputNanos) },
];

function usageColumns(group: Group): Column<Sum>[] {
  const title = groups.find(([id]) => id === group)?.[1] ?? "";
  return [
    { title, cell: (each) => group === "sandboxId"
      ? <a href={href("sandboxes", each.name)}><Foreign mono text={each.name} /></a> : <Foreign text={each.name} /> },
    { title: "Requests", class: "number", cell: (each) => (
      <>{tokens(each.requests)}{each.unsettled > 0n && <div class="muted">{tokens(each.unsettled)} not settled</div>}</>
    ) },
    { title: "Input", class: "number", cell: (each) => tokens(each.input) },
    { title: "Cache read", class: "number", cell: (each) => tokens(each.cacheRead) },
    { title: "Cache write", class: "number", cell: (each) => tokens(each.cacheWrite) },
    { title: "Output", class: "number", cell: (each) => tokens(each.output) },
    { title: "Cost", class: "number", cell: (each) => dollars(each.costNanos) },
  ];
}

function Usage() {
  const group = groups.find(([id]) => id === query.value.get("by"))?.[0] ?? "model";
  const days = Number(query.value.get("days")) || 1;
  const label = query.value.get("label") ?? "";
  const { data, error } = useResource(
    async () => (await client(ModelService).usage({ days, label: label.includes("=") ? label : "" })).rows, [days, label], everyMs);
  const all = data && total("", data);
  const title = all ? `${count(Number(all.requests), "request")}, ${dollars(all.costNanos)}` : "Usage";
  return (
    <Panel title={title} actions={
      <CopyCli command={holt("llm", "usage", "--days", String(days), ...(label.includes("=") ? ["--label", label] : []))} />
    }>
      <div class="panel-body filters">
        <Field label="Time">
          {(id) => (
            <select id={id} value={String(days)} onChange={(event) => setQuery({ days: event.currentTarget.value })}>
              {spans.map(([value, text]) => <option key={value} value={String(value)}>{text}</option>)}
            </select>
          )}
        </Field>
        <Field label="Sum by">
          {(id) => (
            <select id={id} value={group} onChange={(event) => setQuery({ by: event.currentTarget.value })}>
              {groups.map(([value, text]) => <option key={value} value={value}>{text}</option>)}
            </select>
          )}
        </Field>
        <Field label="Label" hint="Only sandboxes that exist">
          {(id, describedBy) => (
            <input id={id} type="search" value={label} placeholder="KEY=VALUE" aria-describedby={describedBy} autocomplete="off" spellcheck={false}
              onInput={(event) => setQuery({ label: event.currentTarget.value })} />
          )}
        </Field>
      </div>
      <List label="Usage of models" columns={usageColumns(group)} rows={data && sumsBy(group, data)} error={data ? null : error}
        rowKey={(each) => each.name} empty={{ icon: "chart", title: "Nothing was used in this time" }} />
    </Panel>
  );
}

export default function ModelsPage() {
  const { data, error } = useResource(() => client(ModelService).list({}), []);
  const date = data?.pricesDate;
  return (
    <>
      <header class="page-head">
        <h1 class="grow">Models</h1>
        <CopyCli command={holt("llm", "models")} />
      </header>
      <Usage />
      <Panel title={data ? count(data.models.length, "model") : "Models"}>
        <List label="Models" columns={modelColumns} rows={data?.models} error={data ? null : error} rowKey={(each) => each.name}
          empty={{ icon: "model", title: "This host has no models", text: "The file of models in holt.conf adds them." }} />
        {date && <div class="panel-foot muted">Prices of <Foreign text={date} />, for a million tokens.</div>}
      </Panel>
    </>
  );
}
