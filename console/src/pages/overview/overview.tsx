// The first page: the host and all sandboxes.
import { Lazy } from "../../ui/lazy";
import { Host } from "./host";
import { Sandboxes } from "./sandboxes";

const plots = () => import("./plots");

export default function Overview() {
  return (
    <div class="overview">
      <h1 class="hidden-text">Overview</h1>
      <Host />
      <Lazy load={plots} props={{}} waiting={null} />
      <Sandboxes />
    </div>
  );
}
