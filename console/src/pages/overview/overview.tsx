// The first page: the host and all sandboxes.
import { Host } from "./host";
import { Sandboxes } from "./sandboxes";

export default function Overview() {
  return (
    <div class="overview">
      <h1 class="hidden-text">Overview</h1>
      <Host />
      <Sandboxes />
    </div>
  );
}
