// A row of links that look like tabs; each has its own address.
import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";

export interface TabLink {
  id: string;
  label: ComponentChildren;
  href: string;
}

export function Tabs({ tabs, current, label }: { tabs: TabLink[]; current: string; label: string }) {
  const row = useRef<HTMLElement>(null);
  // The row scrolls where it is narrow.
  useEffect(() => {
    row.current?.querySelector("[aria-current]")?.scrollIntoView({ block: "nearest", inline: "nearest" });
  }, [current]);
  return (
    <nav class="tabs" ref={row} aria-label={label}>
      {tabs.map((each) => (
        <a key={each.id} href={each.href} class="tab" aria-current={each.id === current ? "page" : undefined}>
          {each.label}
        </a>
      ))}
    </nav>
  );
}
