// The page Access: tokens of clients, and sessions of the console.
import { href, segments } from "../../router";
import { Tabs } from "../../ui/tabs";
import { Sessions } from "./sessions";
import { Tokens } from "./tokens";

export default function AccessPage() {
  const current = segments.value[1] === "sessions" ? "sessions" : "tokens";
  return (
    <>
      <header class="page-head"><h1>Access</h1></header>
      <Tabs label="Parts of this page" current={current} tabs={[
        { id: "tokens", label: "Tokens", href: href("access", "tokens") },
        { id: "sessions", label: "Sessions", href: href("access", "sessions") },
      ]} />
      {current === "tokens" ? <Tokens /> : <Sessions />}
    </>
  );
}
