import { EventList } from "./list";

export default function EventsPage() {
  return (
    <>
      <header class="page-head"><h1>Events</h1></header>
      <EventList sandboxId="" />
    </>
  );
}
