const LONGEST = 60;

// Returns the title that a program has set for its terminal as harmless text: one short line without characters that
// are invisible or change the direction.
export function cleanTitle(title: string): string {
  // eslint-disable-next-line no-control-regex
  const clean = title.replace(/[\x00-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]/g, " ")
    .replace(/\s+/g, " ").trim();
  const characters = Array.from(clean);
  return characters.length > LONGEST ? `${characters.slice(0, LONGEST).join("")}\u2026` : clean;
}
