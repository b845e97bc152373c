// One node: every workload on it.

import { useEffect, useRef } from "preact/hooks";
import { ago, words } from "./format";
import { Frame } from "./frame";
import { useLive } from "./live";
import { Note, Since, TraceLink, useNow, WorkloadLink } from "./parts";
import { Stage } from "./policy";
import { go, nodePath, type Place } from "./router";
import { State, UNIT_ORDER, UNITS, unitOf } from "./states";
import { Table } from "./table";
import { idOf, type NodeStatus, type Placed, type PodProblem, type PodStatus } from "./types";

function Search() {
  const input = useRef<HTMLInputElement>(null);
  return (
    <form
      class="search"
      role="search"
      onSubmit={(event) => {
        event.preventDefault();
        const name = input.current!.value.trim();
        if (name) go(nodePath(name));
      }}
    >
      <label>
        Node <input id="filter" ref={input} type="search" required placeholder="Name of a node  /" />
      </label>
      <button type="submit">Show</button>
    </form>
  );
}

/** What all workloads say about the node itself. */
function Conditions({ node, now }: { node: NodeStatus; now: number }) {
  const conditions = node.conditions ?? [];
  return (
    <>
      <p class="message">
        {[node.zone && `zone ${node.zone}`, node.pool && `pool ${node.pool}`, node.unschedulable && "cordoned (unschedulable)"]
          .filter(Boolean)
          .join(" · ") || "no zone"}
      </p>
      {conditions.length === 0 ? (
        <Note>All conditions of the node are as they should be.</Note>
      ) : (
        <ul class="conditions">
          {conditions.map((condition) => (
            <li key={condition.type}>
              <b>
                {condition.type} is {condition.status}
              </b>{" "}
              {condition.reason} · for <Since time={condition.since} now={now} />
            </li>
          ))}
        </ul>
      )}
    </>
  );
}

/** The age of a pod, and what keeps it if it is being deleted. */
function about(pod: PodStatus, now: number): string {
  const age = pod.createdAt ? ago(pod.createdAt, now) : "";
  const deleted = pod.deletedAt ? [`deleted ${ago(pod.deletedAt, now)} ago`] : [];
  return [age, ...deleted, ...(pod.finalizers ?? [])].filter(Boolean).join(", ");
}

/** The reason, the restarts, and how the container ended last. */
function reason(problem: PodProblem | undefined): string {
  if (!problem) return "";
  const restarts = problem.restarts ? `${problem.restarts} restarts` : "";
  return [problem.reason, restarts, problem.lastExit].filter(Boolean).join(", ");
}

export function Node({ place }: { place: Place }) {
  const name = place.path[1] ?? "";
  const live = useLive(name ? { node: name } : null);
  const now = useNow();
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => heading.current?.focus(), [name]);
  const placed = live.placed ?? [];
  const traces = live.cluster?.traceUrl;
  const node = placed.find((one) => one.node)?.node;
  const state = (row: Placed) => unitOf(row.node?.unitState ?? row.pods[0]?.unitState);
  const rank = (row: Placed) => UNIT_ORDER.indexOf(state(row));
  const rows = [...placed].sort((a, b) => rank(a) - rank(b) || idOf(a.key).localeCompare(idOf(b.key)));
  const pods = (row: Placed) => row.node?.pods ?? row.pods;
  const problem = (row: Placed) => pods(row).find((pod) => pod.problem)?.problem;
  if (!name) {
    return (
      <Frame live={live} title="Node" place={place}>
        <div class="title">
          <h1>Node</h1>
          <p class="message">What every workload does on one node, and which rule decides it.</p>
        </div>
        <Search />
      </Frame>
    );
  }
  return (
    <Frame live={live} title={`Node ${name}`} place={place}>
      <div class="title">
        <p class="crumb">
          <a href="/node">Node</a>
        </p>
        <h1 ref={heading} tabIndex={-1}>
          {name}
        </h1>
        {node && <Conditions node={node} now={now} />}
      </div>
      <Table
        caption={`Workloads on ${name}`}
        rows={rows}
        id={(row) => idOf(row.key)}
        none={live.placed || live.cluster?.complete ? "No DaemonSet knows this node, and no pod on it waits." : "Reading the cluster …"}
        columns={[
          { title: "State", of: (row) => <State look={UNITS[state(row)]} /> },
          { title: "Workload", class: "name", of: (row) => <WorkloadLink of={row.key} /> },
          { title: "Kind", class: "dim", of: (row) => row.key.kind },
          ...(traces ? [{ title: "Traces", of: (row: Placed) => <TraceLink url={traces} of={row.key} node={name} /> }] : []),
          ...(placed.some((one) => one.node?.rolloutStage) ? [{ title: "Stage", class: "nowrap", of: (row: Placed) => <Stage of={row.node} /> }] : []),
          { title: "Rule", of: (row) => words(row.node?.rule, "RULE_") },
          {
            title: "Pod",
            of: (row) =>
              pods(row).map((pod) => (
                <div key={pod.podName} class="nowrap">
                  {pod.podName} {!pod.updated && <span class="tag">outdated</span>} <span class="dim">{about(pod, now)}</span>
                </div>
              )),
          },
          { title: "Reason", of: (row) => reason(problem(row)) },
          { title: "What it means", class: "wide", of: (row) => problem(row)?.message ?? row.node?.message },
          { title: "Not ready for", class: "right", of: (row) => <Since time={pods(row)[0]?.notReadySince} now={now} /> },
        ]}
      />
      <p class="note">Of ReplicaSets and Deployments the table has the pods that are not available.</p>
    </Frame>
  );
}
