//! What a pod requests, from its template: the formula of Kubernetes' `PodRequests`, after the defaults that the apiserver sets in
//! every pod.
//!
//! What happens at admission is not in a template and is not counted: the requests that a LimitRange sets, and the overhead of a
//! RuntimeClass. [`notes`] says so.

use std::collections::BTreeMap;

use crate::core::{
    json::{Json, Part},
    quantity::Quantity,
};

/// The path of the pod's spec inside the object.
const AT: &str = "spec.template.spec";
/// The most resources of one pod. Real pods have less than ten.
const MOST_RESOURCES: usize = 64;
/// The longest name of a resource, in bytes: a prefix, a slash and a name. Kubernetes accepts no longer one.
const NAME_BYTES: usize = 317;
/// The most bytes of a wrong value in a message.
const VALUE_BYTES: usize = 100;

/// The requests of a pod, by resource.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PodRequests(pub(crate) BTreeMap<String, Quantity>);

impl PodRequests {
    /// Each resource with its amount in the canonical form in which Kubernetes prints it, sorted by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, String)> {
        self.0
            .iter()
            .map(|(name, amount)| (name.as_str(), amount.to_string()))
    }

    /// Adds the other requests; the error names a resource whose sum is too large.
    fn add(&mut self, other: &Self) -> Result<(), String> {
        for (name, amount) in &other.0 {
            let sum = self.0.get(name).copied().unwrap_or(Quantity::ZERO);
            let sum = sum
                .checked_add(*amount)
                .ok_or_else(|| format!("{AT}: the sum of all requests of {name} is too large"))?;
            self.0.insert(name.clone(), sum);
        }
        Ok(())
    }

    /// Raises each resource to the other amount, if that is larger.
    fn raise(&mut self, other: &Self) {
        for (name, amount) in &other.0 {
            let raised = self.0.get(name).map_or(*amount, |own| own.max(*amount));
            self.0.insert(name.clone(), raised);
        }
    }

    /// Sets the resources that are absent to the other amounts.
    fn default_to<'a>(&mut self, other: impl Iterator<Item = (&'a String, &'a Quantity)>) {
        for (name, amount) in other {
            self.0.entry(name.clone()).or_insert(*amount);
        }
    }
}

/// Requests and limits of a container, or of the pod as a whole.
#[derive(Debug, Default)]
struct Resources {
    requests: PodRequests,
    limits: PodRequests,
}

/// A container with what it requests.
struct Container {
    resources: Resources,
    /// An init container that keeps running.
    is_sidecar: bool,
}

/// The requests of the pods of a template. The error begins with the path inside the object.
pub(crate) fn of_template(template: &Json) -> Result<PodRequests, String> {
    let spec = template.part().object("spec");
    let containers = containers(spec, "containers")?;
    let init = self::containers(spec, "initContainers")?;
    let pod = resources(spec.get("resources"), &format!("{AT}.resources"))?;
    let overhead = list(spec.get("overhead"), &format!("{AT}.overhead"))?;

    let mut requests = aggregate(&containers, &init, |resources| &resources.requests)?;
    let limits = aggregate(&containers, &init, |resources| &resources.limits)?;
    let pod = with_defaults(pod, &requests, &limits);
    for (name, amount) in pod.requests.0.iter().filter(|(name, _)| is_of_pods(name)) {
        requests.0.insert(name.clone(), *amount);
    }
    requests.add(&overhead)?;
    if requests.0.len() > MOST_RESOURCES {
        let found = requests.0.len();
        return Err(format!(
            "{AT}: names {found} resources; at most {MOST_RESOURCES} are taken"
        ));
    }
    Ok(requests)
}

/// The containers of a list, with a request for each limit that has none.
fn containers(spec: Part<'_>, field: &str) -> Result<Vec<Container>, String> {
    let Some(found) = spec.get(field).filter(|found| !found.is_null()) else {
        return Ok(Vec::new());
    };
    if !found.is_list() {
        return Err(format!("{AT}.{field}: must be a list of containers"));
    }
    let read = |(index, container): (usize, Part<'_>)| {
        let at = format!("{AT}.{field}[{index}].resources");
        let mut resources = resources(container.get("resources"), &at)?;
        resources.requests.default_to(resources.limits.0.iter());
        let policy = container.get("restartPolicy");
        Ok(Container {
            resources,
            is_sidecar: policy.is_some_and(|policy| policy.text() == "\"Always\""),
        })
    };
    found.items().enumerate().map(read).collect()
}

/// The formula for containers: all containers and sidecars at once, but at least what an init container needs together with the
/// sidecars that have started before it.
fn aggregate(
    containers: &[Container],
    init: &[Container],
    of: impl Fn(&Resources) -> &PodRequests,
) -> Result<PodRequests, String> {
    let mut running = PodRequests::default();
    for container in containers {
        running.add(of(&container.resources))?;
    }
    let (mut sidecars, mut starting) = (PodRequests::default(), PodRequests::default());
    for container in init {
        let own = of(&container.resources);
        if container.is_sidecar {
            running.add(own)?;
            sidecars.add(own)?;
            starting.raise(&sidecars);
        } else {
            let mut needed = own.clone();
            needed.add(&sidecars)?;
            starting.raise(&needed);
        }
    }
    running.raise(&starting);
    Ok(running)
}

