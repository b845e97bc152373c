//! The same rolling update on a real apiserver, once without a RolloutPolicy and once in ten stages.

use anyhow::Result;
use nodewise_conformance::rollout_policies;
use nodewise_testbed::{ControlPlane, User};
use serde_json::{Value, json};

use super::owner::{OwnerKind, Programs};
use super::part::Part;
use super::{Size, foreign, run};
use crate::figure::figure;
use crate::measure::Spread;
use crate::report::{Bar, Chart, Finding};

/// The number of stages. Each has the nodes of one pool.
const STAGES: usize = 10;
/// The label of a node with its pool.
const POOL: &str = "example.com/pool";
const SETTINGS: [&str; 2] = ["no policy", "ten stages"];

/// Measures both settings in turns, with Nodewise as the owner.
///
/// # Errors
/// A program cannot be started, or a rollout does not finish.
pub async fn measure(size: Size, programs: &Programs) -> Result<Finding> {
    let who = OwnerKind::Nodewise;
    let plane = ControlPlane::builder()
        .audit_log(true)
        .user(User::new(who.user()).group("system:masters"))
        .start()
        .await?;
    rollout_policies::install(&plane).await?;
    let nodes = plane
        .create_nodes_with(size.nodes, |index, node| {
            let labels = node.metadata.labels.get_or_insert_default();
            labels.insert(POOL.to_owned(), format!("pool-{}", index % STAGES));
        })
        .await?;
    foreign::create(&plane.client(), size.foreign_pods, &nodes).await?;
    let mut updates = [Vec::new(), Vec::new()];
    for round in 1..=size.rounds {
        for turn in 0..SETTINGS.len() {
            let setting = (turn + round) % SETTINGS.len();
            let namespace = format!("stages-{round}-{setting}");
            let policy = (setting == 1).then(policy);
            let (rollout, _) =
                run::rollout(&plane, who, programs, &namespace, nodes.len(), policy.as_ref()).await?;
            eprintln!(
                "round {round} of {}, {}: {rollout}",
                size.rounds, SETTINGS[setting]
            );
            updates[setting].push(rollout.update);
        }
    }
    finding(size, &updates)
}

/// A policy with a stage for each pool. Nothing but the order of the nodes keeps it waiting.
fn policy() -> Value {
    let stage = |index| {
        let labels = json!({ POOL: format!("pool-{index}") });
        json!({"name": format!("pool-{index}"), "nodeSelector": {"matchLabels": labels}})
    };
    let stages: Vec<_> = (0..STAGES).map(stage).collect();
    json!({"targets": {"names": ["agent"]}, "stages": stages})
}

/// A quantity of a rolling update, with its name.
type Quantity = (&'static str, fn(&Part) -> f64);

fn finding(size: Size, updates: &[Vec<Part>; 2]) -> Result<Finding> {
    let quantities: [Quantity; 3] = [
        ("seconds", |part| part.seconds),
        ("API calls", |part| part.calls),
        ("CPU seconds of server and executor", Part::cpu_seconds),
    ];
    let (mut rows, mut bars) = (Vec::new(), Vec::new());
    for (name, quantity) in quantities {
        let [without, with] = updates
            .each_ref()
            .map(|parts| Spread::of(parts.iter().map(quantity)));
        let (without, with) = (without?, with?);
        let ratio = figure(with.median() / without.median());
        rows.push(vec![
            name.to_owned(),
            without.to_string(),
            with.to_string(),
            ratio,
        ]);
        if name == "seconds" {
            bars.extend(
                SETTINGS
                    .into_iter()
                    .zip([without, with])
                    .map(|(who, values)| Bar {
                        group: "rolling update".to_owned(),
                        who: who.to_owned(),
                        values,
                    }),
            );
        }
    }
    #[expect(clippy::cast_precision_loss, reason = "a few thousand nodes")]
    let nodes = figure(size.nodes as f64);
    Ok(Finding {
        title: format!("A rollout on {nodes} nodes in ten stages"),
        about: format!(
            "The rolling update of the section above, with Nodewise as the owner: once without a RolloutPolicy, and once with one of \
             {STAGES} stages of equal size, without soak, analysis or approval. `maxUnavailable` is 10 % in both, so each stage may \
             be replaced at once, and the next one begins when it is complete. Which setting is first alternates. The ratio is what \
             the order of the stages costs."
        ),
        columns: ["rolling update", SETTINGS[0], SETTINGS[1], "ratio"]
            .map(str::to_owned)
            .into(),
        rows,
        targets: Vec::new(),
        charts: vec![Chart::of_costs(
            "stages",
            format!("A rolling update on {nodes} nodes, with and without a RolloutPolicy"),
            "seconds",
            bars,
        )],
    })
}
