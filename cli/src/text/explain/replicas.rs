//! Renders the explanations of ReplicaSets and Deployments: the state and its cause first, then the details.

use nodewise_proto::v1;
use nodewise_status::TemplateFacts;

use crate::{
    causes::Cause,
    text::{ADD, BOLD, CHANGE, DIM, PLAIN, Page, REMOVE, count, names},
};

/// The most pods of an order that are listed.
const MAX_PODS: usize = 10;
/// The most causes that are listed.
const MAX_CAUSES: usize = 6;

/// What is rendered of a ReplicaSet.
pub(crate) struct ReplicaSetText<'a> {
    /// `ReplicaSet shop/web-5d4f`.
    pub(crate) title: String,
    pub(crate) explanation: &'a v1::WorkloadExplanation,
    pub(crate) status: &'a v1::ReplicaSetStatus,
    pub(crate) causes: &'a [Cause],
    pub(crate) facts: &'a TemplateFacts,
}

/// What is rendered of a Deployment.
pub(crate) struct DeploymentText<'a> {
    /// `Deployment shop/web`.
    pub(crate) title: String,
    pub(crate) explanation: &'a v1::WorkloadExplanation,
    pub(crate) causes: &'a [Cause],
    /// The ReplicaSets, in the order of the explanation.
    pub(crate) sets: Vec<SetText<'a>>,
}

/// A ReplicaSet of a Deployment.
pub(crate) struct SetText<'a> {
    pub(crate) name: &'a str,
    pub(crate) facts: &'a TemplateFacts,
    /// Its own explanation, if it has pods.
    pub(crate) explanation: Option<&'a v1::WorkloadExplanation>,
}

impl ReplicaSetText<'_> {
    pub(crate) fn render(&self, page: &mut Page) {
        let facts = self.facts;
        let revision = (facts.number != 0).then(|| format!("revision {}", facts.number));
        let controller = (!facts.controller.is_empty()).then(|| format!("of {}", facts.controller));
        let about: Vec<String> = revision.into_iter().chain(controller).collect();
        let about = if about.is_empty() {
            String::new()
        } else {
            format!(" ({})", about.join(" "))
        };
        page.line(0, BOLD, &format!("{}{about}", self.title));
        let status = self.status;
        page.line(
            2,
            PLAIN,
            &format!(
                "{} {} ready, {} available.",
                self.explanation.message, status.ready_replicas, status.available_replicas
            ),
        );
        causes(page, self.causes, false);
        for detail in &self.explanation.details {
            page.line(2, PLAIN, detail);
        }
        images(page, 2, facts);
        let (order, others): (Vec<_>, Vec<_>) =
            (self.explanation.pods.iter()).partition(|pod| pod.deletion_order > 0);
        if !order.is_empty() {
            page.blank();
            page.line(2, PLAIN, "a scale-down deletes the pods in this order:");
            let width = order.len().min(MAX_PODS).to_string().len();
            for pod in order.iter().take(MAX_PODS) {
                let place = format!("{:>width$}.", pod.deletion_order);
                page.marked(
                    4,
                    &place,
                    DIM,
                    PLAIN,
                    &format!("{}. {}", on_node(pod), pod.message),
                );
            }
            let more = order.len().saturating_sub(MAX_PODS) + self.explanation.more_pods as usize;
            if more > 0 {
                page.line(4, DIM, &format!("and {}", count(more, "more pod")));
            }
        }
        if !others.is_empty() {
            page.blank();
            page.line(2, PLAIN, "these pods do not count:");
            for pod in others.iter().take(MAX_PODS) {
                page.marked(4, "·", DIM, PLAIN, &format!("{}. {}", on_node(pod), pod.message));
            }
            if others.len() > MAX_PODS {
                page.line(
                    4,
                    DIM,
                    &format!("and {}", count(others.len() - MAX_PODS, "more pod")),
                );
            }
        }
    }
}

