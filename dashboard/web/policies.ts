// How the states of a RolloutPolicy and of its stages look. The words are those of `nodewise status`.

import { BACK, BACK_TO_WALL, BARS, CLOCK, COLUMNS, CUT, FRAME, HALF, HOLLOW_DIAMOND, HOURGLASS, type Look, NO_ENTRY, RING, SQUARE } from "./shapes";
import type { PolicyRollout, PolicyStage, WorkloadStatus } from "./types";

interface PolicyLook extends Look {
  /** Whether it needs a person, or goes back: that is said also if pods cannot become available. */
  isBad?: boolean;
  /** Whether nothing that runs is replaced, and nothing is wrong. */
  isHeld?: boolean;
}

const HELD: PolicyLook = { word: "held", shape: HOLLOW_DIAMOND, colour: "--bad", isBad: true };

const STATES: Record<string, PolicyLook> = {
  Paused: { word: "paused", shape: BARS, colour: "--calm", isHeld: true },
  AwaitingApproval: { word: "awaiting approval", shape: FRAME, colour: "--warn", isHeld: true },
  Soaking: { word: "soaking", shape: HOURGLASS, colour: "--busy" },
  Analyzing: { word: "analyzing", shape: COLUMNS, colour: "--busy" },
  OutsideWindow: { word: "outside window", shape: CLOCK, colour: "--calm", isHeld: true },
  Partitioned: { word: "partitioned", shape: CUT, colour: "--calm", isHeld: true },
  AnalysisHeld: HELD,
  TooManyNodesNotReady: HELD,
  Invalid: HELD,
  RollingBack: { word: "rolling back", shape: BACK, colour: "--bad", isBad: true },
  RolledBack: { word: "rolled back", shape: BACK_TO_WALL, colour: "--bad", isBad: true },
  Rejected: { word: "rejected", shape: NO_ENTRY, colour: "--bad", isBad: true },
};

/** The look of a rollout by its policy. Undefined: the policy adds nothing to the state of the workload. */
export function policyLook(status: WorkloadStatus): PolicyLook | undefined {
  const state = status.policy?.state;
  const look = state !== undefined && Object.hasOwn(STATES, state) ? STATES[state] : undefined;
  // That pods cannot become available says more than that the policy waits.
  return look && (look.isBad || status.state !== "ROLLOUT_STATE_STUCK") ? look : undefined;
}

/** `ProgressDeadlineExceeded` → `progress deadline exceeded`. */
const spaced = (state: string): string => state.replace(/(?<=[a-z])(?=[A-Z])/g, " ").toLowerCase();

/** The look of the state that the policy itself has. */
export function stateLook(policy: PolicyRollout): Look {
  const state = policy.state ?? "";
  if (Object.hasOwn(STATES, state)) return STATES[state]!;
  if (state === "Complete") return { word: "complete", shape: SQUARE, colour: "--good" };
  if (state === "Progressing") return { word: "progressing", shape: HALF, colour: "--busy" };
  return { word: state ? spaced(state) : "not begun", shape: state ? HOLLOW_DIAMOND : RING, colour: state ? "--bad" : "--calm" };
}

const STAGES: Record<string, Look> = {
  Pending: { word: "pending", shape: RING, colour: "--calm" },
  Progressing: { word: "progressing", shape: HALF, colour: "--busy" },
  Complete: { word: "complete", shape: SQUARE, colour: "--good" },
  AwaitingApproval: STATES.AwaitingApproval!,
  OutsideWindow: STATES.OutsideWindow!,
  Analyzing: STATES.Analyzing!,
  Soaking: STATES.Soaking!,
};

export function stageLook(stage: PolicyStage): Look {
  const state = stage.state ?? "";
  return Object.hasOwn(STAGES, state) ? STAGES[state]! : { word: spaced(state) || "unknown", shape: RING, colour: "--odd" };
}

/** Names as Kubernetes allows them, and digests. What is put into a command to copy must be one: a status may hold any text. */
const isPlain = (text: string): boolean => /^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$/.test(text);

/** The commands for the approval that is waited for. The first shows what it approves, and asks. */
export function approvalCommands({ kind, namespace, name, policy }: WorkloadStatus): { purpose: string; line: string; changes: boolean }[] {
  const digest = policy?.pendingApproval?.digest ?? "";
  if (!policy || ![namespace, name, policy.name].every(isPlain)) return [];
  const commands = [
    { purpose: "Show the nodes and the plan, and approve", line: `nodewise rollout approve ${kind.toLowerCase()}/${name} -n ${namespace}`, changes: true },
  ];
  if (isPlain(digest)) {
    const line = `kubectl annotate rolloutpolicy ${policy.name} -n ${namespace} --overwrite nodewise.dev/approve=${digest}`;
    commands.push({ purpose: "The same with kubectl, without asking", line, changes: true });
  }
  return commands;
}
