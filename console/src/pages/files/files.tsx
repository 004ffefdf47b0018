// The tab with the files of a sandbox: tree, open file, uploads.
import { useComputed, useSignalEffect } from "@preact/signals";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { TabProps } from "..";
import { epoch } from "../../api/connection";
import { canWrite } from "../../api/session";
import { holt } from "../../lib/cli";
import { plain } from "../../lib/text";
import { query, setQuery } from "../../router";
import { Button } from "../../ui/button";
import { CopyCli } from "../../ui/cli";
import { confirm } from "../../ui/confirm";
import { Empty, Loading, Problem } from "../../ui/parts";
import { toast, toastError } from "../../ui/toast";
import { MoveDialog, NewDialog } from "./dialogs";
import { closeDocument, openDocument, type Document } from "./document";
import { DocumentView } from "./docview";
import { keyOf, nameOf, parentOf, root, textPath, type FilePath } from "./path";
import { removePath } from "./remove";
import { download } from "./transfer";
import { Tree } from "./tree";
import { TreeView } from "./treeview";
import { filesOf, upload } from "./uploads";
import { Uploads } from "./uploadview";
import { watcher } from "./watch";

type Ask = { kind: "file" | "directory"; dir: FilePath } | { kind: "move"; path: FilePath };

export default function Files({ sandbox }: TabProps) {
  if (sandbox.state !== "active") {
    return (
      <Empty icon="folder" title={`The files of a ${plain(sandbox.state)} sandbox cannot be read`}>
        {sandbox.state === "paused" ? "Resume it" : "Start it"} to see them. Its turns can be compared in any state.
      </Empty>
    );
  }
  return <FilesOf key={sandbox.id} id={sandbox.id} />;
}

