// Paths are permalinks. The state of a view that others should see, such as a filter, is in the query.

import { useEffect, useState } from "preact/hooks";
import type { Key } from "./types";

export interface Place {
  path: string[];
  query: URLSearchParams;
}

const here = (): Place => ({
  path: location.pathname.split("/").filter(Boolean).map(decodeURIComponent),
  query: new URLSearchParams(location.search),
});

const MOVED = "nodewise-moved";

export function go(href: string): void {
  history.pushState(null, "", href);
  dispatchEvent(new Event(MOVED));
}

/** Changes values of the query. Empty ones are removed. */
export function setQuery(values: Record<string, string>): void {
  const query = new URLSearchParams(location.search);
  for (const [name, value] of Object.entries(values)) {
    if (value) query.set(name, value);
    else query.delete(name);
  }
  const text = query.toString();
  history.replaceState(null, "", location.pathname + (text ? `?${text}` : ""));
  dispatchEvent(new Event(MOVED));
}

export function usePlace(): Place {
  const [place, set] = useState(here);
  useEffect(() => {
    const moved = () => set(here());
    addEventListener("popstate", moved);
    addEventListener(MOVED, moved);
    return () => {
      removeEventListener("popstate", moved);
      removeEventListener(MOVED, moved);
    };
  }, []);
  return place;
}

/** Links inside the page do not load it again. */
export function followLinks(): void {
  document.addEventListener("click", (event) => {
    const link = (event.target as Element).closest?.("a");
    const plain = event.button === 0 && !event.metaKey && !event.ctrlKey && !event.shiftKey && !event.altKey;
    if (!link || !plain || event.defaultPrevented || link.origin !== location.origin || link.target) return;
    if (link.hash && link.pathname === location.pathname) return;
    event.preventDefault();
    go(link.pathname + link.search);
  });
}

const part = encodeURIComponent;
export const rolloutPath = (key: Key): string => `/rollout/${part(key.kind)}/${part(key.namespace)}/${part(key.name)}`;
export const nodePath = (name: string): string => `/node/${part(name)}`;
