// What a terminal answers to the program by itself: its kind, the position of the cursor, modes, colours. A program that
// asked long ago, or that gets the answer of another viewer, would take an answer for typed input.
import type { IParser } from "@xterm/xterm";

const CSI = [
  { final: "c" }, { prefix: ">", final: "c" }, { prefix: "=", final: "c" }, // device attributes
  { final: "n" }, { prefix: "?", final: "n" }, // status, position of the cursor
  { intermediates: "$", final: "p" }, { prefix: "?", intermediates: "$", final: "p" }, // modes
  { prefix: ">", final: "q" }, // name and version
  { prefix: "?", final: "u" }, // keyboard
];
const COLOURS = [4, 5, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19];
const FOCUS = /^\x1b\[[IO]$/; // sent when a program asks to be told of the focus

export class Answers {
  // Output is shown again: its questions were asked before.
  isReplay = false;
  // The parser is inside a question, so what the terminal sends is the answer.
  private isAsked = false;

  constructor(parser: IParser) {
    const asked = () => {
      this.isAsked = true;
      // Another handler, that of the emulator, follows unless this one has handled the sequence.
      queueMicrotask(() => (this.isAsked = false));
      return this.isReplay;
    };
    for (const each of CSI) parser.registerCsiHandler(each, asked);
    parser.registerDcsHandler({ intermediates: "$", final: "q" }, asked);
    for (const each of COLOURS) parser.registerOscHandler(each, (data) => data.includes("?") && asked());
  }

  // What a piece of data that the terminal sends is.
  kindOf(data: string): "typed" | "answer" | "dropped" {
    if (this.isReplay && (this.isAsked || FOCUS.test(data))) return "dropped";
    return this.isAsked ? "answer" : "typed";
  }
}
