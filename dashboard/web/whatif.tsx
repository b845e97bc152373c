// Plays a change before it is made.

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { duration } from "./format";
import { Frame } from "./frame";
import { Grid, type Unit } from "./grid";
import { useLive } from "./live";
import { Card, Note } from "./parts";
import { go, nodePath, type Place } from "./router";
import { request } from "./session";
import { unitOf } from "./states";
import { Table } from "./table";
import { idOf, type Key, type NodeStatus, type UnitState, type Workload } from "./types";
import { parse } from "./visible";

interface Step {
  seconds: number;
  desired: number;
  updated: number;
  available: number;
  unavailable: number;
  surging: number;
  worstUnavailable: number;
  maxUnavailable: number;
  maxSurge: number;
  changes: { verb: "create" | "patch" | "delete"; resource: string; name: string; node?: string; message: string }[];
}

interface Begin {
  key: Key;
  /** Whether every pod is of an older template then. */
  templateChanges: boolean;
  differences: string[];
  readyAfterSeconds: number;
  readyAfterOrigin: string;
  // What is assumed about the RolloutPolicy, in sentences.
  aboutPolicy: string[];
}

interface End {
  result: { result: "done" | "stuck" | "boundReached" | "cancelled"; cause?: string; blocking?: string[]; bound?: string };
  seconds: number;
  steps: number;
  worstUnavailable: number;
  failedPods: number;
  failingNodes: string[];
}

interface Play {
  begin: Begin;
  steps: Step[];
  end: End | null;
}

/** The state of a node before the first step. */
function before(state: UnitState, play: Play): UnitState {
  const isDesired = state !== "UNIT_STATE_MUST_NOT_RUN";
  return isDesired && play.begin.templateChanges ? "UNIT_STATE_WAITING" : state;
}

/** The state of each node of a play after a step. */
function statesAt(play: Play, nodes: NodeStatus[], step: number): Map<string, UnitState> {
  const now = play.steps[step]?.seconds ?? 0;
  const stuck = new Set(play.end?.failingNodes ?? []);
  const states = new Map(nodes.map((node) => [node.nodeName, before(unitOf(node.unitState), play)]));
  for (const { seconds, changes } of play.steps.slice(0, step + 1)) {
    for (const { verb, resource, node } of changes) {
      if (resource !== "pods" || !node) continue;
      const ready = seconds + play.begin.readyAfterSeconds;
      if (verb === "delete") states.set(node, "UNIT_STATE_PROGRESSING");
      if (verb === "create") {
        const late = stuck.has(node) && now >= ready;
        states.set(node, late ? "UNIT_STATE_BLOCKED" : now >= ready && !stuck.has(node) ? "UNIT_STATE_DONE" : "UNIT_STATE_PROGRESSING");
      }
    }
  }
  return states;
}

/** The replicas of a step. Which of them is which is not known: there are as many of each state. */
function replicasAt(play: Play, index: number): Unit[] {
  const step = play.steps[index];
  if (!step) return [];
  const older = Math.max(0, step.desired + step.surging - step.updated);
  const done = Math.max(0, step.available - older);
  const isStuck = play.end?.result.result === "stuck" && index === play.steps.length - 1;
  const late: UnitState = isStuck ? "UNIT_STATE_BLOCKED" : "UNIT_STATE_PROGRESSING";
  const group = "replicas";
  return Array.from({ length: step.desired }, (_, at) => {
    const state = at < done ? "UNIT_STATE_DONE" : at < step.updated ? late : "UNIT_STATE_WAITING";
    return { name: `replica ${at + 1}`, state, group, about: "in the play" };
  });
}

/** A string in YAML. Without quotes, 123 would be a number. */
const quoted = (text: string) => JSON.stringify(text);

function manifestOf(workload: Workload): string {
  const { kind, namespace, name } = workload.key;
  const current = workload.status.revisions?.find((one) => one.isCurrent);
  const containers = (current?.images ?? []).map((one) => {
    const at = one.indexOf("=");
    return `        - name: ${quoted(one.slice(0, at))}\n          image: ${quoted(one.slice(at + 1))}`;
  });
  return `apiVersion: apps/v1
kind: ${kind}
metadata:
  namespace: ${quoted(namespace)}
  name: ${quoted(name)}
spec:
  template:
    spec:
      containers:
${containers.join("\n")}
`;
}

