// The live data: a stream of server-sent events, read with fetch, because EventSource cannot send a bearer token.

import { useEffect, useRef, useState } from "preact/hooks";
import { HttpError, request } from "./session";
import {
  type Cluster,
  idOf,
  type Key,
  type NodeStatus,
  type Placed,
  type PodStatus,
  type Timeline,
  type Workload,
} from "./types";
import { parse } from "./visible";

/** What a view wants to know beside the summaries of all workloads. */
export type Detail = { workload: Key } | { node: string } | null;

export interface Live {
  cluster: Cluster | null;
  workloads: Map<string, Workload>;
  nodes: Map<string, NodeStatus>;
  pods: PodStatus[];
  timeline: Timeline | null;
  /** All workloads on the node of the view. */
  placed: Placed[] | null;
  connected: boolean;
  problem: string;
  /** The number of the last change, so that views know that there is one. */
  version: number;
  unauthorized: boolean;
}

/** Without a message for so long, the connection is dead. The server sends a comment every ten seconds. */
const SILENCE = 30_000;
const RETRY = [500, 1_000, 2_000, 5_000];

const workloads = new Map<string, Workload>();
let cluster: Cluster | null = null;

const empty = (): Live => ({
  cluster,
  workloads,
  nodes: new Map(),
  pods: [],
  timeline: null,
  placed: null,
  connected: false,
  problem: "",
  version: 0,
  unauthorized: false,
});

function apply(live: Live, event: string, data: any): void {
  switch (event) {
    case "cluster":
      cluster = live.cluster = data;
      break;
    case "workloads":
      for (const workload of data.workloads as Workload[]) workloads.set(idOf(workload.key), workload);
      break;
    case "present": {
      const there = new Set((data.keys as Key[]).map(idOf));
      for (const id of workloads.keys()) if (!there.has(id)) workloads.delete(id);
      break;
    }
    case "nodes":
      if (data.reset) live.nodes = new Map();
      for (const node of data.nodes as NodeStatus[]) live.nodes.set(node.nodeName, node);
      break;
    case "pods":
      live.pods = data.pods;
      break;
    case "timeline":
      live.timeline = data.timeline;
      break;
    case "node":
      live.placed = data.workloads;
      break;
  }
}

/** Calls `take` with each event of a stream. */
async function read(body: ReadableStream<BufferSource>, alive: () => void, take: (event: string, data: string) => void) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let parts: string[] = [];
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    alive();
    parts.push(value);
    if (!value.includes("\n")) continue;
    const text = parts.join("");
    const blocks = text.split("\n\n");
    parts = [blocks.pop() ?? ""];
    for (const block of blocks) {
      let event = "message";
      let data = "";
      for (const line of block.split("\n")) {
        if (line.startsWith("event:")) event = line.slice(6).trim();
        else if (line.startsWith("data:")) data += line.slice(5).trimStart();
      }
      if (data) take(event, data);
    }
  }
}

function query(detail: Detail): string {
  if (!detail) return "";
  const values: Record<string, string> = "node" in detail ? { node: detail.node } : { ...detail.workload };
  return `?${new URLSearchParams(values)}`;
}

const wait = (ms: number, signal: AbortSignal) =>
  new Promise<void>((resolve) => {
    const timer = setTimeout(resolve, ms);
    signal.addEventListener("abort", () => (clearTimeout(timer), resolve()));
  });

/** Follows the cluster while the view is shown. */
export function useLive(detail: Detail): Live {
  const [, redraw] = useState(0);
  const id = query(detail);
  const ref = useRef<Live & { id?: string }>(empty());
  if (ref.current.id !== id) {
    ref.current = { ...empty(), connected: ref.current.connected, problem: ref.current.problem, id };
  }
  useEffect(() => {
    const live = ref.current;
    const end = new AbortController();
    let frame = 0;
    const changed = () => {
      live.version++;
      frame ||= requestAnimationFrame(() => {
        frame = 0;
        redraw((count) => count + 1);
      });
    };
    const follow = async () => {
      for (let failed = 0; !end.signal.aborted; failed++) {
        const attempt = new AbortController();
        const stop = () => attempt.abort();
        end.signal.addEventListener("abort", stop);
        let timer = setTimeout(stop, SILENCE);
        try {
          const response = await request(`/events${id}`, { signal: attempt.signal });
          live.connected = true;
          live.problem = "";
          live.unauthorized = false;
          failed = 0;
          changed();
          const alive = () => {
            clearTimeout(timer);
            timer = setTimeout(stop, SILENCE);
          };
          await read(response.body as ReadableStream<BufferSource>, alive, (event, data) => {
            apply(live, event, parse(data));
            changed();
          });
          live.problem = "the connection has ended";
        } catch (error) {
          live.problem = error instanceof Error ? error.message : String(error);
          live.unauthorized = error instanceof HttpError && error.status === 401;
        } finally {
          clearTimeout(timer);
          end.signal.removeEventListener("abort", stop);
        }
        if (end.signal.aborted) return;
        live.connected = false;
        changed();
        await wait(RETRY[Math.min(failed, RETRY.length - 1)]!, end.signal);
      }
    };
    void follow();
    return () => {
      end.abort();
      cancelAnimationFrame(frame);
    };
  }, [id]);
  return ref.current;
}
