// Puts a text into the clipboard.
import { Button } from "./button";
import { toast } from "./toast";

export function Copy({ text, label }: { text: string; label: string }) {
  return (
    <Button kind="quiet" size="small" icon="copy" label={label} onClick={async () => {
      await navigator.clipboard.writeText(text);
      toast("Copied");
    }} />
  );
}
