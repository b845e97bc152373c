// How states look: a shape, a colour and a word each.

import { policyLook } from "./policies";
import { BARS, CROSS, DIAMOND, DOT, HALF, type Look, RING, SQUARE, TWO } from "./shapes";
import type { RolloutState, UnitState, Workload } from "./types";

export const UNITS: Record<UnitState, Look> = {
  UNIT_STATE_BLOCKED: { word: "blocked", shape: DIAMOND, colour: "--bad" },
  UNIT_STATE_PROGRESSING: { word: "progressing", shape: HALF, colour: "--busy" },
  UNIT_STATE_WAITING: { word: "waiting", shape: RING, colour: "--calm" },
  UNIT_STATE_DONE: { word: "done", shape: SQUARE, colour: "--good" },
  UNIT_STATE_MUST_NOT_RUN: { word: "must not run", shape: CROSS, colour: "--odd" },
  UNIT_STATE_UNSPECIFIED: { word: "not selected", shape: DOT, colour: "--calm" },
};

/** The worst first. */
export const UNIT_ORDER = Object.keys(UNITS) as UnitState[];

export const unitOf = (state: UnitState | undefined): UnitState => state ?? "UNIT_STATE_UNSPECIFIED";

export const ROLLOUTS: Record<RolloutState, Look> = {
  ROLLOUT_STATE_STUCK: { word: "stuck", shape: DIAMOND, colour: "--bad" },
  ROLLOUT_STATE_PROGRESSING: { word: "rolling", shape: HALF, colour: "--busy" },
  ROLLOUT_STATE_WAITING_FOR_DELETE: { word: "waiting for deletes", shape: RING, colour: "--calm" },
  ROLLOUT_STATE_PAUSED: { word: "paused", shape: BARS, colour: "--calm" },
  ROLLOUT_STATE_COMPLETE: { word: "complete", shape: SQUARE, colour: "--good" },
  ROLLOUT_STATE_UNSPECIFIED: { word: "unknown", shape: CROSS, colour: "--odd" },
};

/** The groups of the overview. A workload that diverges is also in another group. */
export type Group = "stuck" | "failing" | "rolling" | "held" | "diverging" | "fine";

export const GROUPS: Record<Group, Look & { about: string }> = {
  stuck: { ...ROLLOUTS.ROLLOUT_STATE_STUCK, about: "nothing happens until someone removes a cause" },
  failing: { word: "failing", shape: DIAMOND, colour: "--warn", about: "some pods fail, and the rollout goes on" },
  rolling: { ...ROLLOUTS.ROLLOUT_STATE_PROGRESSING, about: "pods are being replaced" },
  held: { word: "held", shape: BARS, colour: "--calm", about: "paused, or waiting for deletes, an approval or a window" },
  diverging: { word: "diverging", shape: TWO, colour: "--odd", about: "the planner would do what is not done" },
  fine: { ...ROLLOUTS.ROLLOUT_STATE_COMPLETE, word: "fine", about: "every pod is current and available" },
};

export function groupOf(workload: Workload): Group {
  const { state, causes } = workload.status;
  switch (state) {
    case "ROLLOUT_STATE_STUCK":
      return "stuck";
    case "ROLLOUT_STATE_COMPLETE":
      return "fine";
    case "ROLLOUT_STATE_PROGRESSING":
      if (causes?.length) return "failing";
      return policyLook(workload.status)?.isHeld ? "held" : "rolling";
    case "ROLLOUT_STATE_PAUSED":
    case "ROLLOUT_STATE_WAITING_FOR_DELETE":
      return "held";
    default:
      return "failing";
  }
}

/** The look of a workload: its state, what its RolloutPolicy says about it, or that pods of it fail. */
export function lookOf(workload: Workload): Look {
  const { status } = workload;
  const policy = policyLook(status);
  if (policy?.isBad) return policy;
  if (groupOf(workload) === "failing" && status.state) return GROUPS.failing;
  return policy ?? ROLLOUTS[status.state ?? "ROLLOUT_STATE_UNSPECIFIED"];
}

export function Glyph({ look, size = 12 }: { look: Look; size?: number }) {
  return (
    <svg class="glyph" width={size} height={size} viewBox="-.5 -.5 11 11" aria-hidden="true">
      <path d={look.shape} fill={`var(${look.colour})`} fill-rule="evenodd" />
    </svg>
  );
}

export function State({ look }: { look: Look }) {
  return (
    <span class="state">
      <Glyph look={look} /> {look.word}
    </span>
  );
}
