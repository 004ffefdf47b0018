// Removes a file or a tree after saying what that loses.
import { FileService } from "@gen/file_pb";
import { client } from "../../api/transport";
import { bytes, count, plain } from "../../lib/text";
import { confirm } from "../../ui/confirm";
import { requestPath, type FilePath } from "./path";

const depth = 64;
const most = 10_000;

// Counts what is below a directory, up to a limit.
async function contents(sandboxId: string, path: FilePath): Promise<string[]> {
  const reply = await client(FileService).list({ sandboxId, ...requestPath(path), depth, limit: most });
  const isCut = reply.nextAfter.length > 0;
  const files = reply.entries.filter((each) => each.type !== "directory");
  const size = files.reduce((sum, each) => sum + each.size, 0n);
  if (reply.entries.length === 0) return ["The directory, which is empty"];
  const more = isCut ? "more than " : "";
  return [
    `${more}${count(files.length, "file")}, ${more}${bytes(size)}`,
    `${more}${count(reply.entries.length - files.length + 1, "directory", "directories")}`,
  ];
}

// Returns whether it was removed.
export async function removePath(sandboxId: string, path: FilePath): Promise<boolean> {
  const { entry } = await client(FileService).stat({ sandboxId, ...requestPath(path) });
  const isDir = entry?.type === "directory";
  const lost = isDir ? await contents(sandboxId, path) : [`The ${entry?.type ?? "file"} of ${bytes(entry?.size ?? 0n)}`];
  const isWanted = await confirm({
    title: `Remove ${isDir ? "the directory" : "the file"}?`,
    text: `${plain(path.text)} is removed at once. A rollback to a turn that has it brings it back.`,
    lost,
    action: "Remove",
  });
  if (isWanted) await client(FileService).remove({ sandboxId, ...requestPath(path), recursive: isDir });
  return isWanted;
}
