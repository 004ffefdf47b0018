// The terminals of a sandbox: one tab for each that is open, and a menu of those that can be opened.
import { useEffect, useRef, useState } from "preact/hooks";
import type { Sandbox } from "@gen/sandbox_pb";
import { ShellService } from "@gen/shell_pb";
import { canWrite } from "../../../api/session";
import { client } from "../../../api/transport";
import { holt } from "../../../lib/cli";
import { query, setQuery } from "../../../router";
import { Button } from "../../../ui/button";
import { CopyCli } from "../../../ui/cli";
import { confirm } from "../../../ui/confirm";
import { Empty, Foreign, Loading, Problem } from "../../../ui/parts";
import { useFill } from "../fill";
import { findTerminals, type Found } from "./find";
import { Pane } from "./pane";
import { Rename } from "./rename";
import { freeName, loadTabs, saveTabs, tabKey, tabLabel, withTab, type TerminalTab } from "./store";
import { TabStrip } from "./strip";

const LEAST_HEIGHT = 320;

// The tabs at first: those of the last visit, or the shells that run, and the process that the address names.
async function firstTabs(sandboxId: string): Promise<TerminalTab[]> {
  const wanted = query.peek().get("process");
  let tabs = loadTabs(sandboxId);
  if (!tabs) {
    const found = await findTerminals(sandboxId);
    tabs = found.filter((each) => each.kind === "shell").slice(0, 8).map(({ kind, id }) => ({ kind, id, label: "" }));
  }
  return wanted ? withTab(tabs, { kind: "process", id: wanted, label: "" }) : tabs;
}

function OpenMenu({ sandboxId, tabs, onOpen }: { sandboxId: string; tabs: TerminalTab[]; onOpen(found: Found): void }) {
  const [found, setFound] = useState<Found[] | null>(null);
  const [error, setError] = useState<unknown>(null);
  useEffect(() => {
    findTerminals(sandboxId).then(setFound, setError);
  }, []);
  if (error) return <Problem error={error} />;
  if (!found) return <Loading />;
  const open = new Set(tabs.map(tabKey));
  const others = found.filter((each) => !open.has(`${each.kind}:${each.id}`));
  if (others.length === 0) return <p class="muted terminal-none">No other shell or process has a terminal.</p>;
  return (
    <ul class="terminal-others">
      {others.map((each) => (
        <li key={`${each.kind}:${each.id}`}>
          <button type="button" onClick={() => onOpen(each)}>
            <span class="muted">{each.kind}</span> <Foreign text={each.text} mono />
          </button>
        </li>
      ))}
    </ul>
  );
}

export default function Terminals({ sandbox }: { sandbox: Sandbox }) {
  const [tabs, setTabs] = useState<TerminalTab[] | null>(null);
  const [current, setCurrent] = useState("");
  const [error, setError] = useState<unknown>(null);
  const [isMenuOpen, setMenuOpen] = useState(false);
  const [renamed, setRenamed] = useState<TerminalTab | null>(null);
  const strip = useRef<HTMLDivElement>(null);
  const section = useRef<HTMLElement>(null);
  const mayWrite = canWrite.value;
  useFill(section, LEAST_HEIGHT);

  useEffect(() => {
    firstTabs(sandbox.id).then((first) => {
      const wanted = query.peek().get("process");
      setTabs(first);
      setCurrent(wanted ? `process:${wanted}` : first[0] ? tabKey(first[0]) : "");
      if (!wanted) return;
      saveTabs(sandbox.id, first);
      setQuery({ process: null });
    }, setError);
  }, []);

  const change = (next: TerminalTab[], shown: string) => {
    setTabs(next);
    saveTabs(sandbox.id, next);
    setCurrent(shown);
    setMenuOpen(false);
  };
  const open = (tab: TerminalTab) => change(withTab(tabs ?? [], tab), tabKey(tab));

  const openNew = async () => {
    const { shells } = await client(ShellService).list({ sandboxId: sandbox.id });
    const taken = new Set([...shells.map((each) => each.name),
      ...(tabs ?? []).filter((each) => each.kind === "shell").map((each) => each.id)]);
    open({ kind: "shell", id: freeName(taken), label: "" });
  };

  const close = (tab: TerminalTab) => {
    const index = tabs!.indexOf(tab);
    const next = tabs!.filter((each) => each !== tab);
    const neighbour = next[Math.min(index, next.length - 1)];
    change(next, tabKey(tab) === current ? (neighbour ? tabKey(neighbour) : "") : current);
  };

  const end = async (tab: TerminalTab) => {
    const isWanted = await confirm({
      title: `End shell ${tabLabel(tab)}?`,
      text: "Its processes are killed, and the tab is closed.",
      lost: ["directory, variables and functions of the shell", "programs that run in it, also in the background"],
      action: "End shell",
    });
    if (!isWanted) return;
    await client(ShellService).remove({ sandboxId: sandbox.id, name: tab.id });
    close(tab);
  };

  const rename = (label: string) => {
    const next = tabs!.map((each) => (each === renamed ? { ...each, label } : each));
    setTabs(next);
    saveTabs(sandbox.id, next);
    setRenamed(null);
  };

  if (error) return <Problem error={error} />;
  if (!tabs) return <Loading />;
  const shown = tabs.find((each) => tabKey(each) === current);
  return (
    <section class="terminals panel" aria-label="Terminals" ref={section}>
      <div class="terminal-bar">
        <TabStrip box={strip} tabs={tabs} current={current} onShow={setCurrent} onClose={close} onRename={setRenamed} />
        {mayWrite && <Button kind="quiet" size="small" icon="plus" label="New shell" onClick={openNew} />}
        <span class="grow" />
        {shown && <CopyCli small command={shown.kind === "shell"
          ? holt("shell", sandbox.id, ...(shown.id === "main" ? [] : ["--name", shown.id])) : holt("attach", sandbox.id, shown.id)} />}
        {mayWrite && shown?.kind === "shell" &&
          <Button kind="quiet" size="small" icon="trash" label="End shell" onClick={() => end(shown)} />}
        <Button kind="quiet" size="small" icon="menu" label="Other terminals" pressed={isMenuOpen}
          onClick={() => setMenuOpen(!isMenuOpen)} />
      </div>
      {isMenuOpen && <OpenMenu sandboxId={sandbox.id} tabs={tabs} onOpen={({ kind, id }) => open({ kind, id, label: "" })} />}
      {tabs.length === 0 && (
        <Empty icon="terminal" title="No terminal is open">
          {mayWrite
            ? <Button kind="primary" icon="plus" onClick={openNew}>Open a shell</Button>
            : "A read-only session can watch terminals that others have opened."}
        </Empty>
      )}
      {tabs.map((each) => (
        <Pane key={tabKey(each)} sandboxId={sandbox.id} isSandboxActive={sandbox.state === "active"} tab={each}
          isActive={tabKey(each) === current} mayWrite={mayWrite}
          onLeave={() => strip.current?.querySelector<HTMLElement>("[aria-current]")?.focus()} />
      ))}
      {renamed && <Rename tab={renamed} onDone={rename} onClose={() => setRenamed(null)} />}
    </section>
  );
}
