// Saves the kept output of a process as a file, as the bytes that the process wrote.
import { ProcessService } from "@gen/process_pb";
import { client } from "../../../api/transport";

export async function downloadOutput(target: { sandboxId: string; processId: string }, signal: AbortSignal) {
  const parts: Uint8Array<ArrayBuffer>[] = [];
  for await (const { event } of client(ProcessService).attach({ ...target, stdoutOffset: 0n }, { signal })) {
    if (event.case === "stdout" || event.case === "stderr") parts.push(new Uint8Array(event.value));
    if (event.case === "gap")
      parts.push(new TextEncoder().encode(`\n[${event.value.missing} bytes were not kept]\n`));
  }
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob(parts, { type: "application/octet-stream" }));
  link.download = `${target.sandboxId}-${target.processId}.log`;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}
