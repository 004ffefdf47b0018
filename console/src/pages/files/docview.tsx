// The file that is open: its head with actions, and its contents.
import { Code, ConnectError } from "@connectrpc/connect";
import { useEffect, useState } from "preact/hooks";
import { canWrite } from "../../api/session";
import { bytes, dateTime, plain } from "../../lib/text";
import { Button } from "../../ui/button";
import { Icon } from "../../ui/icons";
import { confirm } from "../../ui/confirm";
import { toast, toastError } from "../../ui/toast";
import { ConflictDialog, type Clash } from "./conflict";
import { decode, toBytes, type Document } from "./document";
import { Editor } from "./editor";
import { keyOf, nameOf } from "./path";
import { HexPreview, TextPreview } from "./preview";
import { Conflict, download, readFile, TooLarge, writeFile, type Condition } from "./transfer";

interface Props {
  sandboxId: string;
  document: Document;
  // Somebody else has written the file since it was opened.
  isStale: boolean;
  onDirty: (isDirty: boolean) => void;
  // Called with the ETag of what was written.
  onSaved: (etag: string) => void;
  // Reads the file again.
  onReload: () => void;
  onRename: () => void;
  onRemove: () => unknown;
}

const mostCompared = 4 * 1024 * 1024;

export function DocumentView(props: Props) {
  const { sandboxId, document } = props;
  const { path, body } = document;
  const [text, setText] = useState(body.kind === "text" ? body.text : "");
  const [saved, setSaved] = useState(body.kind === "text" ? { text: body.text, etag: body.etag } : { text: "", etag: "" });
  const [clash, setClash] = useState<Clash | null>(null);
  const [isEscaped, setEscaped] = useState(false);
  const isDirty = body.kind === "text" && text !== saved.text;

  useEffect(() => {
    setText(body.kind === "text" ? body.text : "");
    setSaved(body.kind === "text" ? { text: body.text, etag: body.etag } : { text: "", etag: "" });
    setClash(null);
  }, [body]);
  useEffect(() => props.onDirty(isDirty), [isDirty]);

  const compare = async () => {
    let theirs: string | null = null;
    let condition: Clash["condition"];
    try {
      const { bytes: read, etag } = await readFile(sandboxId, path, mostCompared);
      theirs = decode(read)?.replace(/\r\n/g, "\n") ?? null;
      condition = { etag };
    } catch (error) {
      if (error instanceof TooLarge) condition = { etag: error.etag };
      else if (ConnectError.from(error).code === Code.NotFound) condition = { isNew: true };
      else return toastError(error);
    }
    setClash({ path: path.text, theirs, isGone: "isNew" in condition, condition, mine: text });
  };
  const write = async (condition: Condition) => {
    if (body.kind !== "text") return;
    try {
      const etag = await writeFile(sandboxId, path, toBytes(text, body.ends), condition).done;
      setSaved({ text, etag });
      setClash(null);
      props.onSaved(etag);
      toast(`Saved ${nameOf(path)}`);
    } catch (error) {
      if (!(error instanceof Conflict)) throw error;
      await compare();
    }
  };
  const save = async () => {
    if (isDirty && canWrite.value) await write({ etag: saved.etag });
  };
  const reload = async () => {
    const isWanted = !isDirty || await confirm({
      title: "Discard the changes?", text: `${plain(path.text)} is read again.`,
      lost: ["What was typed here and is not saved"], action: "Discard",
    });
    if (isWanted) props.onReload();
  };

  return (
    <section class="panel doc" aria-label={plain(path.text)}>
      <header class="doc-head">
        <Icon name="file" />
        <div class="grow doc-title">
          <bdi class="cut doc-name">{plain(path.text)}</bdi>
          <span class="muted cut">
            {bytes(document.entry.size)} · {dateTime(document.entry.modifiedTime)} · {document.entry.mode.toString(8).padStart(4, "0")} {plain(document.entry.owner)}
          </span>
        </div>
        {isDirty && <span class="state warn">not saved</span>}
        {canWrite.value && body.kind === "text" &&
          <Button kind="primary" size="small" disabled={!isDirty} onClick={save}>Save</Button>}
        <Button size="small" icon="refresh" label="Read again" onClick={reload} />
        <Button size="small" icon="download" label="Download" onClick={() => download(sandboxId, path)} />
        {canWrite.value && <Button size="small" onClick={props.onRename}>Rename</Button>}
        {canWrite.value && <Button size="small" icon="trash" label="Remove" onClick={props.onRemove} />}
      </header>
      {props.isStale && (
        <div class="doc-note warn" role="status">
          <Icon name="warning" /><span class="grow">Somebody else has changed this file.</span>
          {isDirty && <Button size="small" onClick={compare}>Compare</Button>}
          <Button size="small" onClick={reload}>Read again</Button>
        </div>
      )}
      <Contents {...props} text={text} isEscaped={isEscaped} onEscaped={setEscaped} onInput={setText} onSave={() => void save().catch(toastError)} />
      {clash && (
        <ConflictDialog key={keyOf(path)} clash={clash} onClose={() => setClash(null)}
          onOverwrite={() => write(clash.condition)}
          onTakeTheirs={() => {
            setClash(null);
            props.onReload();
          }} />
      )}
    </section>
  );
}

interface ContentsProps extends Props {
  text: string;
  isEscaped: boolean;
  onEscaped: (isEscaped: boolean) => void;
  onInput: (text: string) => void;
  onSave: () => void;
}

function Note({ children }: { children: string }) {
  return <div class="doc-note"><Icon name="info" /><span>{children}</span></div>;
}

function Contents({ document, text, isEscaped, onEscaped, onInput, onSave }: ContentsProps) {
  const { body, path } = document;
  const name = plain(nameOf(path));
  if (body.kind === "image") return <div class="doc-image"><img src={body.url} alt={name} /></div>;
  if (body.kind === "other") return <Note>{body.why}</Note>;
  if (body.kind === "hex") return <><Note>{body.why}</Note><HexPreview bytes={body.bytes} label={`Bytes of ${name}`} /></>;
  if (body.kind === "preview") return <><Note>{body.why}</Note><TextPreview text={body.text} label={`Text of ${name}`} /></>;
  const hidden = hiddenCount(text);
  return (
    <>
      {hidden > 0 && (
        <div class="doc-note warn">
          <Icon name="warning" />
          <span class="grow">This file has invisible or direction-changing characters ({hidden.toLocaleString("en")}).</span>
          <Button size="small" pressed={isEscaped} onClick={() => onEscaped(!isEscaped)}>Show them</Button>
        </div>
      )}
      {isEscaped && hidden > 0
        ? <TextPreview text={text} label={`Text of ${name}`} />
        : <Editor text={text} label={`Contents of ${name}`} readOnly={!canWrite.value} onInput={onInput} onSave={onSave} />}
    </>
  );
}

// How many characters plain() would write as an escape, apart from tabs and line ends.
function hiddenCount(text: string): number {
  return text.match(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufff9-\ufffb]|(?!^)\ufeff/g)?.length ?? 0;
}
