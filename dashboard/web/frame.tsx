// What every view has around it.

import type { ComponentChildren } from "preact";
import { useEffect } from "preact/hooks";
import type { Live } from "./live";
import type { Place } from "./router";
import { Login } from "./login";
import { caller, setCaller } from "./session";
import { useDark } from "./theme";

const VIEWS = [
  ["/", "Overview", "o"],
  ["/node", "Node", "n"],
  ["/what-if", "What if", "w"],
  ["/takeover", "Takeover", "t"],
] as const;

export function Frame(props: { live: Live; title: string; place: Place; children: ComponentChildren }) {
  const { live } = props;
  const [dark, setDark] = useDark();
  const section = `/${props.place.path[0] ?? ""}`;
  useEffect(() => {
    document.title = `${props.title} · Nodewise`;
  }, [props.title]);
  const problem = live.problem || live.cluster?.problem || "";
  const namespaces = live.cluster?.namespaces.join(", ");
  const lacksRights = live.connected && live.cluster !== null && live.cluster.ended && !live.cluster.complete;
  const signOut = () => {
    setCaller({ token: "", namespaces: "" });
    location.reload();
  };
  const word = !live.connected ? "offline" : live.cluster?.dump ? "from files" : "live";
  return (
    <>
      <a class="skip" href="#main">
        Skip to the content
      </a>
      <header class="top">
        <a class="brand" href="/">
          <img src="/assets/icon.svg" alt="" width="20" height="20" /> Nodewise
        </a>
        <nav aria-label="Views">
          {VIEWS.map(([href, name, key]) => (
            <a key={href} href={href} data-key={key} aria-current={section === href || (href === "/" && section === "/rollout") ? "page" : undefined}>
              {name}
            </a>
          ))}
        </nav>
        <span class="cluster" title={live.cluster?.source}>
          {live.cluster?.source.replace(/^https?:\/\//, "")}
          {namespaces && ` · ${namespaces}`}
        </span>
        <span class={`live ${live.connected ? "on" : "off"}`} role="status">
          {word}
        </span>
        {caller().token && (
          <button type="button" class="plain" onClick={signOut}>
            Sign out
          </button>
        )}
        <button type="button" class="plain" onClick={() => setDark(!dark)}>
          {dark ? "Light" : "Dark"}
        </button>
      </header>
      {problem && (
        <div class="banner" role="alert">
          {problem}
        </div>
      )}
      <main id="main" tabIndex={-1}>
        {live.unauthorized ? <Login /> : lacksRights ? <Login lacksRights key="rights" /> : props.children}
      </main>
    </>
  );
}
