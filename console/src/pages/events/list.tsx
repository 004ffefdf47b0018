// The list of events with its filters; used by the page Events and by the tab of a sandbox.
import type { Event } from "@gen/event_pb";
import { useState } from "preact/hooks";
import { holt } from "../../lib/cli";
import { count, millis } from "../../lib/text";
import { href, query, setQuery } from "../../router";
import { Button } from "../../ui/button";
import { CopyCli } from "../../ui/cli";
import { List, type Column } from "../../ui/list";
import { Field, Foreign, Panel } from "../../ui/parts";
import { useFeed } from "./feed";
import { Fields } from "./fields";

const kinds: [string, string][] = [
  ["", "All types"], ["sandbox.*", "Sandboxes"], ["process.*", "Processes"], ["turn.*,snapshot.*", "Turns and snapshots"],
  ["tool.*", "Tools"], ["shell.*", "Shells"], ["port.*", "Ports"], ["template.*", "Templates"], ["volume.*", "Volumes"],
  ["token.*,owner.*,console.*", "Access"], ["daemon.*,storage.*,resource.*,registry.*,audit.*", "Host"],
];
const mostShown = 500;

const clock = new Intl.DateTimeFormat(undefined, {
  month: "short", day: "2-digit", hour: "2-digit", minute: "2-digit", second: "2-digit", fractionalSecondDigits: 3,
  hourCycle: "h23",
});

function fieldsOf(event: Event): [string, string][] {
  return Object.entries(event.fields ?? {}).map(([name, value]) =>
    [name, typeof value === "string" ? value : JSON.stringify(value) ?? ""]);
}

function toneOf(type: string): string {
  if (/\.(failed|lost|exhausted|oom|low|full|degraded|torn|incomplete)$/.test(type)) return "bad";
  if (/\.(destroyed|removed|stopped|expired|stopping|pruned)$/.test(type)) return "warn";
  return /\.(created|started|completed|ready|ok|resumed)$/.test(type) ? "good" : "";
}

function columnsFor(isOfOneSandbox: boolean): Column<Event>[] {
  const sandbox: Column<Event> = {
    title: "Sandbox",
    cell: (each) => each.sandboxId
      ? <a href={href("sandboxes", each.sandboxId)}><Foreign text={each.sandboxName || each.sandboxId} /></a> : "",
  };
  return [
    { title: "Number", class: "number muted", cell: (each) => each.seq.toString() },
    { title: "Time", class: "time mono", cell: (each) => clock.format(millis(each.time)) },
    { title: "Type", class: "time", cell: (each) => <span class={`event-type ${toneOf(each.type)}`}><Foreign text={each.type} /></span> },
    ...(isOfOneSandbox ? [] : [sandbox]),
    { title: "Details", class: "wide", cell: (each) => <Fields fields={fieldsOf(each)} /> },
  ];
}

function includes(event: Event, words: string): boolean {
  const text = `${event.type} ${event.sandboxName} ${event.sandboxId} ${event.owner} ${JSON.stringify(event.fields ?? {})}`;
  return text.toLowerCase().includes(words.toLowerCase());
}

export function EventList({ sandboxId }: { sandboxId: string }) {
  const kind = query.value.get("type") ?? "";
  const words = query.value.get("q") ?? "";
  const [isPaused, setPaused] = useState(false);
  const types = kind ? kind.split(",") : [];
  const feed = useFeed(sandboxId, types, isPaused);
  const found = words ? feed.events.filter((each) => includes(each, words)) : feed.events;
  const command = holt("events", "-f", ...(sandboxId ? ["--sandbox", sandboxId] : []), ...types.flatMap((each) => ["--type", each]));
  const rows = feed.isOpen || feed.error ? found.slice(0, mostShown) : undefined;
  return (
    <Panel title={<span aria-live="off">{count(found.length, "event")}{feed.lost > 0 && ` (${feed.lost} lost)`}</span>}
      actions={
        <>
          <span class={`state ${isPaused ? "idle" : "good"}`}><span class="dot" aria-hidden="true" />{isPaused ? "paused" : "live"}</span>
          <Button size="small" icon={isPaused ? "play" : "pause"} onClick={() => setPaused(!isPaused)}>
            {isPaused ? "Continue" : "Pause"}
          </Button>
          <CopyCli command={command} />
        </>
      }>
      <div class="panel-body filters">
        <Field label="Type">
          {(id) => (
            <select id={id} value={kind} onChange={(event) => setQuery({ type: event.currentTarget.value })}>
              {kinds.map(([value, label]) => <option key={value} value={value}>{label}</option>)}
            </select>
          )}
        </Field>
        <Field label="Search">
          {(id) => (
            <input id={id} type="search" value={words} placeholder="A word of the event"
              onInput={(event) => setQuery({ q: event.currentTarget.value })} />
          )}
        </Field>
      </div>
      <List label="Events, newest first" columns={columnsFor(sandboxId !== "")} rows={rows}
        rowKey={(each) => each.seq.toString()} error={feed.error}
        empty={{ icon: "event", title: "No events", text: words ? "No event has this word." : "New ones appear here." }} />
      {found.length > mostShown && <div class="panel-foot muted">The {mostShown} newest of {found.length.toLocaleString("en")} are shown.</div>}
    </Panel>
  );
}
