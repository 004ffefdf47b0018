// Watches the open directories, so that what others change shows by itself.
import { FileService } from "@gen/file_pb";
import { follow } from "../../api/follow";
import { client } from "../../api/transport";
import { merged } from "../../lib/merge";
import { keyOf, requestPath, type FilePath } from "./path";

// Each is a channel of the one connection, which has 64.
const most = 12;

interface Watch {
  stop: () => void;
}

// Returns { set, stop }: set gives the directories to watch; changed is called at most four times a
// second with the directories that have changed.
export function watcher(sandboxId: string, changed: (dirs: FilePath[]) => void) {
  const watches = new Map<string, Watch>();
  const pending = new Map<string, FilePath>();
  const tell = merged(() => {
    const dirs = [...pending.values()];
    pending.clear();
    changed(dirs);
  });

  const add = (path: FilePath) => {
    const key = keyOf(path);
    let isFirst = true;
    const stop = follow(
      (signal) => client(FileService).watch({ sandboxId, ...requestPath(path) }, { signal }),
      {
        message: (message) => {
          // The first message of the first stream only confirms it; that of a later one means that
          // changes may have been missed.
          if (message.type === "" && isFirst) {
            isFirst = false;
            return;
          }
          pending.set(key, path);
          tell();
        },
        ended: () => {
          watches.delete(key);
          pending.set(key, path);
          tell();
        },
      },
    );
    watches.set(key, { stop });
  };

  return {
    set(paths: readonly FilePath[]) {
      const wanted = new Map(paths.slice(-most).map((each) => [keyOf(each), each]));
      for (const [key, watch] of watches) {
        if (wanted.has(key)) continue;
        watch.stop();
        watches.delete(key);
      }
      for (const [key, path] of wanted) if (!watches.has(key)) add(path);
    },
    stop() {
      for (const each of watches.values()) each.stop();
      watches.clear();
    },
  };
}
