// Login: by the one-time code in the fragment of a link of `holt console`, or by a pasted token.
import { useEffect, useState } from "preact/hooks";
import { login, state } from "../../api/session";
import { Button } from "../../ui/button";
import { Field } from "../../ui/parts";

// The code leaves the address bar and the history before it is used.
function takeCode(): string | null {
  const found = /^#login=([A-Za-z0-9._~-]+)$/.exec(location.hash);
  if (!found) return null;
  history.replaceState(null, "", location.pathname);
  return found[1] ?? null;
}

const code = takeCode();
export const hasCode = code !== null;
let isUsed = false;

export function LoginPage() {
  const [token, setToken] = useState("");
  const [isBusy, setBusy] = useState(hasCode && !isUsed);
  const [error, setError] = useState<string | undefined>();
  const reason = state.value.kind === "out" ? state.value.reason : undefined;

  const enter = async (secret: { code: string } | { token: string }) => {
    setBusy(true);
    setError(undefined);
    try {
      await login(secret);
    } catch (thrown) {
      setError(thrown instanceof TypeError ? "The daemon does not answer." : (thrown as Error).message);
      setBusy(false);
    }
  };
  useEffect(() => {
    if (code === null || isUsed) return;
    isUsed = true;
    void enter({ code });
  }, []);

  return (
    <main class="login">
      <form class="login-card" onSubmit={(event) => {
        event.preventDefault();
        const pasted = /#login=([A-Za-z0-9._~-]+)$/.exec(token.trim())?.[1];
        void enter(pasted ? { code: pasted } : { token: token.trim() });
      }}>
        <h1 class="brand">Holt</h1>
        <p class="muted">{reason ?? "Log in to the console of this host."}</p>
        <Field label="Token" error={error}
          hint={<>A token, or the link that <code>holt console</code> prints.</>}>
          {(id, describedBy) => (
            <input id={id} type="password" autocomplete="off" spellcheck={false} required value={token}
              aria-describedby={describedBy} aria-invalid={error !== undefined}
              onInput={(event) => setToken(event.currentTarget.value)} />
          )}
        </Field>
        <Button type="submit" kind="primary" disabled={isBusy || token.trim() === ""}>
          {isBusy ? "Logging in…" : "Log in"}
        </Button>
      </form>
    </main>
  );
}
