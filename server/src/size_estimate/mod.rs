//! What a request will take in memory, before it is decoded.
//!
//! A list of empty messages takes two bytes an entry on its way and hundreds once it is decoded. So the bytes are walked
//! first, with nothing allocated, and a request that would take many times its size is refused, with the name of the field
//! that it is refused for. Of a DaemonSet the larger part by far is never more than text (`json`).
//!
//! Objects of the cluster are not the caller's: a tenant chooses the names of its pods, a kubelet the labels of its node, and
//! one with thousands of short labels must not keep a plan from being made. So what nodes, pods, their labels and taints, revisions,
//! and entries of the state take is weighed, and held as memory, and is not compared with their bytes, up to [`MOST_BYTES`] for a
//! request.

mod json;
mod shapes;

use bytes::{Buf as _, Bytes};
use nodewise_planner::snapshot::Labels;
use nodewise_proto::v1;
use prost::{
    Message,
    encoding::{DecodeContext, WireType, decode_key, decode_varint, skip_field},
};
use tonic::Status;

use crate::{
    parse::Path,
    refusal::{Refusal, Violation},
};

/// What a request may take for each of its bytes.
const TIMES: usize = 9;
/// What a request may take besides: the longest affinity that is taken, or a page of HTML, whose escapes are long.
const ALLOWANCE: usize = 3 << 20;
/// What a request may take in any case, if that is more: as many nodes and pods as a snapshot may have by default, whatever
/// their names, with some labels each.
const MOST_BYTES: usize = 512 << 20;
/// Bytes of the smallest message that says anything, such as a name of one letter. What says less is no object of a cluster.
const NAMED: usize = 3;
/// What a label takes while its object is read: its key and its value in a list that grows, and what sorting that takes.
const LABEL_WHILE_READ: usize = 4 * size_of::<(&str, &str)>();

/// What may be in a field, and what it takes from decoding to the answer, in bytes. Measured by the large inputs of the
/// fuzz targets, and rounded up.
enum Part {
    /// A message, which takes `each` besides what is in it.
    Message { each: usize, inside: &'static Shape },
    /// An object of the cluster, or an entry of the state about one, which takes `each` besides what is in it.
    Object { each: usize, inside: &'static Shape },
    /// A label of an object.
    Label,
    /// A text, which takes `each` besides its length.
    Text { each: usize },
    /// Numbers, of which each takes at least a byte.
    Numbers { each: usize },
    /// The workload as JSON: its template is copied into the revision and into the manifest, and the plan with both is
    /// written.
    Workload,
    /// A revision as JSON, of which the data is kept as text. The others' other parts are gone when one is read.
    Revision,
}

/// The texts of a workload's template that there are at once.
const WORKLOAD_TEXTS: usize = 6;
/// Those of a revision's data, also while it is read.
const REVISION_TEXTS: usize = 4;

/// The fields of a message that can be long, by their tags.
pub struct Shape(&'static [(u32, &'static str, Part)]);

/// A message that a client sends.
pub trait Request: Message + Default + 'static {
    /// What can be long in it.
    const SHAPE: Shape;
}

impl Request for v1::PlanRequest {
    const SHAPE: Shape = shapes::PLAN_REQUEST;
}

impl Request for v1::PlanStreamRequest {
    const SHAPE: Shape = shapes::PLAN_STREAM_REQUEST;
}

impl Request for v1::ReportRequest {
    const SHAPE: Shape = shapes::REPORT;
}

impl Request for v1::ExplainRequest {
    const SHAPE: Shape = shapes::EXPLAIN_REQUEST;
}

impl Request for v1::GetCapabilitiesRequest {
    const SHAPE: Shape = Shape(&[]);
}

/// Decodes a request that does not take too much.
pub fn decode<M: Request>(bytes: Bytes) -> Result<M, Status> {
    estimate::<M>(&bytes)?;
    decode_estimated(bytes)
}

/// What a request takes in memory from decoding to the answer, in bytes; an error if that is too much.
pub fn estimate<M: Request>(bytes: &[u8]) -> Result<usize, Refusal> {
    let mut scale = Scale {
        weight: 0,
        passing: 0,
        labels: 0,
        objects: 0,
        most: most(bytes.len()),
    };
    scale.message(bytes, &M::SHAPE, None)?;
    Ok(scale.weight + scale.passing)
}

/// Decodes a request that was weighed.
pub(crate) fn decode_estimated<M: Request>(bytes: Bytes) -> Result<M, Status> {
    // As the generated code answers.
    M::decode(bytes).map_err(|error| Status::internal(error.to_string()))
}

