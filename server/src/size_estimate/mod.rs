//! Estimates how much memory a request takes, before it is decoded.
//!
//! An empty message in a list takes two bytes on the wire and hundreds of bytes once decoded. So the estimate walks the bytes
//! first, without allocating, and refuses a request that would take many times its size. The error names the field. Most of a
//! DaemonSet stays text (`json`).
//!
//! The caller does not write the objects of the cluster: a tenant chooses the names of its pods, a kubelet the labels of its node.
//! A node with thousands of short labels must not prevent a plan. So the memory of nodes, pods, their labels and taints, revisions,
//! policies, what was measured for them, and entries of the state is estimated and held, but may be many times their bytes, up to [`MOST_BYTES`] for a request.

mod json;
mod shapes;

use bytes::{Buf as _, Bytes};
use nodewise_proto::v1;
use prost::{
    Message,
    encoding::{DecodeContext, WireType, decode_key, decode_varint, skip_field},
};
use tonic::Status;

use crate::{
    parse::{MOST_VALUE_BYTES, Path},
    refusal::{Refusal, Violation},
};

/// Bytes of memory that a request may take for each of its bytes.
const TIMES: usize = 9;
/// Bytes of memory that a request may take on top: enough for the longest affinity, or for a page of HTML with its long escapes.
const ALLOWANCE: usize = 3 << 20;
/// Bytes of memory up to which objects of the cluster raise the limit of a request: enough for as many nodes and pods as a snapshot
/// may have by default, with any names and some labels each.
const MOST_BYTES: usize = 512 << 20;
/// Bytes of the smallest message with content, such as a name of one letter. A smaller one is no object of a cluster.
const NAMED: usize = 3;
/// Bytes of a label while its object is read: key and value in a growing list, and the memory to sort that list.
const LABEL_WHILE_READ: usize = 4 * size_of::<(&str, &str)>();

/// Bytes of the number of a label in a growing list.
const NUMBER: usize = 3 * size_of::<u32>();
/// Bytes of the number of a label while its node is read: in two growing lists, one of them with the key.
const NUMBER_WHILE_READ: usize = NUMBER + 3 * size_of::<(&str, u32)>();

/// The content of a field, and the bytes of memory that it takes from decoding to the response. Measured with the large inputs of
/// the fuzz targets, and rounded up.
enum Part {
    /// A message, which takes `each` besides its fields.
    Message { each: usize, inside: &'static Shape },
    /// An object of the cluster, or an entry of the state about one, which takes `each` besides its fields.
    Object { each: usize, inside: &'static Shape },
    /// A label of an object, which takes `each` and so many times its length.
    Label { each: usize, times: usize },
    /// Packed numbers of labels of the bucket. The lists of labels of all nodes are stored as numbers, too.
    LabelNumbers,
    /// A string, which takes `each` besides its length.
    Text { each: usize },
    /// Packed numbers. Each takes at least a byte of the field.
    Numbers { each: usize },
    /// The workload as JSON. Its template is copied into the revision and into the manifest, and the plan contains both.
    Workload,
    /// A revision as JSON. Its data stays text; everything else is freed before the next revision is read.
    Revision,
    /// A ReplicaSet of a Deployment as JSON. Its template and its conditions stay text.
    ReplicaSet,
    /// A RolloutPolicy as JSON.
    Policy,
    /// A measured value as JSON, which whoever was asked has written.
    Value,
}

/// Copies of a workload's template that exist at the same time.
const WORKLOAD_TEXTS: usize = 6;
/// Copies of a revision's data, or of a ReplicaSet's template, that exist at the same time.
const REVISION_TEXTS: usize = 4;
/// Copies of a measured value, as text.
const VALUE_TEXTS: usize = 2;
/// Copies of a policy's text that exist at the same time: in the request, in its parts, and in the write of its status.
const POLICY_TEXTS: usize = 4;
/// Copies of a decoded policy while the write of its status is decided: several of the entries, without the room to grow.
const STATUS_COPIES: usize = 1;

/// The fields of a message that can be long: tag, name, content.
pub struct Shape(&'static [(u32, &'static str, Part)]);

/// A message that a client sends.
pub trait Request: Message + Default + 'static {
    /// The fields that can be long.
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

impl Request for v1::SimulateRequest {
    const SHAPE: Shape = shapes::SIMULATE_REQUEST;
}

impl Request for v1::EvaluateNodesRequest {
    const SHAPE: Shape = shapes::EVALUATE_NODES_REQUEST;
}

impl Request for v1::GetCapabilitiesRequest {
    const SHAPE: Shape = Shape(&[]);
}

/// Decodes a request, or refuses it if it would take too much memory.
pub fn decode<M: Request>(bytes: Bytes) -> Result<M, Status> {
    estimate::<M>(&bytes)?;
    decode_estimated(bytes)
}

/// The bytes of memory that a request takes from decoding to the response, besides its own bytes; an error if that is too much.
pub fn estimate<M: Request>(bytes: &[u8]) -> Result<usize, Refusal> {
    let mut estimator = Estimator {
        lasting: 0,
        temporary: 0,
        labels: 0,
        numbers: 0,
        objects: 0,
        most: most(bytes.len()),
    };
    estimator.message(bytes, &M::SHAPE, None)?;
    Ok(estimator.lasting + estimator.temporary)
}

