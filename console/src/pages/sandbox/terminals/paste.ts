// Text from the clipboard may come from a web page that wants it to run: it is cleaned, and several lines are shown
// before they reach a program that would execute them one by one.

export const LONG_PASTE = 4096;

// Returns the text without control characters other than tab and line ends, so that it cannot end the bracketed paste
// mode by itself, nor press keys.
export function cleanPaste(text: string): string {
  // eslint-disable-next-line no-control-regex
  return text.replace(/[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]/g, "");
}

// Returns why a person should look at the text before it is pasted; null: no reason.
export function pasteConcern(raw: string, isBracketed: boolean): string | null {
  const text = cleanPaste(raw);
  const lines = text.replace(/\r\n?/g, "\n").split("\n").length;
  if (text.length !== raw.length) return "The text has control characters, which are removed.";
  if (lines > 1 && !isBracketed) return `The text has ${lines} lines. The program may run each one at once.`;
  if (text.length > LONG_PASTE) return `The text has ${text.length} characters.`;
  return null;
}
