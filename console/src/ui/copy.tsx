// Puts a text into the clipboard.
import { Button } from "./button";
import { copyText } from "./cli";

export function Copy({ text, label }: { text: string; label: string }) {
  return (
    <Button kind="quiet" size="small" icon="copy" label={label} onClick={() => copyText(text, "Copied")} />
  );
}
