// A plain editor: a textarea with line numbers.
import { useEffect, useMemo, useRef } from "preact/hooks";

interface Props {
  text: string;
  label: string;
  readOnly: boolean;
  onInput: (text: string) => void;
  onSave: () => void;
}

function numbers(text: string): string {
  let count = 1;
  for (let at = text.indexOf("\n"); at >= 0; at = text.indexOf("\n", at + 1)) count++;
  let result = "1";
  for (let i = 2; i <= count; i++) result += `\n${i}`;
  return result;
}

export function Editor({ text, label, readOnly, onInput, onSave }: Props) {
  const area = useRef<HTMLTextAreaElement>(null);
  const gutter = useRef<HTMLPreElement>(null);
  const lines = useMemo(() => numbers(text), [text]);
  // The value is set only when it differs, so that the cursor and the undo history stay.
  useEffect(() => {
    if (area.current && area.current.value !== text) area.current.value = text;
  }, [text]);
  const key = (event: KeyboardEvent) => {
    if ((event.ctrlKey || event.metaKey) && event.key === "s") {
      event.preventDefault();
      onSave();
    }
  };
  return (
    <div class="editor">
      <div class="editor-gutter" aria-hidden="true"><pre ref={gutter}>{lines}</pre></div>
      <textarea ref={area} class="editor-area" aria-label={label} readOnly={readOnly} spellcheck={false} wrap="off"
        autocomplete="off" autocapitalize="off" dir="ltr" onKeyDown={key}
        onInput={(event) => onInput(event.currentTarget.value)}
        onScroll={(event) => {
          if (gutter.current) gutter.current.style.transform = `translateY(${-event.currentTarget.scrollTop}px)`;
        }} />
    </div>
  );
}
