// What is shown to a browser that is not signed in, or whose caller may not read what the page needs.

import { useEffect, useState } from "preact/hooks";
import { caller, setCaller, type SignedIn, signedIn } from "./session";

/** `lacksRights`: the caller is known, and the banner says which right is missing. */
export function Login({ lacksRights = false }: { lacksRights?: boolean }) {
  const [state, set] = useState<SignedIn | null>(null);
  useEffect(() => {
    void signedIn().then((found) => (found.ok && !lacksRights ? location.reload() : set(found)));
  }, []);
  if (!state) return null;
  if (state.mode === "bearer") return <Form lacksRights={lacksRights} first={state} />;
  if (state.ok) return null;
  if (state.mode === "session" && state.status === 401) {
    return (
      <section class="card login">
        <h1>Not signed in</h1>
        <p>
          Open the URL that <code>nodewise dashboard</code> has printed last. It has a token that signs one browser in. Then links like this
          one work.
        </p>
      </section>
    );
  }
  return (
    <section class="card login">
      <h1>No answer</h1>
      <p role="alert">{state.error}</p>
      <button type="button" onClick={() => location.reload()}>
        Try again
      </button>
    </section>
  );
}

/** Asks for a token, and for namespaces. */
function Form({ lacksRights, first }: { lacksRights: boolean; first: SignedIn }) {
  // Without a token there is nothing wrong yet.
  const [error, setError] = useState(first.status === 401 && !caller().token ? "" : (first.error ?? ""));
  const [busy, setBusy] = useState(false);
  const submit = async (event: SubmitEvent) => {
    event.preventDefault();
    const form = new FormData(event.currentTarget as HTMLFormElement);
    const text = (name: string) => String(form.get(name) ?? "").trim();
    const given = { token: text("token") || caller().token, namespaces: text("namespaces") };
    setBusy(true);
    const found = await signedIn(given);
    setBusy(false);
    if (found.ok) {
      setCaller(given);
      location.reload();
    } else {
      setError(found.error ?? "");
    }
  };
  return (
    <section class="card login">
      <h1>{lacksRights ? "A right is missing" : "Sign in"}</h1>
      <p>
        {lacksRights ? (
          <>The message above says which one. Name the namespaces that you may read, or use another token.</>
        ) : (
          <>
            Paste a bearer token of the cluster, for example from <code>kubectl create token NAME</code>. The page shows what this token may
            read. It stays in this tab.
          </>
        )}
      </p>
      <form onSubmit={(event) => void submit(event)}>
        <label>
          Token
          <input name="token" type="password" autocomplete="off" required={!lacksRights} placeholder={lacksRights ? "as now" : ""} />
        </label>
        <label>
          Namespaces (empty: all)
          <input name="namespaces" autocomplete="off" spellcheck={false} placeholder="shop, payments" defaultValue={caller().namespaces} />
        </label>
        <button type="submit" disabled={busy}>
          {lacksRights ? "Show" : "Sign in"}
        </button>
      </form>
      {error && <p role="alert">{error}</p>}
    </section>
  );
}
