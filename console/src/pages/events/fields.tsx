// The details of an event, or of a line of the audit log.
import { Foreign } from "../../ui/parts";

// Longer texts may have to be scrolled, so the keyboard must reach them.
const mostSeen = 100;

export function Fields({ fields }: { fields: [string, string][] }) {
  return (
    <span class="event-fields">
      {fields.map(([name, text]) => (
        <span key={name} class="event-field" tabIndex={text.length > mostSeen ? 0 : undefined}>
          <span class="muted"><Foreign text={name} />=</span><Foreign text={text} />
        </span>
      ))}
    </span>
  );
}
