// The tab Permissions: the rules for the codebase of a sandbox, its files painted by level, and a box that tells why.
import { PermissionService } from "@gen/permission_pb";
import type { TabProps } from "..";
import { client } from "../../api/transport";
import { useResource } from "../../lib/resource";
import { Empty, Loading, Problem } from "../../ui/parts";
import { Levels } from "./levels";
import { Rules } from "./rules";
import { Why } from "./why";

export default function PermissionsTab({ sandbox }: TabProps) {
  // A change of the rules is an event of the sandbox, and a new object here; refusals are counted meanwhile.
  const { data, error, reload } = useResource(async () => (sandbox.codebase
    ? (await client(PermissionService).list({ sandboxId: sandbox.id })).permissions : undefined), [sandbox], 10_000);
  if (!sandbox.codebase) return <Empty icon="file" title="No codebase">Permissions are for the files of a codebase, and this sandbox has none.</Empty>;
  if (!data) return error ? <Problem error={error} /> : <Loading />;
  const onChange = () => void reload();
  return (
    <div class="perm">
      <Levels sandbox={sandbox} permissions={data} />
      <div class="perm-side">
        <Rules sandbox={sandbox} permissions={data} onChange={onChange} />
        <Why sandbox={sandbox} onChange={onChange} />
      </div>
    </div>
  );
}
