// A terminal emulator that a hostile program cannot use against its viewer: no clipboard, no links, no reports about
// the window.
import { FitAddon } from "@xterm/addon-fit";
import { Terminal, type ITheme } from "@xterm/xterm";

import { Answers } from "./answers";
import { cleanPaste } from "./paste";
import { withStyleSheets } from "./policy";
import { cleanTitle } from "./title";

export interface ScreenEvents {
  typed(data: string): void;
  // The terminal has answered the program by itself.
  answered(data: string): void;
  titled(title: string): void;
  // The window of this screen has another size.
  resized(rows: number, columns: number): void;
  // The screen itself has; it is smaller than the window if another window is.
  shown(rows: number, columns: number): void;
  // Text from the clipboard, before it is cleaned. The screen pastes it if that resolves to true.
  pasting(text: string, isBracketed: boolean): Promise<boolean>;
  // Shift+Escape: Tab is a key of the program, so the keyboard needs another way out.
  left(): void;
}

export interface ScreenOptions {
  label: string;
  readOnly: boolean;
  theme: ITheme;
  font: string;
  fontSize: number;
}

const SCROLLBACK = 10_000;
const FIT_DELAY_MS = 80;

// OSC 8: links that name one address and lead to another. OSC 52: the clipboard. OSC 7, 9, 133, 633, 777, 1337:
// directories, notifications and commands of other terminals.
const REFUSED_OSC = [7, 8, 9, 52, 133, 633, 777, 1337];

function ownKey(event: KeyboardEvent, terminal: Terminal, events: ScreenEvents): boolean {
  if (event.shiftKey && event.key === "Escape") {
    if (event.type === "keydown") events.left();
    return false;
  }
  const isChord = event.ctrlKey && event.shiftKey && !event.altKey;
  if (!isChord) return true;
  if (event.code === "KeyC") {
    if (event.type === "keydown" && terminal.hasSelection())
      void navigator.clipboard?.writeText(terminal.getSelection()).catch(() => undefined);
    event.preventDefault();
    return false;
  }
  return event.code !== "KeyV"; // the browser's own paste follows
}

export class Screen {
  readonly terminal: Terminal;
  private readonly fit = new FitAddon();
  private readonly answers: Answers;
  private observer?: ResizeObserver;
  // How much fits here, and the size that the program has; 0: not known.
  room = { rows: 24, columns: 80 };
  private program = { rows: 0, columns: 0 };
  private fitTimer = 0;

  constructor(private readonly options: ScreenOptions, private readonly events: ScreenEvents) {
    this.terminal = new Terminal({
      allowProposedApi: false,
      cursorBlink: false,
      disableStdin: options.readOnly,
      fontFamily: options.font,
      fontSize: options.fontSize,
      linkHandler: { activate: () => undefined },
      logLevel: "off",
      minimumContrastRatio: 4.5,
      scrollback: SCROLLBACK,
      theme: options.theme,
      windowOptions: {},
    });
    this.terminal.loadAddon(this.fit);
    for (const code of REFUSED_OSC) this.terminal.parser.registerOscHandler(code, () => true);
    this.terminal.attachCustomKeyEventHandler((event) => ownKey(event, this.terminal, events));
    this.answers = new Answers(this.terminal.parser);
    const sent = (data: string) => {
      const kind = this.answers.kindOf(data);
      if (kind === "typed") events.typed(data);
      if (kind === "answer") events.answered(data);
    };
    this.terminal.onData(sent);
    this.terminal.onBinary(sent);
    this.terminal.onTitleChange((title) => events.titled(cleanTitle(title)));
  }

  open(element: HTMLElement) {
    withStyleSheets(() => this.terminal.open(element));
    this.terminal.textarea?.setAttribute("aria-label", this.options.label);
    element.addEventListener("paste", (event) => void this.paste(event), { capture: true });
    this.observer = new ResizeObserver(() => this.fitSoon());
    this.observer.observe(element);
    this.fitNow();
    this.apply();
  }

  private async paste(event: ClipboardEvent) {
    const text = event.clipboardData?.getData("text/plain") ?? "";
    event.preventDefault();
    event.stopPropagation();
    if (this.options.readOnly || text === "") return;
    if (await this.events.pasting(text, this.terminal.modes.bracketedPasteMode))
      this.terminal.paste(cleanPaste(text));
    this.terminal.focus();
  }

  private fitSoon() {
    clearTimeout(this.fitTimer);
    this.fitTimer = window.setTimeout(() => this.fitNow(), FIT_DELAY_MS);
  }

  // Adapts the size to the element, unless that is hidden.
  fitNow() {
    const size = this.fit.proposeDimensions();
    if (!size || !Number.isFinite(size.rows) || !Number.isFinite(size.cols)) return;
    const rows = Math.max(2, Math.min(500, size.rows));
    const columns = Math.max(10, Math.min(1000, size.cols));
    if (rows === this.room.rows && columns === this.room.columns) return;
    this.room = { rows, columns };
    this.apply();
    this.events.resized(rows, columns);
  }

  // Tells the size that the program has, which is that of its smallest window. A larger screen would wrap lines at
  // other places than the program.
  limit(rows: number, columns: number) {
    this.program = { rows, columns };
    this.apply();
  }

  private apply() {
    const { room, program } = this;
    // A reader does not determine the size: it may be larger than the room, which then scrolls.
    const size = (fits: number, has: number) => (has === 0 ? fits : this.options.readOnly ? has : Math.min(fits, has));
    const rows = size(room.rows, program.rows);
    const columns = size(room.columns, program.columns);
    if (rows !== this.terminal.rows || columns !== this.terminal.cols) this.terminal.resize(columns, rows);
    this.events.shown(rows, columns);
  }

  // Resolves when the bytes are on the screen, which is the flow control of its writer. The next write must wait for it.
  // Nothing in a replay is answered.
  write(bytes: Uint8Array, isReplay: boolean): Promise<void> {
    this.answers.isReplay = isReplay;
    return new Promise((resolve) => this.terminal.write(bytes, () => {
      this.answers.isReplay = false;
      resolve();
    }));
  }

  // Writes a line of the console itself.
  note(text: string) {
    this.terminal.write(`\x1b[0m\r\n\x1b[2m\u2014 ${text} \u2014\x1b[0m\r\n`);
  }

  reset() {
    this.terminal.reset();
  }

  paint(theme: ITheme) {
    this.terminal.options.theme = theme;
  }

  close() {
    clearTimeout(this.fitTimer);
    this.observer?.disconnect();
    this.terminal.dispose();
  }
}
