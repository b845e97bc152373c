//! Which node belongs to which stage (L-12, L-16), and which nodes a partition withholds (L-9).

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BinaryHeap},
};

use crate::{
    core::snapshot::IntOrString,
    rollout::{
        nodes::NodeFacts,
        policy::{Policy, Spec, Stage},
    },
};

/// The name of the stage of the nodes that no stage selects. No stage of a policy can have it.
const OTHERS: &str = "(others)";
/// The name of the only stage of a policy without stages.
const ALL: &str = "(all)";
/// The value in the name of the wave of the nodes without the label.
const NO_VALUE: &str = "(none)";
/// The most waves of a stage. A status has an entry for each.
pub(crate) const MOST_WAVES: usize = 200;
/// The most waves of all stages. The CRD takes 1,024, and one is for nodes that no stage selects.
pub(crate) const MOST_WAVES_IN_ALL: usize = 1_000;

/// One stage, or one wave of a stage with groupBy. They run in order.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Wave<'a> {
    /// The stage; `None` for the nodes that none selects.
    pub(crate) stage: Option<&'a Stage>,
    /// The name of the stage.
    pub(crate) stage_name: &'a str,
    /// The name of the wave: that of the stage, or with the value of its label.
    pub(crate) name: String,
    /// The indices of its nodes.
    pub(crate) nodes: Vec<usize>,
}

/// The stages with their nodes.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Waves<'a> {
    /// In the order in which they run.
    pub(crate) list: Vec<Wave<'a>>,
    /// Whether the partition withholds a node.
    pub(crate) withheld: Vec<bool>,
    /// A stage that has more waves than are allowed: its name, its label, and how many.
    pub(crate) excessive: Option<(&'a str, &'a str, usize)>,
}

impl<'a> Waves<'a> {
    /// Divides the nodes among the stages.
    pub(crate) fn of(policy: &Policy, spec: &'a Spec, nodes: &[NodeFacts<'a>]) -> Self {
        let mut left: Vec<usize> = (0..nodes.len()).collect();
        let (mut waves, mut excessive) = (Vec::new(), None);
        for (position, stage) in spec.stages.iter().enumerate() {
            let is_selected =
                |index: &usize| stage.selector.is_none() || nodes[*index].selected.has(position);
            let (mut chosen, others): (Vec<_>, Vec<_>) = left.into_iter().partition(is_selected);
            left = others;
            if let Some(replicas) = &stage.replicas {
                let most = scaled(replicas, chosen.len());
                let mut rest = choose(&mut chosen, most, stage, policy, nodes);
                left.append(&mut rest);
                left.sort_unstable();
            }
            let Some(key) = &stage.group_by else {
                waves.push(Wave {
                    stage: Some(stage),
                    stage_name: &stage.name,
                    name: stage.name.clone(),
                    nodes: chosen,
                });
                continue;
            };
            // `None` is after every value.
            let mut groups: BTreeMap<(bool, &str), Vec<usize>> = BTreeMap::new();
            for index in chosen {
                let value = nodes[index].labels.get(key);
                groups
                    .entry((value.is_none(), value.unwrap_or(NO_VALUE)))
                    .or_default()
                    .push(index);
            }
            if groups.len() > MOST_WAVES || waves.len() + groups.len() > MOST_WAVES_IN_ALL {
                excessive = excessive.or(Some((stage.name.as_str(), key.as_str(), groups.len())));
            }
            waves.extend(groups.into_iter().map(|((_, value), nodes)| Wave {
                stage: Some(stage),
                stage_name: &stage.name,
                name: format!("{}/{value}", stage.name),
                nodes,
            }));
        }
        if !left.is_empty() || waves.is_empty() {
            let name = if spec.stages.is_empty() { ALL } else { OTHERS };
            waves.push(Wave {
                stage: None,
                stage_name: name,
                name: name.to_owned(),
                nodes: left,
            });
        }
        let withheld = withheld(policy, spec, nodes, &waves);
        Self {
            list: waves,
            withheld,
            excessive,
        }
    }
}

