// The shells and processes of a sandbox that have a terminal now.
import { ProcessService, ProcessState } from "@gen/process_pb";
import { ShellService } from "@gen/shell_pb";
import { client } from "../../../api/transport";
import { commandLine } from "../processes/outcome";

export interface Found {
  kind: "shell" | "process";
  id: string;
  text: string;
}

export async function findTerminals(sandboxId: string): Promise<Found[]> {
  const [{ shells }, { processes }] = await Promise.all([
    client(ShellService).list({ sandboxId }), client(ProcessService).list({ sandboxId }),
  ]);
  const ofShells = new Set(shells.map((each) => each.processId));
  return [
    ...shells.filter((each) => each.kind === "bash" && each.processId)
      .map((each): Found => ({ kind: "shell", id: each.name, text: each.name })),
    ...processes.filter((each) => each.terminal && each.state === ProcessState.running && !ofShells.has(each.id))
      .map((each): Found => ({ kind: "process", id: each.id, text: `${each.id}  ${commandLine(each)}` })),
  ];
}
