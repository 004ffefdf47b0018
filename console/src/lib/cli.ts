// The holt command that does the same as a page: words quoted so that a shell reads each as one
// argument, whatever a name or a label contains.

const plain = /^[A-Za-z0-9_@%+=:,./-]+$/;
// Control characters, and those that change the direction or the look of the text around them.
const hidden = /[\u0000-\u001f\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/;

function escaped(character: string): string {
  const code = character.codePointAt(0) ?? 0;
  if (code < 0x80) return `\\x${code.toString(16).padStart(2, "0")}`;
  return `\\u${code.toString(16).padStart(4, "0")}`;
}

// $'...' is understood by bash, zsh, ksh and busybox; a pasted newline would run the line before it.
export function quote(word: string): string {
  if (plain.test(word)) return word;
  if (!hidden.test(word)) return `'${word.replaceAll("'", "'\\''")}'`;
  const inside = [...word].map((each) => {
    if (each === "'" || each === "\\") return `\\${each}`;
    return hidden.test(each) ? escaped(each) : each;
  });
  return `$'${inside.join("")}'`;
}

// Absent words are left out: holt("ls", isAll && "--all").
export function holt(...words: (string | false | null | undefined)[]): string {
  const given = words.filter((each): each is string => typeof each === "string");
  return ["holt", ...given.map(quote)].join(" ");
}
