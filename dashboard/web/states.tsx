// How states look: a shape, a colour and a word each. The shapes are paths in a box of 10 by 10, for canvas and SVG.

import type { RolloutState, UnitState, Workload } from "./types";

export interface Look {
  word: string;
  shape: string;
  /** The name of a CSS variable with the colour. */
  colour: string;
}

const SQUARE = "M2 1h6a1 1 0 0 1 1 1v6a1 1 0 0 1-1 1H2a1 1 0 0 1-1-1V2a1 1 0 0 1 1-1z";
const HALF = "M5 .8a4.2 4.2 0 1 1 0 8.4a4.2 4.2 0 1 1 0-8.4zM5 2v6a3 3 0 0 1 0-6z";
const RING = "M5 1.2a3.8 3.8 0 1 1 0 7.6a3.8 3.8 0 1 1 0-7.6zM5 2.6a2.4 2.4 0 1 0 0 4.8a2.4 2.4 0 1 0 0-4.8z";
const DIAMOND = "M5 -.3L10.3 5L5 10.3L-.3 5zM4.4 2.3v3.2h1.2V2.3zM4.4 6.5v1.2h1.2V6.5z";
const CROSS =
  "M1.4 2.6L2.6 1.4L5 3.8L7.4 1.4L8.6 2.6L6.2 5L8.6 7.4L7.4 8.6L5 6.2L2.6 8.6L1.4 7.4L3.8 5z";
const DOT = "M4 4h2v2H4z";
const BARS = "M2 1h2.4v8H2zM5.6 1H8v8H5.6z";
const TWO = "M.8 3.2h8.4v1.4H.8zM.8 5.6h8.4V7H.8zM6.6 1.2h1.6L3.4 8.8H1.8z";

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
  held: { word: "held", shape: BARS, colour: "--calm", about: "paused, or waiting for deletes" },
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
      return causes?.length ? "failing" : "rolling";
    case "ROLLOUT_STATE_PAUSED":
    case "ROLLOUT_STATE_WAITING_FOR_DELETE":
      return "held";
    default:
      return "failing";
  }
}

/** The look of a workload: its state, or that pods of it fail. */
export const lookOf = (workload: Workload): Look =>
  groupOf(workload) === "failing" && workload.status.state ? GROUPS.failing : ROLLOUTS[workload.status.state ?? "ROLLOUT_STATE_UNSPECIFIED"];

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
