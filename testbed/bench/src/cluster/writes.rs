//! The effect of `--concurrent-writes`: creates the pods of a DaemonSet with different values, once as a user that is
//! exempt from the apiserver's flow control and once as an ordinary ServiceAccount.

use anyhow::{Context as _, Result};
use nodewise_testbed::{ControlPlane, User};

use super::bare;
use super::owner::{Owner, Programs};
use super::run::{self, Creation, Limit};
use super::{Size, foreign};
use crate::figure::figure;
use crate::measure::Spread;
use crate::report::{Bar, Chart, Finding, Target};

/// The values of `--concurrent-writes`. The last one is the default.
const WRITES: [usize; 2] = [64, 250];
/// A user in `system:masters`, which flow control exempts.
const EXEMPT: &str = "bench-exempt";
/// A ServiceAccount. It shares the seats and queues of a priority level with all other ServiceAccounts.
const SERVICE_ACCOUNT: &str = "system:serviceaccount:bench:executor";

/// One configuration.
#[derive(Clone, Copy, Debug)]
struct WriteSetting {
    writes: usize,
    user: &'static str,
}

impl WriteSetting {
    const ALL: [Self; 4] = [
        Self::new(WRITES[0], EXEMPT),
        Self::new(WRITES[1], EXEMPT),
        Self::new(WRITES[0], SERVICE_ACCOUNT),
        Self::new(WRITES[1], SERVICE_ACCOUNT),
    ];

    const fn new(writes: usize, user: &'static str) -> Self {
        Self { writes, user }
    }

    fn who(self) -> &'static str {
        if self.user == EXEMPT {
            "exempt"
        } else {
            "ServiceAccount"
        }
    }
}

/// Measures all configurations in turns, and after them the bare loop.
///
/// # Errors
/// A program cannot be started, or pods are missing.
pub async fn measure(size: Size, programs: &Programs) -> Result<Finding> {
    let account = User::new(SERVICE_ACCOUNT).cluster_role("cluster-admin");
    let groups = ["system:serviceaccounts", "system:serviceaccounts:bench"];
    let plane = ControlPlane::builder()
        .audit_log(true)
        .user(User::new(EXEMPT).group("system:masters"))
        .user(groups.into_iter().fold(account, User::group))
        .start()
        .await?;
    let client = plane.client();
    let nodes = plane.create_nodes(size.nodes).await?;
    foreign::create(&client, size.foreign_pods, &nodes).await?;
    let (mut found, mut limits) = (vec![Vec::new(); WriteSetting::ALL.len()], Vec::new());
    for round in 0..size.rounds {
        let mut template = None;
        for turn in 0..WriteSetting::ALL.len() {
            // Each configuration is the first in one of the rounds.
            let index = (turn + round) % WriteSetting::ALL.len();
            let setting = WriteSetting::ALL[index];
            let namespace = format!("bench-writes-{round}-{index}");
            let limit = format!("--concurrent-writes={}", setting.writes);
            let owner = Owner::nodewise(&plane, setting.user, programs, &[limit]).await?;
            let (creation, created) =
                run::creation(&plane, owner, setting.user, &namespace, nodes.len()).await?;
            eprintln!(
                "round {} of {}, {} writes, {}: {creation}",
                round + 1,
                size.rounds,
                setting.writes,
                setting.who()
            );
            found[index].push(creation);
            template = Some(created);
        }
        let template = template.context("pods were created")?;
        let namespace = format!("bench-writes-{round}-bare");
        limits.push(run::bare(&plane, &namespace, &template, &nodes).await?);
    }
    finding(size, &found, &limits)
}

fn finding(size: Size, found: &[Vec<Creation>], limits: &[Limit]) -> Result<Finding> {
    let seconds = |creations: &Vec<Creation>| Spread::of(creations.iter().map(|one| one.part.seconds));
    let refused = |creations: &Vec<Creation>| Spread::of(creations.iter().map(|one| one.refused));
    let (mut rows, mut bars) = (Vec::new(), Vec::new());
    for (setting, creations) in WriteSetting::ALL.into_iter().zip(found) {
        rows.push(vec![
            setting.writes.to_string(),
            setting.who().to_owned(),
            seconds(creations)?.to_string(),
            refused(creations)?.to_string(),
        ]);
        bars.push(Bar {
            group: setting.who().to_owned(),
            who: format!("{} writes", setting.writes),
            values: seconds(creations)?,
        });
    }
    let limit = Spread::of(limits.iter().map(|limit| limit.seconds))?;
    rows.push(vec![
        bare::WORKERS.to_string(),
        "exempt, bare loop".to_owned(),
        limit.to_string(),
        "–".to_owned(),
    ]);
    let mut targets = Vec::new();
    for pair in [0, 2] {
        let ratio = seconds(&found[pair])?.median() / seconds(&found[pair + 1])?.median();
        let what = format!(
            "{} writes against {}, {}",
            WRITES[1],
            WRITES[0],
            WriteSetting::ALL[pair].who()
        );
        targets.push(Target::at_least(what, 1.0, ratio, "times as fast"));
    }
    #[expect(clippy::cast_precision_loss, reason = "some ten thousand nodes")]
    let nodes = figure(size.nodes as f64);
    Ok(Finding {
        title: "Writes at a time".to_owned(),
        about: format!(
            "The executor creates the pods of a DaemonSet on {nodes} nodes, on a real apiserver, with `--concurrent-writes` \
             of {} and of {}. The time is from the request that created the DaemonSet to the response to the last create, \
             according to the apiserver's audit log. Each value is measured as a user that the apiserver's flow control (API \
             Priority and Fairness) exempts, and as an ordinary ServiceAccount, which shares the seats of the priority level \
             `workload-low` with all others, with the defaults of kube-apiserver. *Refused* counts the calls that were \
             answered with 429. Which setting is first alternates.",
            WRITES[0], WRITES[1]
        ),
        columns: ["writes at a time", "user", "create: seconds", "refused"]
            .map(str::to_owned)
            .into(),
        rows,
        targets,
        charts: vec![Chart::of_costs(
            "writes",
            format!("Creating {nodes} pods"),
            "seconds",
            bars,
        )],
    })
}
