// The four levels: their names, and a chip that says one in words and in colour.
export const levels = ["none", "view", "read", "write"] as const;
export type LevelName = (typeof levels)[number];

export const meanings: Record<LevelName, string> = {
  none: "hidden", view: "seen, not read", read: "read only", write: "writable",
};

export function isLevel(text: string): text is LevelName {
  return (levels as readonly string[]).includes(text);
}

// The level of a rule as text: PATTERN=LEVEL[@PRIORITY].
export function levelOfRule(rule: string): LevelName {
  const found = /=(none|view|read|write)(@-?\d+)?$/.exec(rule)?.[1] ?? "";
  return isLevel(found) ? found : "none";
}

export function Level({ level }: { level: string }) {
  const name = isLevel(level) ? level : "none";
  return <span class={`level level-${name}`} title={meanings[name]}>{name}</span>;
}