/// Leaves `most` nodes in `chosen`, and returns the others. Nodes that have the update revision stay chosen, so that a node that
/// becomes ready takes nobody's place. Then come ready nodes, evenly over the values of `spreadBy`.
fn choose(
    chosen: &mut Vec<usize>,
    most: usize,
    stage: &Stage,
    policy: &Policy,
    nodes: &[NodeFacts<'_>],
) -> Vec<usize> {
    let seed = seed(policy, &stage.name);
    let rank = |index: usize| {
        let node = &nodes[index];
        // Of updated nodes none takes the place of another, ready or not.
        let is_last = (!node.is_updated(), !node.is_updated() && !node.is_ready());
        (is_last, Reverse(score(seed, node.name)), node.name, index)
    };
    let most = most.min(chosen.len());
    let (updated, mut rest): (Vec<_>, Vec<_>) =
        chosen.drain(..).partition(|index| nodes[*index].is_updated());
    if updated.len() == most {
        // As in most plans of a rollout: nobody else has to be ranked.
        *chosen = updated;
        return rest;
    }
    // Later stages also update nodes that this stage selects. Then the choice is among the updated ones, as it was made first.
    let is_made = updated.len() > most;
    let candidates = if is_made {
        updated
    } else {
        rest.extend(updated);
        std::mem::take(&mut rest)
    };
    let mut ranked: Vec<_> = candidates.into_iter().map(rank).collect();
    let Some(key) = &stage.spread_by else {
        if most < ranked.len() {
            ranked.select_nth_unstable(most);
        }
        let mut indices = ranked.into_iter().map(|(.., index)| index);
        chosen.extend(indices.by_ref().take(most));
        rest.extend(indices);
        return rest;
    };
    ranked.sort_unstable();
    // Candidates by value, the best one last.
    let mut groups: BTreeMap<Option<&str>, Vec<usize>> = BTreeMap::new();
    for (.., index) in ranked.into_iter().rev() {
        groups
            .entry(nodes[index].labels.get(key))
            .or_default()
            .push(index);
    }
    let mut groups: Vec<_> = groups.into_iter().collect();
    let rank = |value: Option<&str>, taken: usize, group: usize| {
        (
            Reverse(taken),
            score(seed, value.unwrap_or_default()),
            Reverse(group),
        )
    };
    let taken_before = |group: &[usize]| {
        group
            .iter()
            .rev()
            .take_while(|index| nodes[**index].is_updated())
            .count()
    };
    let mut queue = BinaryHeap::new();
    let mut left = most;
    for (group, (value, candidates)) in groups.iter_mut().enumerate() {
        let updated = if is_made {
            0
        } else {
            taken_before(candidates).min(left)
        };
        chosen.extend(candidates.drain(candidates.len() - updated..));
        left -= updated;
        queue.push((rank(*value, updated, group), updated, group));
    }
    while left > 0
        && let Some((_, taken, group)) = queue.pop()
    {
        let (value, candidates) = &mut groups[group];
        let Some(index) = candidates.pop() else { continue };
        chosen.push(index);
        left -= 1;
        queue.push((rank(*value, taken + 1, group), taken + 1, group));
    }
    rest.extend(groups.into_iter().flat_map(|(_, candidates)| candidates));
    rest
}

/// The nodes that stay on the stable revision: those with the highest rank in the order of stages, and of the hash within a stage.
fn withheld(policy: &Policy, spec: &Spec, nodes: &[NodeFacts<'_>], waves: &[Wave<'_>]) -> Vec<bool> {
    let mut withheld = vec![false; nodes.len()];
    let Some(partition) = &spec.partition else {
        return withheld;
    };
    let mut count = scaled(partition, nodes.len());
    for wave in waves.iter().rev() {
        let seed = seed(policy, wave.stage_name);
        let mut ranked = wave.nodes.clone();
        ranked.sort_by_cached_key(|index| (score(seed, nodes[*index].name), Reverse(nodes[*index].name)));
        for index in ranked.into_iter().take(count) {
            withheld[index] = true;
        }
        count = count.saturating_sub(wave.nodes.len());
    }
    withheld
}

/// A number, or a percentage of `total`, rounded up; never less than 0.
pub(crate) fn scaled(value: &IntOrString, total: usize) -> usize {
    match value {
        IntOrString::Int(number) => usize::try_from(*number).unwrap_or_default(),
        IntOrString::String(text) => {
            let percent: usize = text
                .strip_suffix('%')
                .and_then(|digits| digits.parse().ok())
                .unwrap_or_default();
            percent.saturating_mul(total).div_ceil(100)
        }
    }
}

/// The seed of the scores of a stage: the same policy makes the same choice in every cluster.
fn seed(policy: &Policy, stage: &str) -> u64 {
    fnv(fnv(FNV_OFFSET, policy.name.as_bytes()), stage.as_bytes())
}

/// The score of a node in a rendezvous hash: the nodes with the highest scores are chosen, so one that goes is replaced by one, and
/// no other choice changes.
fn score(seed: u64, node: &str) -> u64 {
    // FNV-1a does not mix its high bits well; the finalizer of SplitMix64 does.
    let mut hash = fnv(seed, node.as_bytes());
    hash = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    hash = (hash ^ (hash >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    hash ^ (hash >> 31)
}

const FNV_OFFSET: u64 = 0xcbf2_9ce4_8422_2325;

/// FNV-1a, with a byte that ends the text.
fn fnv(seed: u64, text: &[u8]) -> u64 {
    let bytes = text.iter().chain(&[0xff]);
    bytes.fold(seed, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}
