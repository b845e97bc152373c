// The messages of the server. The names are those of nodewise.v1 in Protobuf's JSON: fields with default values are absent.

export interface Key {
  kind: string;
  namespace: string;
  name: string;
}

export type UnitState =
  | "UNIT_STATE_UNSPECIFIED"
  | "UNIT_STATE_DONE"
  | "UNIT_STATE_PROGRESSING"
  | "UNIT_STATE_BLOCKED"
  | "UNIT_STATE_WAITING"
  | "UNIT_STATE_MUST_NOT_RUN";

export type RolloutState =
  | "ROLLOUT_STATE_UNSPECIFIED"
  | "ROLLOUT_STATE_COMPLETE"
  | "ROLLOUT_STATE_PAUSED"
  | "ROLLOUT_STATE_WAITING_FOR_DELETE"
  | "ROLLOUT_STATE_PROGRESSING"
  | "ROLLOUT_STATE_STUCK";

export interface PodProblem {
  reason?: string;
  message?: string;
  container?: string;
  restarts?: number;
  lastExit?: string;
  isFailing?: boolean;
}

export interface PodStatus {
  podName: string;
  nodeName?: string;
  updated?: boolean;
  ready?: boolean;
  available?: boolean;
  createdAt?: string;
  notReadySince?: string;
  deletedAt?: string;
  finalizers?: string[];
  problem?: PodProblem;
  unitState?: UnitState;
}

export interface NodeCondition {
  type: string;
  status?: string;
  reason?: string;
  since?: string;
}

export interface NodeStatus {
  nodeName: string;
  state?: string;
  rule?: string;
  message?: string;
  queuePosition?: number;
  pods?: PodStatus[];
  conditions?: NodeCondition[];
  unschedulable?: boolean;
  zone?: string;
  unitState?: UnitState;
  blockReason?: string;
  pool?: string;
  rolloutStage?: string;
  rolloutExempt?: boolean;
}

export interface BlockCause {
  reason?: string;
  message?: string;
  container?: string;
  units?: string[];
  moreUnits?: number;
  since?: string;
  restarts?: number;
  lastExit?: string;
}

export interface Revision {
  name?: string;
  number?: string;
  hash?: string;
  isCurrent?: boolean;
  images?: string[];
  createdAt?: string;
  pods?: number;
}

export interface Counts {
  desired?: number;
  done?: number;
  progressing?: number;
  blocked?: number;
  waiting?: number;
  mustNotRun?: number;
}

export interface WorkloadStatus {
  kind: string;
  namespace: string;
  name: string;
  state?: RolloutState;
  message?: string;
  strategy?: { type?: string; maxUnavailable?: number; maxSurge?: number; unavailable?: number; surging?: number };
  revisions?: Revision[];
  counts?: Counts;
  observedAt?: string;
  startedAt?: string;
  stuckSince?: string;
  readyPerMinute?: number;
  timeLeft?: string;
  causes?: BlockCause[];
  lastRefusal?: { message?: string; at?: string };
  writers?: { manager: string; at?: string }[];
  next?: string[];
  secondOwner?: string[];
  policy?: PolicyRollout;
}

export interface PolicyRollout {
  name: string;
  state?: string;
  message?: string;
  paused?: boolean;
  notAccepted?: string;
  others?: string[];
  stableHash?: string;
  stableNumber?: string;
  stages?: PolicyStage[];
  pendingApproval?: PolicyApproval;
  rejection?: { reason?: string; message?: string; at?: string };
  blocking?: PolicyNode[];
  exempt?: PolicyNode[];
  moreExempt?: number;
  requests?: string[];
  onFailure?: string;
}

export interface PolicyStage {
  name: string;
  state?: string;
  nodes?: number;
  updated?: number;
  available?: number;
  exempt?: number;
  failed?: number;
  startedAt?: string;
  soakEndsAt?: string;
  completedAt?: string;
  checks?: PolicyCheck[];
}

export interface PolicyCheck {
  name: string;
  measurements?: number;
  count?: number;
  successful?: number;
  failed?: number;
  failureLimit?: number;
  inconclusive?: number;
  errors?: number;
  at?: string;
  value?: string;
  message?: string;
}

export interface PolicyApproval {
  stage?: string;
  nodes?: number;
  digest?: string;
  since?: string;
  outdatedDigest?: string;
}

export interface PolicyNode {
  name: string;
  reason?: string;
}

export interface Command {
  purpose: string;
  line: string;
  changes: boolean;
}

export interface Divergence {
  since: string;
  actions: string[];
  more: number;
  verdict: string;
}

export interface Workload {
  key: Key;
  status: WorkloadStatus;
  commands: Command[];
  divergence: Divergence | null;
}

export interface Cluster {
  source: string;
  namespaces: string[];
  dump: boolean;
  complete: boolean;
  problem: string;
  /** Whether nothing is read any more. */
  ended: boolean;
  traceUrl: string;
  version: string;
}

export interface Sample {
  at: string;
  done: number;
  progressing: number;
  blocked: number;
  waiting: number;
  mustNotRun: number;
}

export interface TimelineEvent {
  at: string;
  what: "rollout" | "state" | "cause" | "solved";
  text: string;
}

export interface Timeline {
  samples: Sample[];
  events: TimelineEvent[];
}

export interface Placed {
  key: Key;
  node: NodeStatus | null;
  pods: PodStatus[];
}

export interface Comparison {
  revisions: { number: number; name: string; current: boolean; images: string[]; cause: string; created: string | null }[];
  from: number | null;
  to: number | null;
  lines: { sign: string; text: string }[];
}

export const idOf = (key: Key): string => `${key.kind}/${key.namespace}/${key.name}`;
