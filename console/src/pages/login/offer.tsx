// Asks whether the code of a login link is to be used, and names its owner.
import { useEffect, useState } from "preact/hooks";
import { code, look, type Who } from "../../api/code";
import { login, session } from "../../api/session";
import { Button } from "../../ui/button";
import { Dialog } from "../../ui/dialog";
import { Foreign } from "../../ui/parts";

function messageOf(error: unknown): string {
  return error instanceof TypeError ? "The daemon does not answer." : (error as Error).message;
}

export function useOffer() {
  const offered = code.value;
  const [who, setWho] = useState<Who | null>(null);
  const [error, setError] = useState<string | undefined>();
  useEffect(() => {
    setWho(null);
    if (offered === null) return;
    setError(undefined);
    look(offered).then(setWho, (thrown: unknown) => setError(messageOf(thrown)));
  }, [offered]);
  const decline = () => {
    code.value = null;
    setError(undefined);
  };
  const accept = async () => {
    const wasIn = session.peek() !== null;
    try {
      await login({ code: offered ?? "" });
    } catch (thrown) {
      return setError(messageOf(thrown));
    }
    code.value = null;
    // Nothing of the session before stays: neither data nor streams.
    if (wasIn) location.reload();
  };
  return { who, error, accept, decline };
}

// Over the pages of a session, which another login would replace.
export function OfferDialog() {
  const { who, error, accept, decline } = useOffer();
  if (code.value === null) return null;
  const current = session.value;
  return (
    <Dialog title="Log in again?" onClose={decline}
      actions={
        <>
          <Button autoFocus onClick={decline}>Stay logged in as {current?.owner}</Button>
          {who && !error && <Button kind="primary" onClick={accept}>Log in as {who.owner}</Button>}
        </>
      }>
      {error && <p class="hint error" role="alert">{error}</p>}
      {who && !error && (
        <p>
          A link asks to log this browser in as <strong><Foreign text={who.owner} /></strong> ({who.role}), in place of{" "}
          <strong><Foreign text={current?.owner ?? ""} /></strong> ({current?.role}). What is not saved is lost. Do so only
          if you have asked for the link with <code>holt console</code>.
        </p>
      )}
    </Dialog>
  );
}
