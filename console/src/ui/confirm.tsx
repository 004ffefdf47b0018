// Asks once before something is lost, and says what: await confirm({ ... }) is true if it is wanted.
import { signal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { Button } from "./button";
import { Dialog } from "./dialog";

interface Question {
  title: string;
  // What happens, in a sentence.
  text: ComponentChildren;
  // One line for each thing that will be lost.
  lost?: ComponentChildren[];
  // The verb: "Destroy 3 sandboxes".
  action: string;
  isDanger?: boolean;
}

const open = signal<(Question & { answer: (isWanted: boolean) => void }) | null>(null);

export function confirm(question: Question): Promise<boolean> {
  open.peek()?.answer(false);
  return new Promise((resolve) => {
    open.value = {
      ...question,
      answer: (isWanted) => {
        open.value = null;
        resolve(isWanted);
      },
    };
  });
}

export function ConfirmHost() {
  const question = open.value;
  if (!question) return null;
  // Enter alone must not lose anything.
  const isDanger = question.isDanger !== false;
  return (
    <Dialog title={question.title} onClose={() => question.answer(false)}
      actions={
        <>
          <Button autoFocus={isDanger} onClick={() => question.answer(false)}>Cancel</Button>
          <Button kind={isDanger ? "danger" : "primary"} autoFocus={!isDanger}
            onClick={() => question.answer(true)}>{question.action}</Button>
        </>
      }>
      <p>{question.text}</p>
      {question.lost && question.lost.length > 0 && (
        <div class="lost">
          <div class="lost-title">Will be lost</div>
          <ul>{question.lost.map((each, i) => <li key={i}>{each}</li>)}</ul>
        </div>
      )}
    </Dialog>
  );
}
