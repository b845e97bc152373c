// What is shown to a browser that is not signed in.

import { useEffect, useState } from "preact/hooks";
import { clearToken, setToken, signedIn } from "./session";

export function Login() {
  const [state, set] = useState<{ mode: string; error?: string } | null>(null);
  useEffect(() => {
    signedIn().then(
      (found) => (found.ok ? location.reload() : set(found)),
      (error) => set({ mode: "session", error: String(error) }),
    );
  }, []);
  if (!state) return null;
  if (state.mode === "session") {
    return (
      <section class="card login">
        <h1>Not signed in</h1>
        <p>
          Open the URL that <code>nodewise dashboard</code> has printed. It has a token that signs this browser in. Then links like this one
          work.
        </p>
      </section>
    );
  }
  const submit = async (event: SubmitEvent) => {
    event.preventDefault();
    const token = new FormData(event.currentTarget as HTMLFormElement).get("token");
    setToken(String(token).trim());
    const found = await signedIn();
    if (found.ok) location.reload();
    else {
      clearToken();
      set(found);
    }
  };
  return (
    <section class="card login">
      <h1>Sign in</h1>
      <p>
        Paste a bearer token of the cluster, for example from <code>kubectl create token NAME</code>. The page shows what this token may
        read. It stays in this tab.
      </p>
      <form onSubmit={(event) => void submit(event)}>
        <label>
          Token <input name="token" type="password" autocomplete="off" required />
        </label>
        <button type="submit">Sign in</button>
      </form>
      {state.error && <p role="alert">{state.error}</p>}
    </section>
  );
}
