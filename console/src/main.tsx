import "./style/index.css";
import { render } from "preact";
import { restore } from "./api/session";
import { App } from "./app";
import { hasCode } from "./pages/login/login";

const root = document.getElementById("app");
if (root) render(<App />, root);
if (!hasCode) void restore();
