// Two states compared: the paths that differ, and the lines of the selected one.
import { useEffect, useMemo, useState } from "preact/hooks";
import { bytes, plain } from "../../lib/text";
import { Button } from "../../ui/button";
import { Empty, Loading, Problem } from "../../ui/parts";
import { Kind } from "../diff/kind";
import { DiffLines } from "../diff/lines";
import { parsePatch } from "../diff/patch";
import { readChanges, readPatch, type Change, type Changes, type Comparison, type Patch } from "./changes";
import { FileList } from "./filelist";

const mostLines = 100_000;

function isAborted(signal: AbortSignal, action: (error: unknown) => void) {
  return (error: unknown) => {
    if (!signal.aborted) action(error);
  };
}

// version: grows when the files may have changed; the comparison is made again.
export function DiffView({ of, version }: { of: Comparison; version: number }) {
  const [changes, setChanges] = useState<Changes | null>(null);
  const [error, setError] = useState<unknown>(null);
  const [selected, setSelected] = useState<Change | null>(null);
  const key = JSON.stringify(of);
  useEffect(() => {
    setChanges(null);
    setSelected(null);
  }, [key]);
  useEffect(() => {
    const ending = new AbortController();
    setError(null);
    readChanges(of, ending.signal).then((found) => {
      if (ending.signal.aborted) return;
      setChanges(found);
      setSelected((before) => found.list.find((each) => each.path === before?.path) ?? found.list[0] ?? null);
    }, isAborted(ending.signal, setError));
    return () => ending.abort();
  }, [key, version]);
  if (error) return <Problem error={error} />;
  if (!changes) return <Loading what="Comparing" />;
  if (changes.list.length === 0) return <Empty icon="check" title="No differences">The files of both states are equal.</Empty>;
  return (
    <div class="diff">
      <FileList changes={changes} selected={selected} onSelect={setSelected} />
      {selected && <FileDiff of={of} change={selected} key={selected.path} />}
    </div>
  );
}

let wasSplit = false;

function FileDiff({ of, change }: { of: Comparison; change: Change }) {
  const [patch, setPatch] = useState<Patch | null>(null);
  const [error, setError] = useState<unknown>(null);
  const [isSplit, setSplit] = useState(wasSplit);
  const hasText = change.type === "file";
  useEffect(() => {
    if (!hasText) return;
    const ending = new AbortController();
    setError(null);
    readPatch(of, change, ending.signal).then((found) => ending.signal.aborted || setPatch(found), isAborted(ending.signal, setError));
    return () => ending.abort();
  }, [change]);
  const parsed = useMemo(() => (patch ? parsePatch(patch.text, mostLines) : null), [patch]);
  return (
    <section class="file-diff" aria-label={`Changes of ${plain(change.path)}`}>
      <header class="file-diff-head">
        <Kind kind={change.kind} />
        <bdi class="cut grow mono">{change.oldPath ? `${plain(change.oldPath)} → ` : ""}{plain(change.path)}</bdi>
        {patch && !patch.isBinary && (
          <span class="change-summary">
            {patch.added > 0 && <span class="sum added">+{patch.added.toLocaleString("en")}</span>}
            {patch.deleted > 0 && <span class="sum deleted">−{patch.deleted.toLocaleString("en")}</span>}
          </span>
        )}
        <Button size="small" pressed={isSplit} onClick={() => {
          wasSplit = !isSplit;
          setSplit(!isSplit);
        }}>Side by side</Button>
      </header>
      {error !== null && <Problem error={error} />}
      {!hasText && <Empty icon="info" title={`A ${plain(change.type)} was ${plain(change.kind)}`} />}
      {hasText && !patch && error === null && <Loading what="Loading the lines" />}
      {patch && parsed && <PatchBody change={change} patch={patch} lines={parsed.lines} isCut={patch.isCut || parsed.isCut} isSplit={isSplit} />}
    </section>
  );
}

function PatchBody({ change, patch, lines, isCut, isSplit }: {
  change: Change; patch: Patch; lines: ReturnType<typeof parsePatch>["lines"]; isCut: boolean; isSplit: boolean;
}) {
  if (patch.isBinary)
    return <Empty icon="file" title="The contents are not compared by lines">They are binary or larger than 1 MiB: {bytes(change.oldSize)} before, {bytes(change.size)} after.</Empty>;
  if (lines.length === 0) {
    const title = change.kind === "renamed" ? "Only the name has changed" : change.size === 0n && change.oldSize === 0n ? "The file is empty" : "Only the mode or the owner has changed";
    return <Empty icon="file" title={title} />;
  }
  return (
    <>
      <DiffLines lines={lines} isSplit={isSplit} label={`Lines of ${plain(change.path)}`} />
      {isCut && <div class="hint changes-foot">The patch is longer; this is its start.</div>}
    </>
  );
}
