// The RolloutPolicy of a DaemonSet: what it waits for, its stages and their checks, the approval, and the nodes that matter.

import { ago, duration } from "./format";
import { Card, Commands, Progress, Since } from "./parts";
import { approvalCommands, stageLook, stateLook } from "./policies";
import { nodePath } from "./router";
import { Glyph, State, UNITS } from "./states";
import { Table } from "./table";
import type { NodeStatus, PolicyApproval, PolicyCheck, PolicyNode, PolicyRollout, PolicyStage, WorkloadStatus } from "./types";

/** Whether the approval is for this stage, or for all waves of it. */
const isFor = (pending: PolicyApproval | undefined, stage: PolicyStage): pending is PolicyApproval =>
  pending?.stage !== undefined && stage.state === "AwaitingApproval" && (stage.name === pending.stage || stage.name.startsWith(`${pending.stage}/`));

/** A number with a shape if it is one of failures, so that it does not depend on the colour. */
function Failed({ number, limit }: { number: number | undefined; limit?: number }) {
  const most = limit === undefined ? "" : ` (at most ${limit})`;
  return number ? (
    <span class="bad nowrap">
      <Glyph look={UNITS.UNIT_STATE_BLOCKED} /> {number}
      {most}
    </span>
  ) : (
    <>0{most}</>
  );
}

function Soak({ stage, now }: { stage: PolicyStage; now: number }) {
  if (!stage.soakEndsAt) return null;
  const left = (Date.parse(stage.soakEndsAt) - now) / 1000;
  return (
    <time dateTime={stage.soakEndsAt} title={new Date(stage.soakEndsAt).toLocaleString()}>
      {left > 0 ? `${duration(left)} left` : "over"}
    </time>
  );
}

function Stages({ of: policy, now }: { of: PolicyRollout; now: number }) {
  const pending = policy.pendingApproval;
  const counts = ({ nodes = 0, updated = 0, available = 0, failed = 0 }: PolicyStage) => {
    const begun = Math.max(updated, available);
    const blocked = Math.min(failed, begun - available);
    return { desired: nodes, done: available, progressing: begun - available - blocked, blocked, waiting: Math.max(0, nodes - begun) };
  };
  return (
    <Table
      caption="Stages"
      rows={policy.stages ?? []}
      id={(stage) => stage.name}
      none="No rollout is going on."
      columns={[
        { title: "Stage", class: "name", of: (stage) => stage.name },
        { title: "State", of: (stage) => <State look={stageLook(stage)} /> },
        { title: "Updated", class: "right", of: (stage) => `${stage.updated ?? 0}/${stage.nodes ?? 0}` },
        { title: "Available", of: (stage) => <Progress counts={counts(stage)} /> },
        { title: "Exempt", class: "right", of: (stage) => stage.exempt ?? 0 },
        { title: "Failed", class: "right", of: (stage) => <Failed number={stage.failed} /> },
        { title: "Soak", class: "right", of: (stage) => <Soak stage={stage} now={now} /> },
        { title: "Approval", of: (stage) => isFor(pending, stage) && `waiting${pending.since ? ` for ${ago(pending.since, now)}` : ""}` },
        { title: "Began", class: "right", of: (stage) => stage.startedAt && `${ago(stage.startedAt, now)} ago` },
      ]}
    />
  );
}

interface Check extends PolicyCheck {
  stage: string;
}

function Checks({ of: stages, now }: { of: PolicyStage[]; now: number }) {
  const checks: Check[] = stages.flatMap((stage) => (stage.checks ?? []).map((check) => ({ ...check, stage: stage.name })));
  if (!checks.length) return null;
  return (
    <>
      <h3>Checks</h3>
      <Table
        caption="Checks"
        rows={checks}
        id={(check) => `${check.stage} ${check.name}`}
        none=""
        columns={[
          { title: "Check", class: "name", of: (check) => check.name },
          { title: "Stage", of: (check) => check.stage },
          { title: "Last value", of: (check) => check.value },
          { title: "Measured", class: "right", of: (check) => `${check.measurements ?? 0} of ${check.count ?? 0}` },
          { title: "Passed", class: "right", of: (check) => check.successful ?? 0 },
          { title: "Failed", class: "right", of: (check) => <Failed number={check.failed} limit={check.failureLimit ?? 0} /> },
          { title: "Inconclusive", class: "right", of: (check) => check.inconclusive ?? 0 },
          { title: "Could not be made", class: "right", of: (check) => check.errors ?? 0 },
          { title: "What it said", class: "wide", of: (check) => check.message },
          { title: "Ago", class: "right", of: (check) => <Since time={check.at} now={now} /> },
        ]}
      />
    </>
  );
}