function FilesOf({ id }: { id: string }) {
  const tree = useMemo(() => new Tree(id), [id]);
  const [selected, setSelected] = useState<{ path: FilePath; type: string }>({ path: textPath("/workspace"), type: "directory" });
  const [document, setDocument] = useState<Document | null>(null);
  const [error, setError] = useState<unknown>(null);
  const [isStale, setStale] = useState(false);
  const [isDropping, setDropping] = useState(false);
  const [target, setTarget] = useState<FilePath | null>(null);
  const [ask, setAsk] = useState<Ask | null>(null);
  const dirty = useRef(false);
  const current = useRef<Document | null>(null);
  const loading = useRef<AbortController | null>(null);
  const picker = useRef<HTMLInputElement>(null);
  const isOpening = useRef(false);
  const savedEtag = useRef("");
  // The path that was opened last, which the address names.
  const asked = useRef("");
  current.current = document;

  // isUnasked: somebody has written the file. What was typed meanwhile stays, and so does what this
  // page has written itself.
  const show = async (path: FilePath, isUnasked = false) => {
    loading.current?.abort();
    const aborter = new AbortController();
    loading.current = aborter;
    isOpening.current = true;
    try {
      const next = await openDocument(id, path, aborter.signal);
      if (aborter.signal.aborted) return closeDocument(next);
      const before = current.current;
      const isOwn = next.body.kind === "text" && next.body.etag === savedEtag.current;
      if (isUnasked && before && isOwn) return setDocument({ ...before, entry: next.entry });
      if (isUnasked && dirty.current) return setStale(true);
      if (before) closeDocument(before);
      setDocument(next);
      setStale(false);
      setError(null);
    } catch (thrown) {
      if (aborter.signal.aborted) return;
      setDocument(null);
      setError(thrown);
    } finally {
      if (loading.current === aborter) isOpening.current = false;
    }
  };
  const mayLeave = async () => !dirty.current || await confirm({
    title: "Leave without saving?", text: "The open file was changed here and is not saved.",
    lost: [`What was typed into ${plain(nameOf((current.current as Document).path))}`], action: "Discard",
  });
  const select = async (path: FilePath, type: string) => {
    if (type === "directory") return setSelected({ path, type });
    if (current.current && keyOf(current.current.path) === keyOf(path)) return setSelected({ path, type });
    if (!(await mayLeave())) return;
    dirty.current = false;
    setSelected({ path, type });
    asked.current = path.text;
    if (path.raw.length === 0) setQuery({ path: path.text });
    await show(path);
  };

  // Somebody else may have written the open file: it is read again if nothing was typed.
  const check = async () => {
    const open = current.current;
    if (!open || isOpening.current) return;
    const found = tree.find(open.path);
    if (!found || found.type === "link") return;
    const isSame = found.modifiedTime?.seconds === open.entry.modifiedTime?.seconds &&
      found.modifiedTime?.nanos === open.entry.modifiedTime?.nanos && found.inode === open.entry.inode;
    if (isSame) return;
    await show(open.path, true);
  };

  useEffect(() => {
    tree.start();
    const leave = (event: BeforeUnloadEvent) => dirty.current && event.preventDefault();
    addEventListener("beforeunload", leave);
    return () => {
      removeEventListener("beforeunload", leave);
      loading.current?.abort();
      if (current.current) closeDocument(current.current);
    };
  }, [tree]);
  const wanted = query.value.get("path");
  useEffect(() => {
    if (!wanted?.startsWith("/") || wanted === asked.current) return;
    void tree.reveal(textPath(wanted));
    void select(textPath(wanted), "file");
  }, [tree, wanted]);
  useEffect(() => {
    if (epoch.value > 0) void tree.refreshAll();
  }, [epoch.value]);
  const watch = useMemo(() => watcher(id, (dirs) => {
    void Promise.all(dirs.map((each) => tree.refresh(each))).then(check).catch(toastError);
  }), [tree]);
  const dirs = useComputed(() => tree.open.value);
  useSignalEffect(() => watch.set(dirs.value));
  useEffect(() => () => watch.stop(), [watch]);

  const dir = selected.type === "directory" ? selected.path : parentOf(selected.path);
  const send = (files: { file: File; path: string }[], to: FilePath) =>
    upload(id, to, files, (changed) => void tree.refresh(changed)).catch((thrown: unknown) => toastError(thrown, "Cannot upload"));
  const drop = async (event: DragEvent) => {
    event.preventDefault();
    setDropping(false);
    const to = target ?? dir;
    setTarget(null);
    if (event.dataTransfer) await send(await filesOf(event.dataTransfer), to);
  };
  const remove = async (path: FilePath) => {
    if (!(await removePath(id, path))) return;
    toast(`Removed ${nameOf(path)}`);
    if (document && keyOf(document.path) === keyOf(path)) {
      dirty.current = false;
      closeDocument(document);
      setDocument(null);
      setQuery({ path: null });
    }
    setSelected({ path: parentOf(path), type: "directory" });
    await tree.refresh(parentOf(path));
  };
  const made = async (path: FilePath) => {
    const done = ask;
    setAsk(null);
    await tree.refreshAll();
    if (done?.kind === "file" || (done?.kind === "move" && document && keyOf(done.path) === keyOf(document.path))) {
      dirty.current = false;
      await select(path, "file");
    } else {
      setSelected({ path, type: "directory" });
    }
  };

  const canDrop = canWrite.value;
  return (
    <div class={`files ${isDropping ? "dropping" : ""}`}
      onDragOver={(event) => {
        if (!canDrop || !event.dataTransfer?.types.includes("Files")) return;
        event.preventDefault();
        setDropping(true);
      }}
      onDragLeave={(event) => {
        if (event.currentTarget.contains(event.relatedTarget as Node | null)) return;
        setDropping(false);
        setTarget(null);
      }}
      onDrop={(event) => canDrop && void drop(event)}>
      <section class="panel files-side" aria-label="Tree">
        <header class="files-tools">
          {canWrite.value && <Button size="small" icon="plus" label="New file" onClick={() => setAsk({ kind: "file", dir })} />}
          {canWrite.value && <Button size="small" icon="folder" label="New directory" onClick={() => setAsk({ kind: "directory", dir })} />}
          {canWrite.value && <Button size="small" icon="upload" label="Upload files" onClick={() => picker.current?.click()} />}
          <span class="grow" />
          {selected.type === "directory" && selected.path.text !== "/" && (
            <>
              <Button size="small" kind="quiet" icon="download" label="Download the directory as .tar" onClick={() => download(id, selected.path)} />
              {canWrite.value && <Button size="small" kind="quiet" icon="trash" label="Remove the directory" onClick={() => remove(selected.path)} />}
            </>
          )}
          {selected.path.raw.length === 0 && <CopyCli command={holt("cp", `${id}:${selected.path.text}`, ".")} small />}
          <Button size="small" kind="quiet" icon="refresh" label="Refresh" onClick={() => tree.refreshAll()} />
          <input ref={picker} type="file" multiple hidden aria-label="Files to upload" onChange={(event) => {
            const files = [...(event.currentTarget.files ?? [])].map((file) => ({ file, path: file.name }));
            event.currentTarget.value = "";
            void send(files, dir);
          }} />
        </header>
        <TreeView tree={tree} selected={keyOf(selected.path)} onSelect={(path, type) => void select(path, type)}
          target={target ? keyOf(target) : ""} onTarget={(path) => canDrop && setTarget(path)} />
        <footer class="files-foot hint cut">
          {isDropping ? <>Upload into {plain((target ?? dir).text)}</> : canDrop ? <>New files go to {plain((dir ?? root).text)}</> : "Read-only"}
        </footer>
      </section>
      <div class="files-main">
        {document
          ? <DocumentView key={keyOf(document.path)} sandboxId={id} document={document} isStale={isStale}
              onDirty={(value) => (dirty.current = value)} onSaved={(etag) => {
                savedEtag.current = etag;
                setStale(false);
              }} onReload={() => {
                dirty.current = false;
                void show(document.path);
              }}
              onRename={() => setAsk({ kind: "move", path: document.path })} onRemove={() => remove(document.path)} />
          : error ? <div class="panel doc"><Problem error={error} /></div>
          : isOpening.current ? <Loading />
          : <div class="panel doc"><Empty icon="file" title="No file is open">{canDrop ? "Select one in the tree, or drop files here to upload them." : "Select one in the tree."}</Empty></div>}
        <Uploads />
      </div>
      {ask && ask.kind !== "move" && <NewDialog sandboxId={id} dir={ask.dir} kind={ask.kind} onClose={() => setAsk(null)} onDone={(path) => void made(path)} />}
      {ask?.kind === "move" && <MoveDialog sandboxId={id} path={ask.path} onClose={() => setAsk(null)} onDone={(path) => void made(path)} />}
    </div>
  );
}
