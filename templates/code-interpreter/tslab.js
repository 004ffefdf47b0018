/* Starts the JavaScript and TypeScript kernel (tslab) with two additions: the last value of a cell and
 * an exception are results, which server.py knows by their types. tslab alone prints both.
 * usage: node tslab.js DIST kernel ...    (DIST: the modules of tslab) */
"use strict";
const { format, inspect } = require("node:util");

const [dist] = process.argv.splice(2, 1);
const executor = require(dist + "/executor.js");
const jupyter = require(dist + "/jupyter.js");
const create = executor.createExecutor;

function show(data) {
  jupyter.lastWriteDisplayData({ data, metadata: {}, transient: {} });
}

function fail(name, value, traceback) {
  show({ "application/vnd.holt.error": { name, value, traceback } });
}

const output = {
  log: (value) => show({ "text/plain": inspect(value), "application/vnd.holt.value": true }),
  error: (...words) => {
    const [error] = words;
    if (error instanceof Error) {
      const traceback = String(error.stack).split("\n").filter((line) => !line.includes(dist)).join("\n");
      fail(error.name, error.message, traceback);
    } else if (words.length > 1) { // one of the compiler's complaints: all are printed, the first is the error
      console.error(...words);
      fail("SyntaxError", format(...words), format(...words));
    } else {
      fail("Error", inspect(error), inspect(error));
    }
  },
};

executor.createExecutor = (root, converters) => create(root, converters, output);
require(dist + "/main.js").main();