/// Decodes a request whose estimate is not too high.
pub(crate) fn decode_estimated<M: Request>(bytes: Bytes) -> Result<M, Status> {
    // The same status as tonic's generated code gives.
    M::decode(bytes).map_err(|error| Status::internal(error.to_string()))
}

/// The most memory that a request of `bytes` bytes may take, not counting objects of the cluster.
pub(crate) fn most(bytes: usize) -> usize {
    TIMES.saturating_mul(bytes).saturating_add(ALLOWANCE)
}

/// Bytes of memory so far.
struct Estimator {
    /// Memory that is held until the response.
    lasting: usize,
    /// The most memory that any part takes only while it is read.
    temporary: usize,
    /// The number of labels so far of the current object.
    labels: usize,
    /// The bytes so far of its numbers of shared labels.
    numbers: usize,
    /// The part of the memory that objects of the cluster take.
    objects: usize,
    /// The most memory that everything else may take.
    most: usize,
}

impl Estimator {
    /// Adds the fields of a message. The walk ends at bytes that cannot be read; the decoder will report them.
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
            // Only repeated fields have an index in the path.
            if matches!(
                part,
                Part::Message { each: 1.., .. } | Part::Object { .. } | Part::Label { .. }
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
                (self.labels, self.numbers) = (0, 0);
                if content.len() >= NAMED {
                    self.objects = self.objects.saturating_add(*each);
                }
                self.add(*each, at)?;
                self.message(content, inside, Some(at))
            }
            Part::Label { each, times } => self.label(content, (*each, *times), at),
            Part::LabelNumbers => {
                self.numbers += content.len();
                let temporary = self.raise_temporary(self.numbers.saturating_mul(NUMBER_WHILE_READ));
                let lasting = content.len() * NUMBER;
                self.objects = self.objects.saturating_add(lasting + temporary);
                self.add(lasting, at)
            }
            Part::Text { each } => self.add(each + content.len(), at),
            Part::Numbers { each } => self.add(each * content.len().max(1), at),
            Part::Workload => {
                let extra = json::extra_bytes(content, json::text_of_daemon_set);
                self.add(WORKLOAD_TEXTS * content.len() + extra, at)
            }
            Part::Revision => {
                let extra = json::extra_bytes(content, json::text_of_revision);
                self.objects = self.objects.saturating_add(self.raise_temporary(extra));
                self.add(REVISION_TEXTS * content.len(), at)
            }
            Part::ReplicaSet => {
                let extra = json::extra_bytes(content, json::text_of_replica_set);
                self.objects = self.objects.saturating_add(extra);
                self.add(REVISION_TEXTS * content.len() + extra, at)
            }
            Part::Policy => {
                let extra = json::extra_bytes_of_policy(content);
                let copies = self.raise_temporary(STATUS_COPIES * (content.len() + extra));
                let lasting = POLICY_TEXTS * content.len() + extra;
                self.objects = self.objects.saturating_add(lasting + copies);
                self.add(lasting, at)
            }
            Part::Value => {
                let mut lasting = VALUE_TEXTS * content.len();
                if content.len() <= MOST_VALUE_BYTES {
                    lasting += json::tree_bytes(content);
                }
                self.objects = self.objects.saturating_add(lasting);
                self.add(lasting, at)
            }
        }
    }

    /// Adds a label.
    fn label(&mut self, content: &[u8], (each, times): (usize, usize), at: &Path<'_>) -> Result<(), Refusal> {
        self.labels += 1;
        let temporary = self.raise_temporary(self.labels.saturating_mul(LABEL_WHILE_READ));
        let lasting = each + times * content.len();
        if content.len() >= NAMED {
            self.objects = self.objects.saturating_add(lasting + temporary);
        }
        self.add(lasting, at)
    }

    /// Notes the memory that a part takes only while it is read. Returns by how much that exceeds every part before.
    fn raise_temporary(&mut self, bytes: usize) -> usize {
        let more = bytes.saturating_sub(self.temporary);
        self.temporary += more;
        more
    }

    /// The most memory that the request may take, given the objects so far.
    fn limit(&self) -> usize {
        let with_objects = self.most.saturating_add(self.objects);
        with_objects.min(self.most.max(MOST_BYTES))
    }

    fn add(&mut self, bytes: usize, at: &Path<'_>) -> Result<(), Refusal> {
        self.lasting = self.lasting.saturating_add(bytes);
        let limit = self.limit();
        if self.lasting.saturating_add(self.temporary) <= limit {
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

/// The content of a field. Of a field that is a single number: the encoded number, as if packed. `None` if the message is broken.
fn content<'a>(wire_type: WireType, tag: u32, bytes: &mut &'a [u8]) -> Option<&'a [u8]> {
    if wire_type != WireType::LengthDelimited {
        let field = *bytes;
        skip_field(wire_type, tag, bytes, DecodeContext::default()).ok()?;
        return match wire_type {
            WireType::Varint => field.get(..field.len() - bytes.len()),
            _ => Some(&[]),
        };
    }
    let length = usize::try_from(decode_varint(bytes).ok()?).ok()?;
    let content = bytes.get(..length)?;
    bytes.advance(length);
    Some(content)
}
