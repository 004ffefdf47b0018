import type { TabProps } from "..";
import { Panel } from "../../ui/parts";

export default function Summary({ sandbox }: TabProps) {
  return <Panel title="Summary">{sandbox.id}</Panel>;
}
