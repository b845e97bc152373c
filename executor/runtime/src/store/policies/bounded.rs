//! The policies of all namespaces, with a bound on their bytes in each of them. Anyone who may create policies in a namespace may
//! create any number of them, of any size. Beyond the bound the youngest are kept as marks, which hold the rollouts of their targets.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use nodewise_projection::RolloutPolicy;

/// Most bytes of the policies of a namespace, besides marks.
pub(crate) const MOST_BYTES: usize = 16 << 20;

/// All policies.
#[derive(Debug, Default)]
pub(in crate::store) struct Policies {
    by_namespace: HashMap<String, OfNamespace>,
}

#[derive(Debug, Default)]
struct OfNamespace {
    by_name: BTreeMap<String, Arc<RolloutPolicy>>,
    /// Those that are not marks, the oldest first.
    counted: BTreeSet<Age>,
    /// Their bytes.
    bytes: usize,
}

/// The time of the creation, and the name.
type Age = (Option<(i64, i32)>, String);

fn age(policy: &RolloutPolicy) -> Age {
    let created = policy.created.map(|at| (at.seconds, at.nanos));
    (created, policy.name.clone())
}

fn is_mark(policy: &RolloutPolicy) -> bool {
    policy.reduced.as_ref().is_some_and(|reduced| reduced.is_mark)
}

fn mark(policy: &RolloutPolicy) -> RolloutPolicy {
    policy.mark(format!(
        "the policies of the namespace have more than {MOST_BYTES} bytes, and the executor did not keep this one, which is among the \
         youngest: delete policies that are not needed, and then change this one"
    ))
}

/// Makes marks of the youngest of these policies, as far as the bound asks for it.
pub(crate) fn bound(policies: &mut [RolloutPolicy]) {
    let counted = || policies.iter().filter(|policy| !is_mark(policy));
    // It is called after each page of a list, and nearly always all of them fit.
    if counted().map(|policy| policy.object.len()).sum::<usize>() <= MOST_BYTES {
        return;
    }
    let mut of_all: HashMap<&str, usize> = HashMap::new();
    for policy in counted() {
        *of_all.entry(&policy.namespace).or_default() += policy.object.len();
    }
    let too_many = of_all.into_iter().filter(|(_, bytes)| *bytes > MOST_BYTES);
    let mut bytes: HashMap<String, usize> = too_many
        .map(|(namespace, bytes)| (namespace.to_owned(), bytes))
        .collect();
    if bytes.is_empty() {
        return;
    }
    let mut youngest_first: Vec<_> = policies.iter_mut().collect();
    youngest_first.sort_by_cached_key(|policy| std::cmp::Reverse(age(policy)));
    for policy in youngest_first {
        let Some(bytes) = bytes.get_mut(&policy.namespace) else {
            continue;
        };
        if *bytes > MOST_BYTES && !is_mark(policy) {
            *bytes -= policy.object.len();
            *policy = mark(policy);
        }
    }
}

impl Policies {
    pub(in crate::store) fn len(&self) -> usize {
        self.by_namespace.values().map(|of| of.by_name.len()).sum()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Arc<RolloutPolicy>> {
        self.by_namespace.values().flat_map(|of| of.by_name.values())
    }

    pub(super) fn in_namespace(&self, namespace: &str) -> impl Iterator<Item = &Arc<RolloutPolicy>> {
        let policies = self.by_namespace.get(namespace).into_iter();
        policies.flat_map(|of| of.by_name.values())
    }

    pub(super) fn get(&self, namespace: &str, name: &str) -> Option<&Arc<RolloutPolicy>> {
        self.by_namespace.get(namespace)?.by_name.get(name)
    }

    /// Keeps a policy. Returns the one of this name before.
    pub(super) fn put(&mut self, policy: Arc<RolloutPolicy>) -> Option<Arc<RolloutPolicy>> {
        let of = self.by_namespace.entry(policy.namespace.clone()).or_default();
        let old = of.by_name.get(&policy.name).cloned();
        if let Some(old) = &old {
            of.discount(old);
        }
        of.keep(policy);
        old
    }

    pub(super) fn remove(&mut self, namespace: &str, name: &str) -> Option<Arc<RolloutPolicy>> {
        let of = self.by_namespace.get_mut(namespace)?;
        let old = of.by_name.remove(name)?;
        of.discount(&old);
        if of.by_name.is_empty() {
            self.by_namespace.remove(namespace);
        }
        Some(old)
    }

    /// Makes a mark of the youngest policy of a namespace, if they have too many bytes. Returns the policy before and after.
    pub(super) fn make_mark(&mut self, namespace: &str) -> Option<[Arc<RolloutPolicy>; 2]> {
        let of = self.by_namespace.get_mut(namespace)?;
        if of.bytes <= MOST_BYTES {
            return None;
        }
        let (_, name) = of.counted.last()?;
        let whole = Arc::clone(of.by_name.get(name)?);
        let mark = Arc::new(mark(&whole));
        of.discount(&whole);
        of.keep(Arc::clone(&mark));
        Some([whole, mark])
    }
}

impl OfNamespace {
    fn keep(&mut self, policy: Arc<RolloutPolicy>) {
        if !is_mark(&policy) {
            self.counted.insert(age(&policy));
            self.bytes += policy.object.len();
        }
        self.by_name.insert(policy.name.clone(), policy);
    }

    fn discount(&mut self, policy: &RolloutPolicy) {
        if self.counted.remove(&age(policy)) {
            self.bytes -= policy.object.len();
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::testing::policy;

    fn of(name: &str, seconds: i64, bytes: usize) -> RolloutPolicy {
        let mut policy = policy(name, "1", &json!({"names": ["foo"]}));
        policy.created = Some(nodewise_proto::Timestamp { seconds, nanos: 0 });
        let mut object: serde_json::Value = serde_json::from_slice(&policy.object).expect("JSON");
        object["metadata"]["annotations"] = json!({"long": "x".repeat(bytes)});
        policy.object = object.to_string().into();
        policy
    }

    fn marks<'a>(policies: impl Iterator<Item = &'a RolloutPolicy>) -> String {
        let marks = policies.filter(|policy| is_mark(policy));
        marks.map(|policy| policy.name.as_str()).collect()
    }

    #[test]
    fn of_many_policies_the_youngest_become_marks() {
        let third = MOST_BYTES / 3;
        let mut listed = [
            of("d", 4, third),
            of("a", 1, third),
            of("b", 2, third),
            of("c", 3, third),
        ];
        let mut fit = listed[1..3].to_vec();
        bound(&mut fit);
        assert_eq!(marks(fit.iter()), "");
        let mut kept = Policies::default();
        for policy in &listed {
            kept.put(Arc::new(policy.clone()));
            while kept.make_mark("ns").is_some() {}
        }
        bound(&mut listed);
        assert_eq!(marks(listed.iter()), "dc");
        let all = |kept: &Policies| marks(kept.in_namespace("ns").map(|policy| &**policy));
        assert_eq!(all(&kept), "cd");

        assert!(kept.remove("ns", "a").is_some());
        kept.put(Arc::new(of("c", 3, third)));
        assert!(kept.make_mark("ns").is_none(), "there is room again");
        assert_eq!(all(&kept), "d");
        for name in ["b", "c", "d"] {
            kept.remove("ns", name);
        }
        assert!(kept.by_namespace.is_empty());
        kept.put(Arc::new(of("e", 5, MOST_BYTES - 1_000)));
        assert!(
            kept.make_mark("ns").is_none(),
            "nothing is counted of those that are gone"
        );
    }
}
