// Connects a screen with a shell or a process for as long as its tab is open. A shell that a rollback or a start of
// the sandbox has made again is the same tab with a new process.
import { batch, effect, signal } from "@preact/signals";
import { KilledBy, type Ended } from "@gen/process_pb";
import { SandboxService } from "@gen/sandbox_pb";
import { ShellService } from "@gen/shell_pb";
import { pause } from "../../../api/connection";
import { errorText } from "../../../api/errors";
import { client } from "../../../api/transport";
import { outcomeText } from "../processes/outcome";
import type { Screen } from "./screen";
import { Session, type Phase } from "./session";
import type { TerminalTab } from "./store";

const POLL_MS = 200;
const POLLS = 300;
// States that pass by themselves.
const PASSING = new Set(["creating", "pausing", "rolling-back"]);

export class Link {
  readonly phase = signal<Phase>("connecting");
  readonly problem = signal("");
  // How the process ended, in words.
  readonly outcome = signal("");
  private session: Session | undefined;
  private stopWatching: (() => void) | undefined;
  private lastProcess = "";
  private isShown = false;
  private isOpening = false;
  private isClosed = false;
  private wasStopped = false; // its process ended with the sandbox, which may be started again

  constructor(
    private readonly sandboxId: string, private readonly tab: TerminalTab, private readonly screen: Screen,
    private readonly mayWrite: boolean,
  ) {}

  show() {
    this.isShown = true;
    if (this.session) this.session.show();
    else void this.open();
  }

  hide() {
    this.isShown = false;
    this.session?.hide();
  }

  close() {
    this.isClosed = true;
    this.drop();
  }

  type(data: string) {
    this.session?.type(data);
  }

  answer(data: string) {
    this.session?.answer(data);
  }

  resize(rows: number, columns: number) {
    this.session?.resize(rows, columns);
  }

  // Starts a shell again that has ended, or attaches again after a failure.
  async again() {
    this.drop();
    this.wasStopped = false;
    batch(() => {
      this.phase.value = "connecting";
      this.problem.value = "";
      this.outcome.value = "";
    });
    await this.open();
  }

  // Called when the sandbox is active: what could not be opened before may be there now.
  async sandboxIsActive() {
    const isDue = this.phase.value === "failed" || (this.phase.value === "ended" && this.wasStopped);
    if (isDue && this.isShown) await this.again();
  }

  private drop() {
    this.stopWatching?.();
    this.session?.close();
    this.session = undefined;
  }

  // Returns the process of the shell. A reader starts none.
  private async findProcess(): Promise<string> {
    if (this.tab.kind === "process") return this.tab.id;
    await this.untilActive();
    const request = { sandboxId: this.sandboxId, name: this.tab.id };
    const { shell } = this.mayWrite ? await client(ShellService).open(request) : await client(ShellService).get(request);
    if (!shell?.processId) throw new Error(`shell '${this.tab.id}' does not run`);
    if (shell.kind !== "bash") throw new Error("the sandbox has no bash, and a plain sh has no terminal");
    return shell.processId;
  }

  // Waits for the end of a rollback. In other states no shell can be opened.
  private async untilActive() {
    for (let i = 0; i < POLLS && !this.isClosed; i++) {
      const { sandbox } = await client(SandboxService).get({ sandboxId: this.sandboxId });
      const state = sandbox?.state ?? "";
      if (state === "active") return;
      if (!PASSING.has(state)) throw new Error(`the sandbox is ${state}`);
      await pause(POLL_MS);
    }
    throw new Error("the sandbox is not active");
  }

  private async open() {
    if (this.isOpening || this.isClosed) return;
    this.isOpening = true;
    try {
      const processId = await this.findProcess();
      if (!this.isClosed) this.start(processId);
    } catch (error) {
      batch(() => {
        this.problem.value = errorText(error);
        this.phase.value = "failed";
      });
    } finally {
      this.isOpening = false;
    }
  }

  private start(processId: string) {
    // The same process again repeats its output.
    if (processId === this.lastProcess) this.screen.reset();
    this.lastProcess = processId;
    const session = new Session({ sandboxId: this.sandboxId, processId }, this.screen, this.mayWrite);
    this.session = session;
    session.resize(this.screen.room.rows, this.screen.room.columns);
    this.stopWatching = effect(() => {
      const [phase, problem, ended] = [session.phase.value, session.problem.value, session.ended.value];
      queueMicrotask(() => {
        if (this.session === session) this.follow(phase, problem, ended);
      });
    });
    if (this.isShown) session.show();
  }

  private follow(phase: Phase, problem: string, ended: Ended | undefined) {
    batch(() => {
      this.phase.value = phase;
      this.problem.value = problem;
      this.outcome.value = ended ? outcomeText(ended) : "";
    });
    if (this.tab.kind !== "shell" || !this.mayWrite) return;
    this.wasStopped = ended?.killedBy === KilledBy.stop;
    if (ended?.killedBy !== KilledBy.rollback) return;
    this.screen.note("rollback: the shell continues with the state of the snapshot");
    void this.again();
  }
}
