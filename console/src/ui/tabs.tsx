// A row of links that look like tabs; each has its own address.
import type { ComponentChildren } from "preact";

export interface TabLink {
  id: string;
  label: ComponentChildren;
  href: string;
}

export function Tabs({ tabs, current, label }: { tabs: TabLink[]; current: string; label: string }) {
  return (
    <nav class="tabs" aria-label={label}>
      {tabs.map((each) => (
        <a key={each.id} href={each.href} class="tab" aria-current={each.id === current ? "page" : undefined}>
          {each.label}
        </a>
      ))}
    </nav>
  );
}
