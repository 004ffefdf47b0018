// The tab Network: what the sandbox may reach, and what it has reached.
import { NetworkService } from "@gen/network_pb";
import type { TabProps } from "..";
import { client } from "../../api/transport";
import { useResource } from "../../lib/resource";
import { Loading, Problem } from "../../ui/parts";
import { Log } from "./log";
import { Policy } from "./policy";
import { Test } from "./test";

export default function NetworkTab({ sandbox }: TabProps) {
  // A change of the policy is an event of the sandbox, and a new object here. A ceiling or holt.conf may
  // change it, too, without one.
  const { data, error, reload } = useResource(async () => (await client(NetworkService).get({ sandboxId: sandbox.id })).network,
    [sandbox], 10_000);
  return (
    <>
      {data ? <Policy sandbox={sandbox} network={data} onChange={() => void reload()} /> : error ? <Problem error={error} /> : <Loading />}
      <Test sandbox={sandbox} />
      <Log sandbox={sandbox} />
    </>
  );
}
