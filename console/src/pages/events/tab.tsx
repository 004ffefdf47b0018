import type { TabProps } from "..";
import { EventList } from "./list";

export default function EventsTab({ sandbox }: TabProps) {
  return <EventList sandboxId={sandbox.id} />;
}
