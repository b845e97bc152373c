// Whether Nodewise would do the same as the controller in charge.

import { Frame } from "./frame";
import { useLive } from "./live";
import { Note, Since, useNow, WorkloadLink } from "./parts";
import type { Place } from "./router";
import { Glyph, GROUPS } from "./states";
import { Table } from "./table";
import { idOf } from "./types";

export function Takeover({ place }: { place: Place }) {
  const live = useLive(null);
  const now = useNow();
  const all = [...live.workloads.values()];
  const rows = all.filter((workload) => workload.divergence).sort((a, b) => idOf(a.key).localeCompare(idOf(b.key)));
  const managers = new Map<string, number>();
  for (const workload of all) {
    for (const { manager } of workload.status.writers ?? []) managers.set(manager, (managers.get(manager) ?? 0) + 1);
  }
  return (
    <Frame live={live} title="Takeover" place={place}>
      <div class="title">
        <h1>
          <Glyph look={rows.length ? GROUPS.diverging : GROUPS.fine} size={18} /> {rows.length} of {all.length} workloads diverge
        </h1>
        <p class="message">
          The page plans every workload, as the executor in mode observe does. An action that the controller in charge has not done for 30
          seconds is a divergence. With none over a rollout, a new node and a removed node, Nodewise may take over.
        </p>
        {all.flatMap(({ key, status }) =>
          (status.secondOwner ?? []).map((sentence) => (
            <p class="warning" key={`${idOf(key)} ${sentence}`}>
              <WorkloadLink of={key} />: {sentence}
            </p>
          )),
        )}
        <p class="dim">
          Statuses are written by {[...managers].map(([manager, count]) => `${manager} (${count})`).join(", ") || "nobody yet"}.
        </p>
      </div>
      <Table
        caption="Divergences"
        rows={rows}
        id={(workload) => idOf(workload.key)}
        none={live.cluster?.complete ? "Both agree about every workload." : "Reading the cluster …"}
        columns={[
          { title: "Workload", class: "name", of: (workload) => <WorkloadLink of={workload.key} /> },
          { title: "Kind", class: "dim", of: (workload) => workload.key.kind },
          { title: "In charge", of: (workload) => workload.status.writers?.[0]?.manager ?? "nobody" },
          { title: "For", class: "right", of: (workload) => <Since time={workload.divergence!.since} now={now} /> },
          {
            title: "What the planner would do",
            class: "wide",
            of: ({ divergence }) => (
              <ul class="plain-list">
                {divergence!.actions.map((action) => (
                  <li key={action}>{action}</li>
                ))}
                {divergence!.more > 0 && <li class="dim">and {divergence!.more} more</li>}
              </ul>
            ),
          },
          { title: "What it means", class: "wide", of: (workload) => workload.divergence!.verdict },
        ]}
      />
      {live.cluster?.dump && <Note>The objects are from files, so nothing is late.</Note>}
    </Frame>
  );
}
