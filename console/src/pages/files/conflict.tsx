// Shows what somebody else has done to a file before it is saved over.
import { useMemo } from "preact/hooks";
import { plain } from "../../lib/text";
import { Button } from "../../ui/button";
import { Dialog } from "../../ui/dialog";
import { DiffLines } from "../diff/lines";
import { compareTexts } from "../diff/patch";
import type { Condition } from "./transfer";

export interface Clash {
  path: string;
  // What is there now; null: not text that can be shown here, or gone.
  theirs: string | null;
  isGone: boolean;
  // What was compared, and so the only thing that may be overwritten.
  condition: NonNullable<Condition>;
  mine: string;
}

interface Props {
  clash: Clash;
  onOverwrite: () => unknown;
  onTakeTheirs: () => unknown;
  onClose: () => void;
}

export function ConflictDialog({ clash, onOverwrite, onTakeTheirs, onClose }: Props) {
  const lines = useMemo(() => (clash.theirs === null ? [] : compareTexts(clash.theirs, clash.mine)), [clash]);
  const deleted = lines.filter((each) => each.kind === "deleted").length;
  return (
    <Dialog wide title={clash.isGone ? "The file was removed meanwhile" : "The file was changed meanwhile"} onClose={onClose}
      actions={
        <>
          <Button onClick={onClose}>Keep editing</Button>
          {clash.theirs !== null && <Button onClick={onTakeTheirs}>Discard my changes</Button>}
          <Button kind="danger" onClick={onOverwrite}>{clash.isGone ? "Create it again" : "Overwrite"}</Button>
        </>
      }>
      <p>
        {clash.isGone
          ? `${plain(clash.path)} was removed or renamed after it was opened here.`
          : `Somebody else has written ${plain(clash.path)} after it was opened here. Overwriting it loses their version` +
            (clash.theirs === null ? "; it is not text, so it cannot be compared here." : `: the ${deleted === 1 ? "line" : `${deleted} lines`} marked − below.`)}
      </p>
      {clash.theirs !== null && (
        lines.length > 0
          ? (
            <figure class="conflict-diff" aria-label="Comparison">
              <figcaption class="hint">− on disk now, + in this editor</figcaption>
              <DiffLines lines={lines} isSplit={false} label="Their version compared with mine" />
            </figure>
          ) : <p class="muted">Their version is equal to mine.</p>
      )}
    </Dialog>
  );
}
