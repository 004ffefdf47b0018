// The frame of all pages: navigation, banner while the daemon is away, the page itself.
import { useEffect, useRef } from "preact/hooks";
import { awaySince, online } from "./api/connection";
import { canWrite, isAdmin, logout, session, state } from "./api/session";
import { theme, type Theme } from "./lib/theme";
import { pages, type Page } from "./pages";
import { LoginPage } from "./pages/login/login";
import { OfferDialog } from "./pages/login/offer";
import { match, path, segments } from "./router";
import { Button } from "./ui/button";
import { CopyHost } from "./ui/cli";
import { ConfirmHost } from "./ui/confirm";
import { Icon, type IconName } from "./ui/icons";
import { Lazy } from "./ui/lazy";
import { Empty, Foreign, Loading } from "./ui/parts";
import { openHelp, Shortcuts } from "./ui/shortcuts";
import { Toasts } from "./ui/toast";

function isAllowed(page: Page): boolean {
  if (page.needs === "admin") return isAdmin.value;
  return page.needs !== "write" || canWrite.value;
}

function Navigation() {
  const row = useRef<HTMLElement>(null);
  // On a phone it is a row that scrolls.
  useEffect(() => {
    row.current?.querySelector("[aria-current]")?.scrollIntoView({ block: "nearest", inline: "nearest" });
  }, [path.value]);
  return (
    <nav class="nav" ref={row} aria-label="Pages">
      {pages.filter((each) => each.icon && isAllowed(each)).map((each) => (
        <a key={each.path} href={`#${each.path}`} class="nav-link" title={each.title}
          aria-current={match(each.path, segments.value) ? "page" : undefined}>
          <Icon name={each.icon as IconName} />
          <span>{each.title}</span>
        </a>
      ))}
    </nav>
  );
}

const nextTheme: Record<Theme, Theme> = { system: "light", light: "dark", dark: "system" };
const themeIcon: Record<Theme, IconName> = { system: "system", light: "sun", dark: "moon" };

function Account() {
  const current = theme.value;
  return (
    <div class="account">
      <div class="account-name">
        <Foreign text={session.value?.owner ?? ""} />
        <span class="muted">{session.value?.role}</span>
      </div>
      <Button kind="quiet" icon={themeIcon[current]} label={`Theme: ${current}`}
        onClick={() => (theme.value = nextTheme[current])} />
      <Button kind="quiet" icon="keyboard" label="Keyboard shortcuts" onClick={openHelp} />
      <Button kind="quiet" icon="logout" label="Log out" onClick={() => logout()} />
    </div>
  );
}

function Banner() {
  if (online.value) return null;
  const since = new Date(awaySince.value).toLocaleTimeString();
  return (
    <div class="banner" role="alert">
      <span class="spinner" aria-hidden="true" />
      The daemon has not answered since {since}. This page continues when it is back.
    </div>
  );
}

function CurrentPage() {
  for (const page of pages) {
    const found = match(page.path, segments.value);
    if (!found) continue;
    if (!isAllowed(page)) return <Empty icon="warning" title="This session is not allowed to see this page" />;
    return <Lazy key={page.path + JSON.stringify(found.params)} load={page.load} props={{ params: found.params }} />;
  }
  return <Empty icon="search" title="No such page"><a href="#/">Go to the overview</a></Empty>;
}

export function App() {
  const current = state.value.kind;
  if (current === "checking") return <Loading what="Connecting" />;
  if (current === "out") return <><LoginPage /><Toasts /></>;
  return (
    <div class="frame">
      <a class="skip" href="#content" onClick={(event) => {
        event.preventDefault();
        document.getElementById("content")?.focus();
      }}>Skip to the content</a>
      <aside class="side">
        <a class="brand" href="#/">Holt</a>
        <Navigation />
        <Account />
      </aside>
      <main class="content" id="content" tabIndex={-1}>
        <Banner />
        <CurrentPage />
      </main>
      <Toasts />
      <ConfirmHost />
      <OfferDialog />
      <CopyHost />
      <Shortcuts />
    </div>
  );
}
