// The uploads of this page, with their progress.
import { bytes, count, plain } from "../../lib/text";
import { Button } from "../../ui/button";
import { Icon } from "../../ui/icons";
import { Panel } from "../../ui/parts";
import { nameOf } from "./path";
import { cancelTransfer, clearTransfers, isSending, transfers, type Transfer } from "./uploads";

const shown = 50;

function Progress({ transfer }: { transfer: Transfer }) {
  const { file, sent, state } = transfer;
  const name = plain(nameOf(transfer.path));
  const isActive = state === "waiting" || state === "sending";
  return (
    <li class={`upload ${state}`}>
      <bdi class="cut upload-name" title={plain(transfer.path.text)}>{name}</bdi>
      {isActive
        ? <progress max={Math.max(file.size, 1)} value={sent} aria-label={`Upload of ${name}`} />
        : <span class="upload-state">{state === "done" && <Icon name="check" />}{state === "failed" ? plain(transfer.error) : state}</span>}
      <span class="muted upload-size">{isActive ? `${bytes(sent)} of ${bytes(file.size)}` : bytes(file.size)}</span>
      {isActive && <Button kind="quiet" size="small" icon="close" label={`Cancel the upload of ${name}`} onClick={() => cancelTransfer(transfer)} />}
    </li>
  );
}

export function Uploads() {
  const all = transfers.value;
  if (all.length === 0) return null;
  const done = all.filter((each) => each.state === "done").length;
  const active = all.filter((each) => each.state !== "done");
  const list = [...active, ...all.filter((each) => each.state === "done")].slice(0, shown);
  return (
    <Panel class="uploads" title={`Uploads: ${done} of ${count(all.length, "file")} done`}
      actions={<Button size="small" kind="quiet" disabled={isSending.value && done === 0} onClick={clearTransfers}>Clear</Button>}>
      <ul>{list.map((each) => <Progress key={each.id} transfer={each} />)}</ul>
      {all.length > shown && <div class="hint upload-rest">and {count(all.length - shown, "more file")}</div>}
    </Panel>
  );
}
