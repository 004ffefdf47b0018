// The page Access: tokens of clients, and sessions of the console.
import { canWrite } from "../../api/session";
import { href, segments } from "../../router";
import { Tabs } from "../../ui/tabs";
import { Tokens } from "./tokens";

export default function AccessPage() {
  const parts = [{ id: "tokens", label: "Tokens" }].filter((each) => each.id !== "tokens" || canWrite.value);
  const current = parts.find((each) => each.id === segments.value[1]) ?? parts[0]!;
  return (
    <>
      <header class="page-head"><h1>Access</h1></header>
      <Tabs label="Parts of this page" current={current.id} tabs={parts.map((each) => ({ ...each, href: href("access", each.id) }))} />
      {current.id === "tokens" && <Tokens />}
    </>
  );
}
