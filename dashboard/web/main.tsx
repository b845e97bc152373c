import "./app.css";
import { render } from "preact";
import { useEffect } from "preact/hooks";
import { Frame } from "./frame";
import { useLive } from "./live";
import { Node } from "./node";
import { Overview } from "./overview";
import { Rollout } from "./rollout";
import { followLinks, go, type Place, usePlace } from "./router";
import { Takeover } from "./takeover";
import { WhatIf } from "./whatif";

const KEYS: Record<string, string> = { o: "/", n: "/node", w: "/what-if", t: "/takeover" };

/** `/` goes to the filter; `g` and then a letter goes to a view. */
function useKeys(): void {
  useEffect(() => {
    let prefix = 0;
    const press = (event: KeyboardEvent) => {
      const field = (event.target as Element).closest?.("input, textarea, select");
      if (field || event.ctrlKey || event.metaKey || event.altKey) return;
      if (event.key === "/") {
        const filter = document.getElementById("filter");
        if (filter) {
          event.preventDefault();
          filter.focus();
        }
      } else if (event.key === "g") {
        prefix = event.timeStamp;
      } else if (event.timeStamp - prefix < 1500 && KEYS[event.key]) {
        prefix = 0;
        go(KEYS[event.key]!);
      }
    };
    addEventListener("keydown", press);
    return () => removeEventListener("keydown", press);
  }, []);
}

function Missing({ place }: { place: Place }) {
  return (
    <Frame live={useLive(null)} title="Not found" place={place}>
      <h1>There is no such view</h1>
    </Frame>
  );
}

function App() {
  useKeys();
  const place = usePlace();
  switch (place.path[0]) {
    case undefined:
      return <Overview place={place} />;
    case "rollout":
      return <Rollout key={place.path.join("/")} place={place} />;
    case "node":
      return <Node place={place} />;
    case "what-if":
      return <WhatIf place={place} />;
    case "takeover":
      return <Takeover place={place} />;
    default:
      return <Missing place={place} />;
  }
}

followLinks();
render(<App />, document.getElementById("app")!);
