import "./style/index.css";
import { render } from "preact";
import { takeCode } from "./api/code";
import { restore } from "./api/session";
import { App } from "./app";

takeCode(location.pathname);
const root = document.getElementById("app");
if (root) render(<App />, root);
void restore();
