// The letter of a change, as git has it.
const letters: Record<string, string> = { added: "A", modified: "M", deleted: "D", renamed: "R" };

export function Kind({ kind }: { kind: string }) {
  return <span class={`kind ${kind}`} title={kind}><span aria-hidden="true">{letters[kind] ?? "?"}</span><span class="hidden-text">{kind}</span></span>;
}
