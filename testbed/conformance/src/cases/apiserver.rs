//! An apiserver whose watches are late, or whose responses to writes are lost; see [`ApiProxy`].

use std::{collections::BTreeSet, time::Duration};

use anyhow::{Result, ensure};

use crate::{
    api_proxy::ApiProxy,
    case::{Case, solo},
    fixture::SoloFixture,
    workload_builder::image_patch,
};

pub(super) const CASES: &[Case] = &[
    solo!(
        "late-watches",
        "While watch events of pods are late, creates and deletes are not repeated, and the budget holds.",
        late_watches
    ),
    solo!(
        "write-answers-lost",
        "Writes that were carried out and answered with 504 are not repeated, and the budget holds.",
        write_answers_lost
    ),
];

const NODES: usize = 8;

/// Creates `agent` and rolls out a new version while the executor uses this proxy of the apiserver.
async fn roll_by_way_of(solo: &mut SoloFixture, api: &ApiProxy) -> Result<()> {
    let servers = [solo.proxy().url()];
    solo.start_with(Some(api.kubeconfig()), &servers)?;
    let watch = solo.start_watched(NODES, 2).await?;
    solo.patch("agent", image_patch(2)).await?;
    solo.wait_until_settled("agent").await?;
    watch.seen().await?.expect_rollout(2, 2 * NODES)?;
    solo.expect_running()
}

/// Fails if the executor repeated the create or delete of a pod.
pub(super) async fn expect_nothing_again(solo: &SoloFixture) -> Result<()> {
    let mut done = BTreeSet::new();
    for write in solo.writes().await? {
        let of_pods = write.resource == "pods" && write.subresource.is_empty();
        // The executor may repeat a request that the apiserver could not serve.
        let refused = write.code == 429 || write.code >= 500;
        if of_pods && !refused && matches!(&*write.verb, "create" | "delete") {
            let again = format!("{} of {} was asked for again", write.verb, write.name);
            ensure!(done.insert((write.verb, write.name)), "{again}");
        }
    }
    Ok(())
}

// D-109 to D-112
async fn late_watches(solo: &mut SoloFixture) -> Result<()> {
    let late = ApiProxy::late(solo.cluster(), &["pods"], Duration::from_millis(700)).await?;
    roll_by_way_of(solo, &late).await?;
    expect_nothing_again(solo).await
}

async fn write_answers_lost(solo: &mut SoloFixture) -> Result<()> {
    let losing = ApiProxy::losing_answers(solo.cluster(), 3).await?;
    roll_by_way_of(solo, &losing).await?;
    let lost = losing.lost_answers();
    ensure!(lost >= NODES, "only {lost} answers were lost");
    Ok(())
}