impl DeploymentText<'_> {
    pub(crate) fn render(&self, page: &mut Page) {
        page.line(0, BOLD, &self.title);
        page.line(2, BOLD, &self.explanation.message);
        causes(page, self.causes, true);
        page.blank();
        for detail in &self.explanation.details {
            let is_cause = |cause: &Cause| *detail == format!("{}: {}", cause.replica_set, cause.message);
            if !self.causes.iter().any(is_cause) {
                page.line(2, PLAIN, detail);
            }
        }
        if !self.explanation.replica_sets.is_empty() {
            page.blank();
            page.line(2, PLAIN, "ReplicaSets:");
            self.render_sets(page);
        }
        self.render_scale_down(page);
    }

    fn render_sets(&self, page: &mut Page) {
        let sets = &self.explanation.replica_sets;
        let (kept, shown): (Vec<_>, Vec<_>) = sets.iter().partition(|set| is_idle(set));
        for set in shown {
            let (marker, style) = if set.is_new { ("new", ADD) } else { ("old", DIM) };
            page.marked(4, marker, style, PLAIN, &numbers(set));
            if let Some(text) = self.sets.iter().find(|text| text.name == set.name) {
                images(page, 8, text.facts);
            }
            page.line(8, PLAIN, &set.message);
        }
        let mut messages: Vec<(&str, Vec<&v1::ReplicaSetExplanation>)> = Vec::new();
        for set in kept {
            match messages.iter_mut().find(|(message, _)| *message == set.message) {
                Some((_, sets)) => sets.push(set),
                None => messages.push((&set.message, vec![set])),
            }
        }
        for (message, sets) in messages {
            let text = match sets.as_slice() {
                [one] => format!("{}: no pods; {message}", named(one)),
                several => format!(
                    "{} ({}): no pods; each {message}",
                    names::shorten(several.iter().map(|set| set.name.as_str())),
                    count(several.len(), "ReplicaSet")
                ),
            };
            page.marked(4, "old", DIM, PLAIN, &text);
        }
    }

    fn render_scale_down(&self, page: &mut Page) {
        let with_pods: Vec<_> = (self.sets.iter())
            .filter_map(|set| Some((set, first(set.explanation?)?)))
            .collect();
        if with_pods.is_empty() {
            return;
        }
        page.blank();
        page.line(2, PLAIN, "on scale-down:");
        let sized = self
            .explanation
            .replica_sets
            .iter()
            .filter(|set| set.replicas > 0);
        if sized.count() > 1 {
            page.line(
                4,
                PLAIN,
                "a smaller spec.replicas makes the ReplicaSets smaller in proportion to their sizes",
            );
        }
        for (set, (pod, is_only)) in with_pods {
            let text = if is_only {
                format!("{}: {} is the only pod", set.name, on_node(pod))
            } else {
                format!("{}: first {}. {}", set.name, on_node(pod), pod.message)
            };
            page.marked(4, "·", DIM, PLAIN, &text);
        }
    }
}

/// Whether a ReplicaSet has no pods and should have none.
fn is_idle(set: &v1::ReplicaSetExplanation) -> bool {
    !set.is_new && set.replicas == 0 && set.pods == 0
}

/// The pod that a scale-down deletes first, and whether it is the only one.
fn first(explanation: &v1::WorkloadExplanation) -> Option<(&v1::ReplicaExplanation, bool)> {
    let mut order = explanation.pods.iter().filter(|pod| pod.deletion_order > 0);
    let first = order.next()?;
    Some((first, order.next().is_none()))
}

/// `web-5d4f (revision 3): 3 replicas, 3 ready, 2 available`.
fn numbers(set: &v1::ReplicaSetExplanation) -> String {
    let pods = if set.pods == set.replicas {
        String::new()
    } else {
        format!(", {}", count(number(set.pods), "pod"))
    };
    format!(
        "{}: {}{pods}, {} ready, {} available",
        named(set),
        count(number(set.replicas), "replica"),
        set.ready,
        set.available
    )
}

fn number(count: i32) -> usize {
    usize::try_from(count).unwrap_or_default()
}

/// `web-5d4f (revision 3)`.
fn named(set: &v1::ReplicaSetExplanation) -> String {
    if set.revision == 0 {
        set.name.clone()
    } else {
        format!("{} (revision {})", set.name, set.revision)
    }
}

fn images(page: &mut Page, indent: usize, facts: &TemplateFacts) {
    if !facts.images.is_empty() {
        let noun = if facts.images.len() == 1 {
            "image"
        } else {
            "images"
        };
        page.line(indent, DIM, &format!("{noun} {}", facts.images.join(", ")));
    }
}

fn on_node(pod: &v1::ReplicaExplanation) -> String {
    if pod.node_name.is_empty() {
        pod.pod_name.clone()
    } else {
        format!("{} on {}", pod.pod_name, pod.node_name)
    }
}

/// The causes. `of_many`: they name their ReplicaSets, because there may be several.
fn causes(page: &mut Page, causes: &[Cause], of_many: bool) {
    for cause in causes.iter().take(MAX_CAUSES) {
        let pods = match cause.pods.as_slice() {
            [] if of_many && !cause.replica_set.is_empty() => format!("{}: ", cause.replica_set),
            [] => String::new(),
            [one] => format!("{one}: "),
            many => format!(
                "{} ({}): ",
                names::shorten(many.iter().map(String::as_str)),
                count(many.len(), "pod")
            ),
        };
        let restarts = match cause.restarts {
            0 => String::new(),
            1 => "; restarted once".to_owned(),
            restarts if cause.pods.len() > 1 => format!("; restarted up to {restarts} times"),
            restarts => format!("; restarted {restarts} times"),
        };
        page.marked(
            2,
            "✗",
            REMOVE,
            PLAIN,
            &format!("{pods}{}{restarts}", cause.message),
        );
    }
    if causes.len() > MAX_CAUSES {
        let more = causes.len() - MAX_CAUSES;
        page.marked(
            2,
            "✗",
            CHANGE,
            PLAIN,
            &format!("and {}", count(more, "more cause")),
        );
    }
}
