// The dialog that creates a token, and the one that shows its secret once.
import { TokenService } from "@gen/token_pb";
import { useState } from "preact/hooks";
import { isAdmin } from "../../api/session";
import { client } from "../../api/transport";
import { holt } from "../../lib/cli";
import { attempt, parseLabels, parseTime, timeText } from "../../lib/parse";
import { Button } from "../../ui/button";
import { copyText, CopyCli } from "../../ui/cli";
import { Dialog } from "../../ui/dialog";
import { Icon } from "../../ui/icons";
import { Field } from "../../ui/parts";
import { toastError } from "../../ui/toast";

const roles: [string, string][] = [
  ["read-only", "read-only: sees, changes nothing"], ["user", "user: what its owner has"], ["admin", "admin: everything of all owners"],
];

export function CreateToken({ owner, onClose, onMade }: {
  owner: string; onClose: () => void; onMade: (secret: string) => void;
}) {
  const [label, setLabel] = useState("");
  const [forOwner, setForOwner] = useState(owner);
  const [role, setRole] = useState("user");
  const [ttl, setTtl] = useState("30d");
  const [scope, setScope] = useState("");
  const time = attempt(() => parseTime(ttl));
  const labels = attempt(() => parseLabels(scope));
  const isValid = time.error === undefined && labels.error === undefined;

  const ttlMs = time.value ?? 0n;
  const command = holt("token", "create", ...(forOwner && forOwner !== owner ? ["--owner", forOwner] : []), "--role", role,
    ...Object.entries(labels.value ?? {}).flatMap(([key, value]) => ["--label", `${key}=${value}`]),
    ...(label ? ["--note", label] : []), ...(ttlMs > 0n ? ["--ttl", timeText(ttlMs)] : []));
  const submit = async () => {
    if (!isValid) return;
    try {
      const { secret } = await client(TokenService).create({
        label, role, ttlMs, scope: labels.value ?? {}, owner: forOwner === owner ? "" : forOwner,
      });
      onMade(secret);
    } catch (error) {
      toastError(error, "The token was not created");
    }
  };
  return (
    <Dialog title="New token" onClose={onClose} onSubmit={() => submit()}
      actions={
        <>
          <CopyCli command={command} />
          <Button onClick={onClose}>Cancel</Button>
          <Button type="submit" kind="primary" disabled={!isValid}>Create</Button>
        </>
      }>
      <Field label="Note" hint="For people, at most 64 bytes.">
        {(id, describedBy) => (
          <input id={id} value={label} maxLength={64} aria-describedby={describedBy} autocomplete="off"
            onInput={(event) => setLabel(event.currentTarget.value)} />
        )}
      </Field>
      <Field label="Role">
        {(id) => (
          <select id={id} value={role} onChange={(event) => setRole(event.currentTarget.value)}>
            {roles.filter(([name]) => name !== "admin" || isAdmin.value)
              .map(([name, text]) => <option key={name} value={name}>{text}</option>)}
          </select>
        )}
      </Field>
      {isAdmin.value && (
        <Field label="Owner">
          {(id) => (
            <input id={id} value={forOwner} autocomplete="off" spellcheck={false} onInput={(event) => setForOwner(event.currentTarget.value.trim())} />
          )}
        </Field>
      )}
      <Field label="Valid for" hint="12h, 30d. It ends with this session at the latest: create one that lasts longer with holt token create." error={time.error}>
        {(id, describedBy) => (
          <input id={id} value={ttl} aria-describedby={describedBy} aria-invalid={time.error !== undefined}
            onInput={(event) => setTtl(event.currentTarget.value)} />
        )}
      </Field>
      <Field label="Label scope" hint="Only objects with these labels exist for it: team=red. At most 4." error={labels.error}>
        {(id, describedBy) => (
          <input id={id} value={scope} aria-describedby={describedBy} aria-invalid={labels.error !== undefined} autocomplete="off"
            onInput={(event) => setScope(event.currentTarget.value)} />
        )}
      </Field>
    </Dialog>
  );
}

export function ShowSecret({ secret, onClose }: { secret: string; onClose: () => void }) {
  return (
    <Dialog title="The new token" onClose={onClose} actions={<Button kind="primary" onClick={onClose}>Done</Button>}>
      <div class="note warn"><Icon name="warning" /><div>This is shown once. The daemon keeps only a hash of it.</div></div>
      <div class="secret">
        <code>{secret}</code>
        <Button icon="copy" label="Copy the token" autoFocus onClick={() => copyText(secret, "The token was copied.")} />
      </div>
    </Dialog>
  );
}