async function play(change: object, signal: AbortSignal, show: (play: Play) => void): Promise<void> {
  const response = await request("/what-if", {
    method: "POST",
    body: JSON.stringify(change),
    headers: { "Content-Type": "application/json" },
    signal,
  });
  const reader = (response.body as ReadableStream<BufferSource>).pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  let played: Play | null = null;
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const lines = (rest + value).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) {
      const message = parse(line);
      if (message.error) throw new Error(message.error);
      if (message.begin) played = { begin: message.begin, steps: [], end: null };
      else if (message.step) played!.steps.push(message.step);
      else if (message.end) played!.end = message.end;
    }
    if (played) show({ ...played });
  }
}

function verdict({ result, seconds, worstUnavailable }: End, unit: string): string {
  const worst = `at worst ${worstUnavailable} ${unit}${worstUnavailable === 1 ? "" : "s"} without an available pod`;
  switch (result.result) {
    case "done":
      return `Done after ${duration(seconds)}, ${worst}.`;
    case "stuck":
      return `Stuck after ${duration(seconds)}, ${worst}: ${result.cause}`;
    case "boundReached":
      return `Not done after ${duration(seconds)}, ${worst}. The play ends here.`;
    default:
      return "The play was stopped.";
  }
}

export function WhatIf({ place }: { place: Place }) {
  const [played, setPlayed] = useState<Play | null>(null);
  const wanted = place.query.get("name")
    ? { kind: place.query.get("kind") ?? "DaemonSet", namespace: place.query.get("namespace") ?? "default", name: place.query.get("name")! }
    : null;
  const key = played?.begin.key ?? wanted;
  const isDaemonSet = played?.begin.key.kind === "DaemonSet";
  const live = useLive(key ? { workload: key } : null);
  const [yaml, setYaml] = useState("");
  const [problem, setProblem] = useState("");
  const [running, setRunning] = useState(false);
  const [step, setStep] = useState(0);
  const [moving, setMoving] = useState(false);
  const stop = useRef<AbortController | null>(null);
  useEffect(() => () => stop.current?.abort(), []);
  const known = wanted && live.workloads.get(idOf(wanted));
  useEffect(() => {
    if (known && !yaml) setYaml(manifestOf(known));
  }, [known]);
  const steps = played?.steps.length ?? 0;
  useEffect(() => {
    if (!moving || steps === 0) return;
    const timer = setInterval(() => setStep((at) => Math.min(at + 1, steps - 1)), Math.max(40, Math.min(600, 8000 / steps)));
    return () => clearInterval(timer);
  }, [moving, steps]);
  useEffect(() => {
    if (moving && played?.end && step >= steps - 1) setMoving(false);
  }, [step, steps, moving]);
  const run = async (event: SubmitEvent) => {
    event.preventDefault();
    const form = new FormData(event.currentTarget as HTMLFormElement);
    stop.current?.abort();
    const abort = (stop.current = new AbortController());
    setProblem("");
    setPlayed(null);
    setStep(0);
    setRunning(true);
    const ready = String(form.get("ready") ?? "");
    const change = {
      yaml,
      failingShare: Number(form.get("failing") ?? 0) / 100,
      ...(ready ? { readyAfterSeconds: Number(ready) } : {}),
    };
    try {
      await play(change, abort.signal, setPlayed);
      setMoving(true);
    } catch (error) {
      if (!abort.signal.aborted) setProblem(error instanceof Error ? error.message : String(error));
    } finally {
      setRunning(false);
    }
  };
  const nodes = useMemo(() => [...live.nodes.values()].filter((node) => node.unitState), [live.version]);
  const units = useMemo((): Unit[] => {
    if (!played) return [];
    if (!isDaemonSet) return replicasAt(played, step);
    const states = statesAt(played, nodes, step);
    const named = nodes.map(({ nodeName: name, zone }) => {
      const state = states.get(name)!;
      return { name, state, group: zone || "no zone", about: "in the play", href: nodePath(name) };
    });
    return named.sort((a, b) => a.name.localeCompare(b.name, undefined, { numeric: true }));
  }, [played, nodes, step, isDaemonSet]);
  const at = played?.steps[step];
  return (
    <Frame live={live} title="What if" place={place}>
      <div class="title">
        <h1>What if</h1>
        <p class="message">
          Paste the changed manifest of a workload. The planner plays the rollout to its end on a copy of the cluster. Nothing is written.
        </p>
      </div>
      <div class="columns play">
        <div>
          <Card title="Change">
            <form class="change" onSubmit={(event) => void run(event)}>
              <label>
                Manifest
                <textarea
                  rows={18}
                  spellcheck={false}
                  required
                  value={yaml}
                  onInput={(event) => setYaml(event.currentTarget.value)}
                  placeholder={"apiVersion: apps/v1\nkind: DaemonSet\n…\n\nFields that it does not name keep their values."}
                />
              </label>
              <div class="options">
                <label>
                  Ready after (s) <input name="ready" type="number" min="0" max="86400" step="any" placeholder="as now" />
                </label>
                <label>
                  Pods that fail (%) <input name="failing" type="number" min="0" max="100" step="any" value="0" />
                </label>
                <button type="submit" class="primary" disabled={running}>
                  {running ? "Playing …" : "Play"}
                </button>
              </div>
            </form>
            {problem && (
              <p role="alert" class="problem">
                {problem}
              </p>
            )}
          </Card>
          {played && (
            <Card title="What differs">
              {played.begin.differences.length === 0 ? (
                <Note>Nothing differs. What remains of the present rollout is played.</Note>
              ) : (
                <ul class="plain-list mono">
                  {played.begin.differences.map((line) => (
                    <li key={line}>{line}</li>
                  ))}
                </ul>
              )}
              <p class="dim">
                Pods are ready after {duration(played.begin.readyAfterSeconds)}: {played.begin.readyAfterOrigin}.
              </p>
              {played.begin.aboutPolicy.map((sentence) => (
                <p key={sentence} class="dim">
                  Assumed: {sentence}.
                </p>
              ))}
            </Card>
          )}
        </div>
        <div>
          <Card title="Play" aside={at && <span class="dim">{duration(at.seconds)} after the change</span>}>
            {!played ? (
              <Note>The nodes or replicas are shown here, step by step.</Note>
            ) : (
              <>
                {played.end && (
                  <p class="verdict" role="status">
                    {verdict(played.end, isDaemonSet ? "node" : "replica")}
                  </p>
                )}
                <div class="player">
                  <button type="button" onClick={() => (step >= steps - 1 && setStep(0), setMoving(!moving))}>
                    {moving ? "Pause" : "Play again"}
                  </button>
                  <input
                    type="range"
                    min={0}
                    max={Math.max(0, steps - 1)}
                    value={step}
                    aria-label="Step"
                    aria-valuetext={at ? `step ${step + 1} of ${steps}, ${duration(at.seconds)}` : ""}
                    onInput={(event) => (setMoving(false), setStep(Number(event.currentTarget.value)))}
                  />
                  <span class="number">
                    {Math.min(step + 1, steps)}/{steps}
                  </span>
                </div>
                {at && (
                  <p class="dim">
                    {at.updated} of {at.desired} updated · {at.unavailable} unavailable of {at.maxUnavailable} allowed
                  </p>
                )}
                <Grid units={units} label={`${units.length} ${isDaemonSet ? "nodes" : "replicas"} in the play`} onOpen={(unit) => unit.href && go(unit.href)} />
              </>
            )}
          </Card>
          {played && (
            <Card title="Steps">
              <Table
                caption="Steps"
                rows={played.steps.map((one, index) => ({ ...one, index }))}
                id={(row) => String(row.index)}
                none="The play has no steps."
                columns={[
                  { title: "After", class: "nowrap", of: (row) => duration(row.seconds) },
                  { title: "Updated", class: "right", of: (row) => `${row.updated}/${row.desired}` },
                  { title: "Unavailable", class: "right", of: (row) => row.unavailable },
                  { title: "What is done", class: "wide", of: (row) => said(row) },
                ]}
              />
            </Card>
          )}
        </div>
      </div>
    </Frame>
  );
}

/** The changes of a step in one line. */
function said({ changes }: Step): string {
  const groups = new Map<string, string[]>();
  for (const { verb, resource, node, name } of changes) {
    const what = `${verb} ${resource}`;
    groups.set(what, [...(groups.get(what) ?? []), node || name]);
  }
  return [...groups].map(([what, on]) => `${what} (${on.length}): ${on.slice(0, 4).join(", ")}${on.length > 4 ? " …" : ""}`).join("; ");
}
