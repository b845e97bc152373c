// All workloads, the worst first.

import { ago, shortImage } from "./format";
import { useLive } from "./live";
import { Frame } from "./frame";
import { Progress, useNow, WorkloadLink } from "./parts";
import { type Place, setQuery } from "./router";
import { Glyph, type Group, GROUPS, groupOf, lookOf, State } from "./states";
import { Table } from "./table";
import { idOf, type Workload } from "./types";

const ORDER = Object.keys(GROUPS) as Group[];

function images(workload: Workload): string {
  const revisions = workload.status.revisions ?? [];
  const current = revisions.find((revision) => revision.isCurrent);
  const other = revisions.find((revision) => !revision.isCurrent && revision.pods);
  const now = (current?.images ?? []).map(shortImage);
  if (!other) return now.join(", ");
  const before = (other.images ?? []).map(shortImage);
  const changed = now.filter((image) => !before.includes(image));
  const from = before.filter((image) => !now.includes(image));
  return changed.length ? `${from.join(", ")} → ${changed.join(", ")}` : now.join(", ");
}

export function Overview({ place }: { place: Place }) {
  const live = useLive(null);
  const now = useNow();
  const chosen = place.query.get("state") as Group | null;
  const text = place.query.get("q") ?? "";
  const all = [...live.workloads.values()];
  const is = (workload: Workload, group: Group) =>
    group === "diverging" ? workload.divergence !== null : groupOf(workload) === group;
  const rank = (workload: Workload) => ORDER.indexOf(groupOf(workload));
  const rows = all
    .filter((workload) => !chosen || is(workload, chosen))
    .filter((workload) => idOf(workload.key).toLowerCase().includes(text.toLowerCase()))
    .sort((a, b) => rank(a) - rank(b) || idOf(a.key).localeCompare(idOf(b.key)));
  const since = (workload: Workload) => {
    const { stuckSince, startedAt, state } = workload.status;
    return state === "ROLLOUT_STATE_COMPLETE" ? "" : ago(stuckSince ?? startedAt, now);
  };
  return (
    <Frame live={live} title="Overview" place={place}>
      <h1 class="hidden">Overview</h1>
      <div class="tiles" role="group" aria-label="Filter by state">
        {ORDER.map((group) => {
          const count = all.filter((workload) => is(workload, group)).length;
          return (
            <button
              key={group}
              type="button"
              class={`tile ${count ? "" : "none"}`}
              aria-pressed={chosen === group}
              title={GROUPS[group].about}
              onClick={() => setQuery({ state: chosen === group ? "" : group })}
            >
              <Glyph look={GROUPS[group]} size={16} />
              <b>{count}</b> {GROUPS[group].word}
            </button>
          );
        })}
        <input
          id="filter"
          type="search"
          placeholder="Filter by name  /"
          aria-label="Filter by kind, namespace or name"
          value={text}
          onInput={(event) => setQuery({ q: event.currentTarget.value })}
        />
      </div>
      <Table
        caption="Workloads"
        rows={rows}
        id={(workload) => idOf(workload.key)}
        none={live.cluster?.complete ? "No workload matches." : "Reading the cluster …"}
        columns={[
          {
            title: "State",
            of: (workload) => <State look={lookOf(workload)} />,
          },
          { title: "Workload", class: "name", of: (workload) => <WorkloadLink of={workload.key} /> },
          { title: "Kind", class: "dim", of: (workload) => workload.key.kind },
          { title: "Done", of: (workload) => <Progress counts={workload.status.counts} /> },
          {
            title: "What happens",
            class: "wide",
            of: (workload) => (
              <>
                {workload.status.message}
                {workload.divergence && <span class="tag">diverges</span>}
                {(workload.status.secondOwner?.length ?? 0) > 0 && (
                  <span class="tag" title={workload.status.secondOwner!.join("\n")}>
                    second owner
                  </span>
                )}
              </>
            ),
          },
          { title: "Image", class: "image", of: images },
          { title: "Since", class: "right", of: since },
        ]}
      />
    </Frame>
  );
}
