// Light or dark: as the system says, or as chosen here.

import { useEffect, useState } from "preact/hooks";

/** "" is what the system says. */
type Theme = "light" | "dark" | "";

const KEY = "nodewise-theme";
/** Pictures read their colours when they are drawn. */
export const THEMED = "nodewise-themed";

export function useDark(): [boolean, (dark: boolean) => void] {
  const [theme, set] = useState<Theme>(() => (localStorage.getItem(KEY) as Theme) ?? "");
  useEffect(() => {
    if (theme) document.documentElement.dataset.theme = theme;
    else delete document.documentElement.dataset.theme;
    localStorage.setItem(KEY, theme);
    dispatchEvent(new Event(THEMED));
  }, [theme]);
  const dark = theme ? theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  return [dark, (wanted) => set(wanted ? "dark" : "light")];
}
