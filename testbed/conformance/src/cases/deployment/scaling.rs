//! Scaling, at rest and in the middle of a rollout.

use anyhow::Result;
use futures::future::try_join_all;
use k8s_openapi::api::apps::v1::Deployment;

use super::{
    rollout::{agent, roll_until_stuck},
    start,
};
use crate::{
    case::{Case, shared},
    fixture::Fixture,
};

pub(super) const CASES: &[Case] = &[
    shared!(
        "deployment-scale",
        "A Deployment that is scaled keeps its ReplicaSet and as many of its pods as possible.",
        scale
    ),
    shared!(
        "deployment-hpa-against-rollout",
        "While clients write the scale subresource as a HorizontalPodAutoscaler does, in the middle of a rollout, all ReplicaSets \
         are scaled in proportion, and the last number of replicas is reached.",
        hpa_against_rollout
    ),
];

// P-41, P-42
async fn scale(fixture: &Fixture) -> Result<()> {
    let begun = start(fixture, agent()).await?;
    for replicas in [14, 5] {
        fixture.scale::<Deployment>("agent", replicas).await?;
        fixture.wait_for_deployment("agent").await?;
        fixture.wait_for_sizes("agent", &[(1, replicas)]).await?;
    }
    fixture.history(&begun).await?.expect_pods(4, 9)
}

/// How many clients scale at the same time.
const CLIENTS: i32 = 4;

// P-41 to P-45, P-65, P-67
async fn hpa_against_rollout(fixture: &Fixture) -> Result<()> {
    start(fixture, agent()).await?;
    roll_until_stuck(fixture).await?;
    let begun = fixture.begin_history("agent").await?;
    for (replicas, old, new) in [(20, 14, 9), (30, 20, 13)] {
        fixture.scale::<Deployment>("agent", replicas).await?;
        fixture.wait_for_sizes("agent", &[(1, old), (2, new)]).await?;
    }
    let writes = (0..CLIENTS).map(|client| async move {
        for step in 0..5 {
            let replicas = 6 + (7 * step + 5 * client) % 19;
            fixture.scale::<Deployment>("agent", replicas).await?;
        }
        anyhow::Ok(())
    });
    let roll = async {
        let patch = fixture.ready_again_patch(3);
        fixture.patch_deployment("agent", patch).await?;
        Ok(())
    };
    futures::try_join!(try_join_all(writes), roll)?;
    fixture.scale::<Deployment>("agent", 12).await?;
    fixture.wait_for_deployment("agent").await?;
    fixture
        .wait_for_sizes("agent", &[(1, 0), (2, 0), (3, 12)])
        .await?;
    // Of at most 30 replicas and three more.
    fixture.history(&begun).await?.expect_within(33, 0)
}