function Approval({ status, now }: { status: WorkloadStatus; now: number }) {
  const pending = status.policy?.pendingApproval;
  if (!pending) return null;
  return (
    <>
      <h3>Approval</h3>
      <p>
        Stage {pending.stage} on {pending.nodes ?? 0} {pending.nodes === 1 ? "node" : "nodes"} waits{pending.since && <> for <Since time={pending.since} now={now} /></>}. Its digest is{" "}
        <code>{pending.digest}</code>.
      </p>
      {pending.outdatedDigest && (
        <p class="warning">
          The policy has an approval of <code>{pending.outdatedDigest}</code>, which is not for what this stage would do now.
        </p>
      )}
      <Commands of={approvalCommands(status)} />
    </>
  );
}

function Nodes({ title, of: nodes, more = 0 }: { title: string; of: PolicyNode[] | undefined; more?: number }) {
  if (!nodes?.length) return null;
  return (
    <>
      <h3>{title}</h3>
      <Table
        caption={title}
        rows={nodes}
        id={(node) => node.name}
        none=""
        columns={[
          { title: "Node", class: "name", of: (node) => <a href={nodePath(node.name)}>{node.name}</a> },
          { title: "Why", class: "wide", of: (node) => node.reason },
        ]}
      />
      {more > 0 && <p class="note">and {more} more</p>}
    </>
  );
}

/** The stage of a node. */
export function Stage({ of: node }: { of: NodeStatus | null | undefined }) {
  return (
    <>
      {node?.rolloutStage}
      {node?.rolloutExempt && <span class="tag">exempt</span>}
    </>
  );
}

/** The budget of the present stage, within that of the DaemonSet, as a number of nodes. */
function budgetOf({ strategy }: WorkloadStatus, policy: PolicyRollout): [string, string][] {
  const stage = policy.stages?.find((one) => one.startedAt && one.state !== "Complete");
  if (!stage || !strategy) return [];
  const budget = strategy.maxSurge
    ? `${strategy.surging ?? 0} of ${strategy.maxSurge} nodes with two pods`
    : strategy.maxUnavailable && `${strategy.unavailable ?? 0} of ${strategy.maxUnavailable} nodes without an available pod`;
  return budget ? [["Budget", `${budget} (stage ${stage.name})`]] : [];
}

/** What the policy says beside its state. */
function factsOf(status: WorkloadStatus, policy: PolicyRollout): [string, string][] {
  const soaking = policy.stages?.find((stage) => stage.soakEndsAt);
  const facts = budgetOf(status, policy);
  if (soaking) facts.push(["Soaks until", `${new Date(soaking.soakEndsAt!).toLocaleString()} (stage ${soaking.name})`]);
  if (policy.stableHash) facts.push(["Stable revision", `${policy.stableNumber ?? "?"} (${policy.stableHash})`]);
  facts.push(["On failure", policy.onFailure === "Rollback" ? "goes back to the stable revision" : "waits for a person"]);
  if (policy.requests?.length) facts.push(["Asked for by annotation", policy.requests.join(", ")]);
  return facts;
}

export function Policy({ status, now }: { status: WorkloadStatus; now: number }) {
  const policy = status.policy;
  if (!policy) return null;
  const { rejection, notAccepted, message } = policy;
  const warnings = [
    ...(policy.others ?? []).map((other) => `RolloutPolicy ${other} targets it as well and does not count.`),
    ...(policy.paused && policy.state !== "Paused" ? ["The policy is paused."] : []),
    ...(notAccepted && notAccepted !== message ? [notAccepted] : []),
  ];
  return (
    <Card title={`RolloutPolicy ${policy.name}`} id="policy" class="policy" aside={<State look={stateLook(policy)} />}>
      {message && <p class="waits">{message}</p>}
      {rejection?.message && rejection.message !== message && (
        <p>
          Rejected{rejection.at && ` ${ago(rejection.at, now)} ago`}: {rejection.message}
        </p>
      )}
      {warnings.map((warning) => (
        <p class="warning" key={warning}>
          {warning}
        </p>
      ))}
      <dl class="facts">
        {factsOf(status, policy).map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
      </dl>
      <Stages of={policy} now={now} />
      <Checks of={policy.stages ?? []} now={now} />
      <Approval status={status} now={now} />
      <div class="pair">
        <div>
          <Nodes title="Held up by" of={policy.blocking} />
        </div>
        <div>
          <Nodes title="Exempt" of={policy.exempt} more={policy.moreExempt} />
        </div>
      </div>
    </Card>
  );
}