/// The pod's own resources with the apiserver's defaults, which apply only if some are given.
fn with_defaults(mut pod: Resources, requests: &PodRequests, limits: &PodRequests) -> Resources {
    if pod.requests.0.is_empty() && pod.limits.0.is_empty() {
        return pod;
    }
    let set = |name: &String| pod.requests.0.contains_key(name);
    let pages = limits
        .0
        .iter()
        .filter(|(name, _)| is_huge_pages(name) && !set(name));
    pod.limits.default_to(pages);
    if !pod.limits.0.is_empty() {
        let of_containers = requests.0.iter();
        let overcommitted = of_containers.filter(|(name, _)| is_of_pods(name) && !is_huge_pages(name));
        pod.requests.default_to(overcommitted);
        let limits = pod.limits.0.iter().filter(|(name, _)| is_of_pods(name));
        pod.requests.default_to(limits);
    }
    pod
}

/// Whether a pod as a whole can request a resource.
fn is_of_pods(name: &str) -> bool {
    matches!(name, "cpu" | "memory") || is_huge_pages(name)
}

fn is_huge_pages(name: &str) -> bool {
    name.starts_with("hugepages-")
}

fn resources(part: Option<Part<'_>>, at: &str) -> Result<Resources, String> {
    let Some(part) = part else {
        return Ok(Resources::default());
    };
    if !part.is_object() && !part.is_null() {
        return Err(format!("{at}: must be an object"));
    }
    Ok(Resources {
        requests: list(part.get("requests"), &format!("{at}.requests"))?,
        limits: list(part.get("limits"), &format!("{at}.limits"))?,
    })
}

/// Reads a list of quantities by name.
fn list(part: Option<Part<'_>>, at: &str) -> Result<PodRequests, String> {
    let Some(part) = part.filter(|part| !part.is_null()) else {
        return Ok(PodRequests::default());
    };
    if !part.is_object() {
        return Err(format!("{at}: must be an object of quantities"));
    }
    let read = |(name, value): (_, Part<'_>)| {
        let name = String::from(name);
        if name.len() > NAME_BYTES {
            let found = name.len();
            return Err(format!(
                "{at}: the name of a resource has {found} bytes; at most {NAME_BYTES} are taken"
            ));
        }
        let amount = quantity(value).map_err(|error| format!("{at}.{name}: {error}"))?;
        Ok((name, amount))
    };
    part.members()
        .map(read)
        .collect::<Result<_, _>>()
        .map(PodRequests)
}

/// Reads a quantity: a string, or a number as people write it in YAML. The apiserver rounds it up to thousandths.
fn quantity(value: Part<'_>) -> Result<Quantity, String> {
    if value.is_null() {
        return Ok(Quantity::ZERO);
    }
    let text = value.text().trim_matches('"').trim();
    match Quantity::parse(text).and_then(Quantity::rounded_up) {
        Some(quantity) if quantity.is_negative() => {
            Err(format!("{text} is negative; a request is 0 or more"))
        }
        Some(quantity) => Ok(quantity),
        None => {
            let shown = &text[..text.floor_char_boundary(VALUE_BYTES)];
            Err(format!("`{shown}` is not a quantity such as 250m, 1.5 or 64Mi"))
        }
    }
}

/// What a template does not tell about its requests, in sentences for people.
pub(crate) fn notes(template: &Json) -> Vec<String> {
    let spec = template.part().object("spec");
    let is_set = |part: Option<Part<'_>>| part.is_some_and(|part| !part.is_null());
    let mut notes = Vec::new();
    if is_set(spec.get("runtimeClassName")) && !is_set(spec.get("overhead")) {
        notes.push(
            "the template has a runtimeClassName: if that RuntimeClass has an overhead, it is added at admission and not counted here"
                .to_owned(),
        );
    }
    if spec
        .get("resourceClaims")
        .is_some_and(|claims| claims.items().next().is_some())
    {
        notes.push("devices of resourceClaims are not counted".to_owned());
    }
    let lists = ["containers", "initContainers"]
        .into_iter()
        .filter_map(|list| spec.get(list));
    let without = lists.flat_map(Part::items).filter(|container| {
        let resources = container.object("resources");
        let has = |name| {
            let lists = [resources.object("requests"), resources.object("limits")];
            lists.into_iter().any(|list| list.get(name).is_some())
        };
        !has("cpu") || !has("memory")
    });
    match without.count() {
        0 => {}
        1 => notes.push(
            "1 container requests no cpu or no memory: a LimitRange of the namespace may set what is missing".to_owned(),
        ),
        count => notes.push(format!(
            "{count} containers request no cpu or no memory: a LimitRange of the namespace may set what is missing"
        )),
    }
    notes
}

#[cfg(test)]
mod tests;
