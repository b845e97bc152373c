// The difference of the templates of two revisions.

import { useEffect, useState } from "preact/hooks";
import { Card, Note } from "./parts";
import { type Place, setQuery } from "./router";
import { request } from "./session";
import { shortImage } from "./format";
import type { Comparison, Key } from "./types";
import { parse } from "./visible";

export function Diff({ of: key, place, revision }: { of: Key; place: Place; revision: string }) {
  const from = place.query.get("from") ?? "";
  const to = place.query.get("to") ?? "";
  const [found, set] = useState<Comparison | string | null>(null);
  useEffect(() => {
    let current = true;
    const values: Record<string, string> = { ...key };
    if (from) values.from = from;
    if (to) values.to = to;
    request(`/diff?${new URLSearchParams(values)}`)
      .then(async (response) => parse(await response.text()))
      .then(
        (comparison) => current && set(comparison),
        (error) => current && set(String(error.message ?? error)),
      );
    return () => {
      current = false;
    };
  }, [key.kind, key.namespace, key.name, from, to, revision]);
  if (found === null) return null;
  if (typeof found === "string") return <Card title="Template">{<p role="alert">{found}</p>}</Card>;
  const option = (number: number) => {
    const one = found.revisions.find((each) => each.number === number)!;
    return `${number}: ${one.images.map(shortImage).join(", ")}${one.current ? " (present)" : ""}${one.cause ? ` – ${one.cause}` : ""}`;
  };
  const numbers = found.revisions.map((one) => one.number);
  const present = found.revisions.find((one) => one.current)?.number;
  const select = (name: "from" | "to", label: string, value: number | null | undefined) => (
    <label>
      {label}{" "}
      <select value={String(value ?? "")} onChange={(event) => setQuery({ [name]: event.currentTarget.value })}>
        {name === "to" && present === undefined && <option value="">present template</option>}
        {numbers.map((number) => (
          <option key={number} value={String(number)}>
            {option(number)}
          </option>
        ))}
      </select>
    </label>
  );
  return (
    <Card
      title="Template"
      aside={
        found.from !== null && (
          <div class="selects">
            {select("from", "from", found.from)}
            {select("to", "to", found.to ?? present)}
          </div>
        )
      }
    >
      {found.from === null ? (
        <Note>There is one revision, so there is nothing to compare.</Note>
      ) : found.lines.length === 0 ? (
        <Note>Both templates are equal.</Note>
      ) : (
        <pre class="diff" tabIndex={0} aria-label="Lines that differ">
          {found.lines.map(({ sign, text }, index) => (
            <span key={index} class={sign === "+" ? "add" : sign === "-" ? "remove" : ""}>
              {sign} {text}
              {"\n"}
            </span>
          ))}
        </pre>
      )}
    </Card>
  );
}
