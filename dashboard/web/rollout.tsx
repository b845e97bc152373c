// One workload: its nodes or replicas, what holds it up, and what to do.

import { useMemo } from "preact/hooks";
import { Diff } from "./diff";
import { ago, left, shortImage, words } from "./format";
import { Frame } from "./frame";
import { Grid, type Unit } from "./grid";
import { useLive } from "./live";
import { Card, Cause, Commands, Note, Progress, Since, TraceLink, useNow } from "./parts";
import { policyLook } from "./policies";
import { Policy, Stage } from "./policy";
import { go, nodePath, type Place, setQuery } from "./router";
import { Glyph, lookOf, ROLLOUTS, State, UNIT_ORDER, UNITS, unitOf } from "./states";
import { Table } from "./table";
import { Timeline } from "./timeline";
import { idOf, type Key, type NodeStatus, type PodStatus, type UnitState, type WorkloadStatus } from "./types";

type Grouping = "zone" | "pool" | "stage" | "cause" | "none";
const GROUPINGS: Grouping[] = ["zone", "pool", "stage", "cause", "none"];

/** A row of the table: a node, or a pod of a ReplicaSet or Deployment. */
interface Row {
  name: string;
  state: UnitState;
  node?: NodeStatus;
  pod?: PodStatus;
  reason: string;
  message: string;
}

function rowsOf(nodes: Iterable<NodeStatus>, pods: PodStatus[]): Row[] {
  const rows: Row[] = [];
  for (const node of nodes) {
    const pod = node.pods?.find((one) => one.problem) ?? node.pods?.[0];
    const state = unitOf(node.unitState);
    rows.push({
      name: node.nodeName,
      state,
      node,
      pod,
      reason: node.blockReason ?? pod?.problem?.reason ?? words(node.rule, "RULE_"),
      message: (state === "UNIT_STATE_BLOCKED" && pod?.problem?.message) || node.message || "",
    });
  }
  for (const pod of pods) {
    rows.push({
      name: pod.podName,
      state: unitOf(pod.unitState),
      pod,
      reason: pod.problem?.reason ?? "",
      message: pod.problem?.message ?? "",
    });
  }
  const rank = (row: Row) => UNIT_ORDER.indexOf(row.state);
  return rows.sort((a, b) => rank(a) - rank(b) || a.name.localeCompare(b.name, undefined, { numeric: true }));
}

function groupName(row: Row, by: Grouping): string {
  switch (by) {
    case "zone":
      return row.node?.zone || "no zone";
    case "pool":
      return row.node?.pool || "no pool";
    case "stage":
      return row.node?.rolloutStage || "no stage";
    case "cause":
      return row.node?.blockReason || (row.state === "UNIT_STATE_BLOCKED" && row.reason) || UNITS[row.state].word;
    case "none":
      return "all";
  }
}

function unitsOf(rows: Row[], by: Grouping, status: WorkloadStatus | undefined): Unit[] {
  const units: Unit[] = rows.map((row) => ({
    name: row.name,
    state: row.state,
    group: groupName(row, by),
    about: row.message,
    href: row.node && nodePath(row.name),
  }));
  // Of a ReplicaSet or Deployment only the pods that are not available are listed.
  if (status && status.kind !== "DaemonSet") {
    const done = status.counts?.done ?? 0;
    for (let number = 1; number <= done; number++) {
      units.push({ name: `replica ${number}`, state: "UNIT_STATE_DONE", group: groupOfDone(by), about: "available" });
    }
  }
  const order = (unit: Unit) => (by === "cause" ? 0 : UNIT_ORDER.indexOf(unit.state));
  return units.sort((a, b) => order(a) - order(b) || a.name.localeCompare(b.name, undefined, { numeric: true }));
}

const groupOfDone = (by: Grouping) => (by === "cause" ? "done" : by === "none" ? "all" : `no ${by}`);

