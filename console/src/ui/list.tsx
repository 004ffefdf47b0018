// A table of a few hundred rows at most: plain HTML that wraps to cards on a phone.
import type { ComponentChildren } from "preact";
import { Empty, Loading, Problem } from "./parts";
import type { IconName } from "./icons";

export interface Column<T> {
  title: string;
  cell: (row: T) => ComponentChildren;
  class?: string; // "number", "cut", "actions"
}

interface Props<T> {
  label: string;
  columns: Column<T>[];
  rows: T[] | undefined;
  rowKey: (row: T) => string;
  error?: unknown;
  empty: { icon?: IconName; title: string; text?: ComponentChildren };
}

export function List<T>({ label, columns, rows, rowKey, error, empty }: Props<T>) {
  if (error) return <Problem error={error} />;
  if (!rows) return <Loading />;
  if (rows.length === 0) return <Empty {...(empty.icon ? { icon: empty.icon } : {})} title={empty.title}>{empty.text}</Empty>;
  return (
    <div class="records-place" role="region" aria-label={label} tabIndex={0}>
      <table class="records" aria-label={label}>
        <thead>
          <tr>
            {columns.map((each) => (
              <th key={each.title} scope="col" class={each.class}>
                {each.class === "actions" ? <span class="hidden-text">{each.title}</span> : each.title}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={rowKey(row)}>
              {columns.map((each) => (
                <td key={each.title} class={each.class} data-title={each.title}>{each.cell(row)}</td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

// Names of properties beside their values.
export function Facts({ facts }: { facts: [string, ComponentChildren][] }) {
  return (
    <dl class="properties">
      {facts.map(([name, value]) => <div class="property" key={name}><dt>{name}</dt><dd>{value}</dd></div>)}
    </dl>
  );
}