/// The most that a request of so many bytes may take.
pub(crate) fn most(bytes: usize) -> usize {
    TIMES.saturating_mul(bytes).saturating_add(ALLOWANCE)
}

struct Scale {
    weight: usize,
    /// What the largest part takes for a while, until the next one is read.
    passing: usize,
    /// Labels so far of the object at hand.
    labels: usize,
    /// What of all that objects of the cluster take.
    objects: usize,
    /// What all else may take.
    most: usize,
}

impl Scale {
    /// Weighs the fields of a message. What cannot be read ends the walk: the decoder will say what is wrong with it.
    fn message(&mut self, mut bytes: &[u8], shape: &Shape, at: Option<&Path<'_>>) -> Result<(), Refusal> {
        let mut counts = [0; shapes::MOST_FIELDS];
        while !bytes.is_empty() {
            let Ok((tag, wire_type)) = decode_key(&mut bytes) else {
                return Ok(());
            };
            let known = shape
                .0
                .iter()
                .zip(&mut counts)
                .find(|((known, ..), _)| *known == tag);
            let Some(((_, name, part), count)) = known else {
                if skip_field(wire_type, tag, &mut bytes, DecodeContext::default()).is_err() {
                    return Ok(());
                }
                continue;
            };
            let at = Path::member(at, name);
            let Some(content) = content(wire_type, tag, &mut bytes) else {
                return Ok(());
            };
            // A field that is there once needs no index.
            if matches!(
                part,
                Part::Message { each: 1.., .. } | Part::Object { .. } | Part::Label
            ) {
                self.part(content, part, &at.index(*count))?;
            } else {
                self.part(content, part, &at)?;
            }
            *count += 1;
        }
        Ok(())
    }

    fn part(&mut self, content: &[u8], part: &Part, at: &Path<'_>) -> Result<(), Refusal> {
        match part {
            Part::Message { each, inside } => {
                self.add(*each, at)?;
                self.message(content, inside, Some(at))
            }
            Part::Object { each, inside } => {
                self.labels = 0;
                if content.len() >= NAMED {
                    self.objects = self.objects.saturating_add(*each);
                }
                self.add(*each, at)?;
                self.message(content, inside, Some(at))
            }
            Part::Label => self.label(content, at),
            Part::Text { each } => self.add(each + content.len(), at),
            Part::Numbers { each } => self.add(each * content.len().max(1), at),
            Part::Workload => {
                let besides = json::besides(content, json::text_of_daemon_set);
                self.add(WORKLOAD_TEXTS * content.len() + besides, at)
            }
            Part::Revision => {
                let besides = json::besides(content, json::text_of_revision);
                self.objects = self.objects.saturating_add(self.pass(besides));
                self.add(REVISION_TEXTS * content.len(), at)
            }
        }
    }

    /// Labels are kept as one text with their ends.
    fn label(&mut self, content: &[u8], at: &Path<'_>) -> Result<(), Refusal> {
        self.labels += 1;
        let passing = self.pass(self.labels.saturating_mul(LABEL_WHILE_READ));
        let weight = Labels::BYTES_PER_LABEL + content.len();
        if content.len() >= NAMED {
            self.objects = self.objects.saturating_add(weight + passing);
        }
        self.add(weight, at)
    }

    /// Notes what a part takes for a while; gives how much more that is than any part took before.
    fn pass(&mut self, passing: usize) -> usize {
        let more = passing.saturating_sub(self.passing);
        self.passing += more;
        more
    }

    /// What the request may take, with the objects that were met so far.
    fn limit(&self) -> usize {
        let with_objects = self.most.saturating_add(self.objects);
        with_objects.min(self.most.max(MOST_BYTES))
    }

    fn add(&mut self, weight: usize, at: &Path<'_>) -> Result<(), Refusal> {
        self.weight = self.weight.saturating_add(weight);
        let limit = self.limit();
        if self.weight.saturating_add(self.passing) <= limit {
            return Ok(());
        }
        Err(Refusal::TooLarge(Violation {
            field: at.to_string(),
            description: format!(
                "with this the request takes more than {limit} bytes of memory, many times its size: it has more and smaller \
                 parts than any cluster"
            ),
        }))
    }
}

/// What is in a field; empty for a number by itself. `None` when the message is broken.
fn content<'a>(wire_type: WireType, tag: u32, bytes: &mut &'a [u8]) -> Option<&'a [u8]> {
    if wire_type != WireType::LengthDelimited {
        skip_field(wire_type, tag, bytes, DecodeContext::default()).ok()?;
        return Some(&[]);
    }
    let length = usize::try_from(decode_varint(bytes).ok()?).ok()?;
    let content = bytes.get(..length)?;
    bytes.advance(length);
    Some(content)
}
