// Actions on sandboxes: what each does, in which states it is offered, what it costs, and bulk runs.
import { SandboxService, type Sandbox } from "@gen/sandbox_pb";
import { client } from "../api/transport";
import { count, plain } from "../lib/text";
import { confirm } from "../ui/confirm";
import type { IconName } from "../ui/icons";
import { toast, toastError } from "../ui/toast";
import { expect, put, reload } from "./sandboxes";

export type ActionName = "start" | "resume" | "pause" | "stop" | "destroy";

interface Action {
  label: string;
  done: string;
  icon: IconName;
  states: readonly string[] | null; // null: any but destroying
  meanwhile?: string;
  run: (sandboxId: string) => Promise<{ sandbox?: Sandbox } | object>;
}

export const actions: Record<ActionName, Action> = {
  start: {
    label: "Start", done: "Started", icon: "play", states: ["stopped", "failed"],
    run: (sandboxId) => client(SandboxService).start({ sandboxId }),
  },
  resume: {
    label: "Resume", done: "Resumed", icon: "play", states: ["paused", "deep-paused"],
    run: (sandboxId) => client(SandboxService).resume({ sandboxId }),
  },
  pause: {
    label: "Pause", done: "Paused", icon: "pause", states: ["active"], meanwhile: "pausing",
    run: (sandboxId) => client(SandboxService).pause({ sandboxId }),
  },
  stop: {
    label: "Stop", done: "Stopped", icon: "stop", states: ["active", "paused"],
    run: (sandboxId) => client(SandboxService).stop({ sandboxId }),
  },
  destroy: {
    label: "Destroy", done: "Destroyed", icon: "trash", states: null, meanwhile: "destroying",
    run: (sandboxId) => client(SandboxService).destroy({ sandboxId }),
  },
};

export const actionNames = Object.keys(actions) as ActionName[];
const atOnce = 5; // a browser has six connections
const namedMost = 6;

export function isOffered(name: ActionName, sandbox: Sandbox): boolean {
  const states = actions[name].states;
  return states ? states.includes(sandbox.state) : sandbox.state !== "destroying";
}

export function nameOf(sandbox: Sandbox): string {
  return plain(sandbox.name || sandbox.id);
}

function lossOf(sandbox: Sandbox) {
  const parts = ["its files"];
  if (sandbox.snapshots > 0) parts.push(count(sandbox.snapshots, "snapshot"));
  if (sandbox.state === "active" || sandbox.state === "paused") parts.push("its processes");
  return <><bdi><strong>{nameOf(sandbox)}</strong></bdi>: {parts.join(", ")}</>;
}

// Asks if something would be lost.
function isWanted(name: ActionName, targets: Sandbox[]): Promise<boolean> | true {
  const what = targets.length === 1 && targets[0] ? nameOf(targets[0]) : count(targets.length, "sandbox", "sandboxes");
  if (name === "destroy") {
    const more = targets.length - namedMost;
    return confirm({
      title: `Destroy ${what}?`,
      text: "A destroyed sandbox cannot be restored.",
      lost: [
        ...targets.slice(0, namedMost).map(lossOf),
        ...(more > 0 ? [`and the same of ${count(more, "more sandbox", "more sandboxes")}`] : []),
      ],
      action: targets.length === 1 ? "Destroy" : `Destroy ${targets.length}`,
    });
  }
  if (name === "stop") {
    return confirm({
      title: `Stop ${what}?`,
      text: "Files and snapshots stay; the next start uses them.",
      lost: ["all running processes, with their memory", "open terminals and shells"],
      action: targets.length === 1 ? "Stop" : `Stop ${targets.length}`,
    });
  }
  return true;
}

async function runOne(name: ActionName, sandbox: Sandbox): Promise<void> {
  const action = actions[name];
  if (action.meanwhile) expect(sandbox.id, action.meanwhile);
  try {
    const reply = await action.run(sandbox.id);
    if ("sandbox" in reply) put(reply.sandbox);
  } catch (error) {
    reload(sandbox.id);
    throw error;
  }
}

// Runs an action on all sandboxes for which it is offered, a few at a time. True if it was wanted.
export async function runAction(name: ActionName, chosen: Sandbox[],
  onProgress?: (done: number, all: number) => void): Promise<boolean> {
  const targets = chosen.filter((each) => isOffered(name, each));
  if (targets.length === 0 || !(await isWanted(name, targets))) return false;
  let done = 0;
  let failed = 0;
  let firstError: unknown;
  const queue = [...targets];
  const worker = async () => {
    for (let next = queue.shift(); next; next = queue.shift()) {
      try {
        await runOne(name, next);
      } catch (error) {
        if (failed++ === 0) firstError = error;
      }
      onProgress?.(++done, targets.length);
    }
  };
  await Promise.all(Array.from({ length: atOnce }, worker));
  const verb = actions[name].label.toLowerCase();
  if (failed > 0) {
    const what = targets.length === 1 && targets[0] ? nameOf(targets[0]) : `${failed} of ${targets.length} sandboxes`;
    toastError(firstError, `Cannot ${verb} ${what}`);
  } else {
    const what = targets.length === 1 && targets[0] ? nameOf(targets[0]) : count(targets.length, "sandbox", "sandboxes");
    toast(`${actions[name].done} ${what}`);
  }
  return true;
}
