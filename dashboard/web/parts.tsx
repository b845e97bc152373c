// Small parts that several views have.

import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import { rolloutPath } from "./router";
import type { BlockCause, Command, Counts, Key } from "./types";
import { Glyph, UNITS } from "./states";
import { ago, duration } from "./format";

/** The time, once a second. */
export function useNow(): number {
  const [now, set] = useState(Date.now);
  useEffect(() => {
    const timer = setInterval(() => set(Date.now()), 1000);
    return () => clearInterval(timer);
  }, []);
  return now;
}

export function Card(props: { title: string; id?: string; aside?: ComponentChildren; children: ComponentChildren; class?: string }) {
  const id = props.id ?? props.title.toLowerCase().replaceAll(" ", "-");
  return (
    <section class={`card ${props.class ?? ""}`} aria-labelledby={`${id}-title`}>
      <header>
        <h2 id={`${id}-title`}>{props.title}</h2>
        {props.aside}
      </header>
      {props.children}
    </section>
  );
}

/** The parts of bars, with their colours. What waits is calm. */
export const PARTS = [
  ["done", "--good"],
  ["progressing", "--busy"],
  ["blocked", "--bad"],
  ["waiting", "--idle"],
] as const;

/** A bar of counts, with its text. */
export function Progress({ counts }: { counts: Counts | undefined }) {
  const desired = counts?.desired ?? 0;
  const done = counts?.done ?? 0;
  const text = PARTS.filter(([name]) => counts?.[name]).map(([name]) => `${counts![name]} ${name}`);
  let from = 0;
  return (
    <span class="progress">
      <svg viewBox="0 0 100 6" preserveAspectRatio="none" role="img" aria-label={text.join(", ") || "nothing desired"}>
        <rect class="track" width="100" height="6" />
        {desired > 0 &&
          PARTS.map(([name, colour]) => {
            const width = (100 * (counts?.[name] ?? 0)) / desired;
            const x = from;
            from += width;
            return width > 0 && <rect key={name} x={x} width={width} height="6" fill={`var(${colour})`} />;
          })}
      </svg>
      <span class="number">
        {done}/{desired}
      </span>
    </span>
  );
}

export function WorkloadLink({ of }: { of: Key }) {
  return (
    <a href={rolloutPath(of)}>
      <span class="dim">{of.namespace}/</span>
      {of.name}
    </a>
  );
}

export function Cause({ of: cause, now }: { of: BlockCause; now: number }) {
  const units = (cause.units?.length ?? 0) + (cause.moreUnits ?? 0);
  const facts = [
    cause.container && `container ${cause.container}`,
    cause.restarts && `${cause.restarts} restarts`,
    cause.lastExit,
    cause.since && `for ${ago(cause.since, now)}`,
  ];
  return (
    <div class="cause">
      <h3>
        <Glyph look={UNITS.UNIT_STATE_BLOCKED} /> {cause.reason} <span class="count">{units || ""}</span>
      </h3>
      <p>{cause.message}</p>
      <p class="dim">{facts.filter(Boolean).join(" · ")}</p>
    </div>
  );
}

/** Commands to copy. The page itself changes nothing. */
export function Commands({ of: commands }: { of: Command[] }) {
  const [copied, set] = useState("");
  const copy = async (line: string) => {
    await navigator.clipboard.writeText(line);
    set(line);
    setTimeout(() => set(""), 2000);
  };
  return (
    <ul class="commands">
      {commands.map(({ purpose, line, changes }) => (
        <li key={line}>
          <div>
            {purpose}
            {changes && <span class="tag warn">changes the cluster</span>}
          </div>
          <div class="line">
            <code tabIndex={0} role="group" aria-label={purpose}>
              {line}
            </code>
            <button type="button" onClick={() => void copy(line)} aria-label={`Copy: ${line}`}>
              {copied === line ? "Copied" : "Copy"}
            </button>
          </div>
        </li>
      ))}
    </ul>
  );
}

export const Since = ({ time, now }: { time: string | undefined; now: number }) =>
  time ? (
    <time dateTime={time} title={new Date(time).toLocaleString()}>
      {duration((now - Date.parse(time)) / 1000)}
    </time>
  ) : null;

export const Note = ({ children }: { children: ComponentChildren }) => <p class="note">{children}</p>;

/** A link to the traces of a workload, if the server knows where they are. */
export function TraceLink({ url, of, node = "" }: { url: string | undefined; of: Key; node?: string }) {
  if (!url) return null;
  const values: Record<string, string> = { ...of, kind: of.kind.toLowerCase(), node };
  const href = url.replace(/\{(kind|namespace|name|node)\}/g, (_, key: string) => encodeURIComponent(values[key] ?? ""));
  return (
    <a href={href} target="_blank" rel="noreferrer">
      Traces
    </a>
  );
}
