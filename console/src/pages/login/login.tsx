// Login: by the one-time code in the fragment of a link of `holt console`, or by a pasted token.
import { useState } from "preact/hooks";
import { code } from "../../api/code";
import { login, state } from "../../api/session";
import { Button } from "../../ui/button";
import { Field, Foreign } from "../../ui/parts";
import { useOffer } from "./offer";

export function LoginPage() {
  const [token, setToken] = useState("");
  const [isBusy, setBusy] = useState(false);
  const [error, setError] = useState<string | undefined>();
  const reason = state.value.kind === "out" ? state.value.reason : undefined;

  const enter = async (secret: { code: string } | { token: string }) => {
    setBusy(true);
    setError(undefined);
    try {
      await login(secret);
      code.value = null;
    } catch (thrown) {
      setError(thrown instanceof TypeError ? "The daemon does not answer." : (thrown as Error).message);
      setBusy(false);
    }
  };
  const offer = useOffer();
  const who = offer.who;

  if (who) {
    return (
      <main class="login">
        <form class="login-card" onSubmit={(event) => {
          event.preventDefault();
          void offer.accept();
        }}>
          <h1 class="brand">Holt</h1>
          <p>Log in as <strong><Foreign text={who.owner} /></strong> ({who.role})?</p>
          <p class="muted">The link that was opened asks for it.</p>
          {offer.error && <p class="hint error" role="alert">{offer.error}</p>}
          <Button type="submit" kind="primary">Log in</Button>
          <Button onClick={offer.decline}>Cancel</Button>
        </form>
      </main>
    );
  }
  return (
    <main class="login">
      <form class="login-card" onSubmit={(event) => {
        event.preventDefault();
        const pasted = /#login=([A-Za-z0-9._~-]+)$/.exec(token.trim())?.[1];
        void enter(pasted ? { code: pasted } : { token: token.trim() });
      }}>
        <h1 class="brand">Holt</h1>
        <p class="muted">{reason ?? "Log in to the console of this host."}</p>
        <Field label="Token" error={error ?? offer.error}
          hint={<>A token, or the link that <code>holt console</code> prints.</>}>
          {(id, describedBy) => (
            <input id={id} type="password" autocomplete="off" spellcheck={false} required value={token}
              aria-describedby={describedBy} aria-invalid={(error ?? offer.error) !== undefined}
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
