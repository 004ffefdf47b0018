import { Empty } from "../../ui/parts";

export default function Overview() {
  return <Empty title="Overview" />;
}