function Facts({ status, now }: { status: WorkloadStatus; now: number }) {
  const { strategy, revisions = [] } = status;
  const current = revisions.find((one) => one.isCurrent);
  const others = revisions.filter((one) => !one.isCurrent && one.pods);
  const budget = [
    strategy?.maxUnavailable !== undefined && `${strategy.unavailable ?? 0} of ${strategy.maxUnavailable} unavailable`,
    strategy?.maxSurge && `${strategy.surging ?? 0} of ${strategy.maxSurge} surging`,
  ].filter(Boolean);
  const image = (images: string[] | undefined) => (images ?? []).map(shortImage).join(", ");
  const facts: [string, preact.ComponentChildren][] = [
    ["Revision", [...others.map((one) => `${one.number ?? "?"} (${image(one.images)}, ${one.pods} pods)`), `${current?.number ?? "new"} (${image(current?.images)}, ${current?.pods ?? 0} pods)`].join(" → ")],
    ["Strategy", [strategy?.type, ...budget].filter(Boolean).join(" · ") || "none"],
  ];
  if (status.stuckSince) facts.push(["Stuck for", <Since time={status.stuckSince} now={now} />]);
  else if (status.startedAt && status.state !== "ROLLOUT_STATE_COMPLETE") facts.push(["Began", `${ago(status.startedAt, now)} ago`]);
  // While a policy holds the rollout, the rate so far says nothing about the end.
  if (status.timeLeft && !policyLook(status)?.isHeld) facts.push(["Time left", left(status.timeLeft)]);
  if (status.readyPerMinute) facts.push(["Rate", `${status.readyPerMinute.toFixed(1)} ready per minute`]);
  if (status.writers?.length) facts.push(["Status written by", status.writers.map((one) => one.manager).join(", ")]);
  return (
    <dl class="facts">
      {facts.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}

export function Rollout({ place }: { place: Place }) {
  const [, kind = "", namespace = "", name = ""] = place.path;
  const key: Key = { kind, namespace, name };
  const live = useLive({ workload: key });
  const now = useNow();
  const workload = live.workloads.get(idOf(key));
  const status = workload?.status;
  const by = (place.query.get("group") as Grouping | null) ?? "zone";
  const only = place.query.get("state") as UnitState | null;
  const text = place.query.get("q") ?? "";
  const rows = useMemo(() => rowsOf(live.nodes.values(), live.pods), [live.version, live.nodes, live.pods]);
  const units = useMemo(
    () => unitsOf(only ? rows.filter((row) => row.state === only) : rows.filter((row) => row.state !== "UNIT_STATE_UNSPECIFIED"), by, only ? undefined : status),
    [rows, by, only, status],
  );
  const listed = useMemo(
    () =>
      rows.filter(
        (row) => (!only || row.state === only) && (!text || `${row.name} ${row.node?.rolloutStage ?? ""} ${row.reason} ${row.message}`.toLowerCase().includes(text.toLowerCase())),
      ),
    [rows, only, text],
  );
  const title = `${kind} ${namespace}/${name}`;
  const gone = live.cluster?.complete && !workload;
  const look = workload ? lookOf(workload) : ROLLOUTS.ROLLOUT_STATE_UNSPECIFIED;
  const isDaemonSet = kind === "DaemonSet";
  const word = isDaemonSet ? "nodes" : "replicas";
  const staged = rows.some((row) => row.node?.rolloutStage);
  const stages = useMemo(() => status?.policy?.stages?.map((stage) => stage.name), [status]);
  const counts = new Map(UNIT_ORDER.map((state) => [state, rows.filter((row) => row.state === state).length]));
  if (!isDaemonSet) counts.set("UNIT_STATE_DONE", status?.counts?.done ?? 0);
  return (
    <Frame live={live} title={title} place={place}>
      <div class="title">
        <p class="crumb">
          <a href="/">Overview</a> / {kind} / {namespace}
        </p>
        <h1>
          <Glyph look={look} size={18} /> {name} <span class="word">{gone ? "gone" : status && look.word}</span>
        </h1>
        {status?.secondOwner?.map((sentence) => (
          <p class="warning" key={sentence}>
            {sentence}
          </p>
        ))}
        {gone ? <Note>There is no {title} any more.</Note> : <p class="message">{status?.message ?? "Reading the cluster …"}</p>}
      </div>
      {status && (
        <>
          <div class="summary">
            <Progress counts={status.counts} />
            <Facts status={status} now={now} />
          </div>
          <Policy status={status} now={now} />
          <div class="columns">
            <div>
              <Card
                title={isDaemonSet ? "Nodes" : "Replicas"}
                id="units"
                aside={
                  isDaemonSet && (
                    <div class="switch" role="group" aria-label="Group by">
                      {GROUPINGS.filter((grouping) => grouping !== "stage" || staged).map((grouping) => (
                        <button key={grouping} type="button" aria-pressed={by === grouping} onClick={() => setQuery({ group: grouping === "zone" ? "" : grouping })}>
                          {grouping === "none" ? "all" : grouping}
                        </button>
                      ))}
                    </div>
                  )
                }
              >
                <div class="legend" role="group" aria-label="Show only">
                  {UNIT_ORDER.filter((state) => counts.get(state)).map((state) => (
                    <button key={state} type="button" aria-pressed={only === state} onClick={() => setQuery({ state: only === state ? "" : state })}>
                      <Glyph look={UNITS[state]} /> {UNITS[state].word} <b>{counts.get(state)}</b>
                    </button>
                  ))}
                </div>
                <Grid
                  units={units}
                  order={by === "stage" ? stages : undefined}
                  label={`${units.length} ${word} of ${title}${isDaemonSet ? ". The table below has the same" : ""}`}
                  onOpen={(unit) => unit.href && go(unit.href)}
                />
              </Card>
              <Card
                title={isDaemonSet ? "Table of nodes" : "Pods that are not available"}
                id="table"
                aside={
                  <input
                    id="filter"
                    type="search"
                    placeholder="Filter  /"
                    aria-label={`Filter ${word}`}
                    value={text}
                    onInput={(event) => setQuery({ q: event.currentTarget.value })}
                  />
                }
              >
                <Table
                  caption={isDaemonSet ? "Nodes" : "Pods"}
                  rows={listed}
                  id={(row) => row.name}
                  none={isDaemonSet ? "No node matches." : "Every pod is available."}
                  columns={[
                    { title: "State", of: (row) => <State look={UNITS[row.state]} /> },
                    {
                      title: isDaemonSet ? "Node" : "Pod",
                      class: "name",
                      of: (row) => (row.node ? <a href={nodePath(row.name)}>{row.name}</a> : row.name),
                    },
                    { title: isDaemonSet ? "Zone" : "Node", class: "dim", of: (row) => (row.node ? row.node.zone : row.pod?.nodeName && <a href={nodePath(row.pod.nodeName)}>{row.pod.nodeName}</a>) },
                    ...(staged ? [{ title: "Stage", class: "nowrap", of: (row: Row) => <Stage of={row.node} /> }] : []),
                    { title: "Reason", of: (row) => row.reason },
                    { title: "What it means", class: "wide", of: (row) => row.message },
                    { title: "Not ready for", class: "right", of: (row) => <Since time={row.pod?.notReadySince} now={now} /> },
                  ]}
                />
              </Card>
            </div>
            <div>
              {(status.causes?.length ?? 0) > 0 && (
                <Card title="What holds it up">
                  {status.causes!.map((cause) => (
                    <Cause key={`${cause.reason}${cause.container}${cause.message}`} of={cause} now={now} />
                  ))}
                  {status.lastRefusal && <p class="dim">{status.lastRefusal.message}</p>}
                </Card>
              )}
              <Card title="Commands">
                <Commands of={workload.commands} />
                <p>
                  <a href={`/what-if?${new URLSearchParams({ ...key })}`}>Play a change of it</a>
                </p>
                <TraceLink url={live.cluster?.traceUrl} of={key} />
              </Card>
              {(status.next?.length ?? 0) > 0 && (
                <Card title="What comes next">
                  <ul class="plain-list">
                    {status.next!.map((line) => (
                      <li key={line}>{line}</li>
                    ))}
                  </ul>
                </Card>
              )}
              <Card title="Timeline">{live.timeline && <Timeline of={live.timeline} desired={status.counts?.desired ?? 0} now={now} />}</Card>
            </div>
          </div>
          {kind !== "ReplicaSet" && <Diff of={key} place={place} revision={status.revisions?.find((one) => one.isCurrent)?.hash ?? ""} />}
        </>
      )}
    </Frame>
  );
}
