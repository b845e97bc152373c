//! The time that the executor takes to read a pod or a node from the JSON and from the Protobuf of the apiserver.

use std::hint::black_box;
use std::ops::Range;

use anyhow::{Context as _, Result, ensure};
use bytes::Bytes;
use nodewise_projection::{Node, Pod, ProjectError};
use prost::Message;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::figure::figure;
use crate::measure::{Spread, ThreadTimes};
use crate::report::{Finding, Target};

/// The objects of a round.
const OBJECTS: usize = 250;
/// How often each of them is read. The kernel counts CPU time in steps of a few milliseconds.
const PASSES: usize = 100;
/// The goal for a pod that is ready.
const LONGEST_MICROS: f64 = 4.0;

const ABOUT: &str = "\
The CPU time from the bytes of an object in a list of the apiserver to its projection, with everything that the executor keeps of it. The pods \
are of a DaemonSet with an init container and two containers; a ready pod has 9.8 kB of JSON, of which 44 % are managed fields. \
kube-apiserver 1.36 served each object in both encodings. 250 copies of an object are in memory one after the other, as in a page of a list. \
One thread reads all copies in one encoding, then all in the other; which one is first alternates. Splitting a page into its objects is not \
included. Of a pod that is not ready, the executor also reads why.";

/// Measures the given number of rounds.
///
/// # Errors
/// A recorded object cannot be read.
pub fn measure(rounds: usize) -> Result<Finding> {
    Ok(finding(&recorded_times(rounds, PASSES)?))
}

/// What was measured, and how long it takes.
type Measured = (&'static str, Times);

fn recorded_times(rounds: usize, passes: usize) -> Result<[Measured; 3]> {
    let mut pods = recorded(
        include_str!("../../../executor/projection/testdata/pods.json"),
        include_bytes!("../../../executor/projection/testdata/pods.pb"),
    )?
    .into_iter();
    let mut nodes = recorded(
        include_str!("../../../executor/projection/testdata/nodes.json"),
        include_bytes!("../../../executor/projection/testdata/nodes.pb"),
    )?
    .into_iter();
    let missing = "an object is missing";
    let mut pod = || times::<Pod>(&pods.next().context(missing)?, rounds, passes);
    let mut node = || times::<Node>(&nodes.next().context(missing)?, rounds, passes);
    Ok([
        ("a ready pod", pod()?),
        ("a pod that is not ready", pod()?),
        ("a node", node()?),
    ])
}

/// An object in both encodings.
struct Object {
    json: String,
    protobuf: Bytes,
}

/// The objects of a list.
fn recorded(json: &str, protobuf: &'static [u8]) -> Result<Vec<Object>> {
    #[derive(Deserialize)]
    struct Items<'a> {
        #[serde(borrow)]
        items: Vec<&'a RawValue>,
    }
    #[derive(Clone, PartialEq, Message)]
    struct Envelope {
        #[prost(message, optional, tag = "2")]
        list: Option<List>,
    }
    #[derive(Clone, PartialEq, Message)]
    struct List {
        #[prost(bytes = "bytes", repeated, tag = "2")]
        items: Vec<Bytes>,
    }
    let items: Items<'_> = serde_json::from_str(json)?;
    let envelope = protobuf.strip_prefix(b"k8s\0").context("no envelope")?;
    let messages = Envelope::decode(envelope)?.list.context("no list")?.items;
    ensure!(items.items.len() == messages.len(), "the lists differ in length");
    let objects = items.items.iter().zip(messages).map(|(json, protobuf)| Object {
        json: json.get().to_owned(),
        protobuf,
    });
    Ok(objects.collect())
}

/// A projection of objects in both encodings.
trait Projected: Sized {
    fn from_text(text: &str) -> Result<Self, ProjectError>;
    fn from_protobuf(message: &Bytes) -> Result<Self, ProjectError>;
}

impl Projected for Pod {
    fn from_text(text: &str) -> Result<Self, ProjectError> {
        Self::from_text(text)
    }
    fn from_protobuf(message: &Bytes) -> Result<Self, ProjectError> {
        Self::from_protobuf(message)
    }
}

impl Projected for Node {
    fn from_text(text: &str) -> Result<Self, ProjectError> {
        Self::from_text(text)
    }
    fn from_protobuf(message: &Bytes) -> Result<Self, ProjectError> {
        Self::from_protobuf(message)
    }
}

/// The measurements of one object.
struct Times {
    /// The bytes in JSON and in Protobuf.
    bytes: [usize; 2],
    /// Microseconds for one object.
    json: Spread,
    protobuf: Spread,
}

fn times<T: Projected>(object: &Object, rounds: usize, passes: usize) -> Result<Times> {
    let page = object.json.repeat(OBJECTS);
    let messages = Bytes::from(object.protobuf.repeat(OBJECTS));
    let [text, message] = [object.json.len(), object.protobuf.len()];
    let json = || per_object(text, passes, |range| T::from_text(&page[range]));
    let protobuf = || per_object(message, passes, |range| T::from_protobuf(&messages.slice(range)));
    let (mut of_json, mut of_protobuf) = (Vec::new(), Vec::new());
    // The first round does not count.
    for round in 0..=rounds {
        let (first, second);
        if round % 2 == 0 {
            first = json()?;
            second = protobuf()?;
        } else {
            second = protobuf()?;
            first = json()?;
        }
        if round > 0 {
            of_json.push(first);
            of_protobuf.push(second);
        }
    }
    Ok(Times {
        bytes: [text, message],
        json: Spread::of(of_json)?,
        protobuf: Spread::of(of_protobuf)?,
    })
}

/// The mean CPU time to read an object of this length, in microseconds.
fn per_object<T>(
    length: usize,
    passes: usize,
    read: impl Fn(Range<usize>) -> Result<T, ProjectError>,
) -> Result<f64> {
    let process = std::process::id();
    let before = ThreadTimes::of(process)?;
    for _ in 0..passes {
        for index in 0..OBJECTS {
            black_box(read(index * length..(index + 1) * length)?);
        }
    }
    let took = ThreadTimes::of(process)?.since(&before);
    #[expect(clippy::cast_precision_loss, reason = "a few ten thousand")]
    let objects = (passes * OBJECTS) as f64;
    Ok(took.as_secs_f64() * 1e6 / objects)
}

fn finding(kinds: &[Measured; 3]) -> Finding {
    let rows = kinds.iter().map(|(what, times)| {
        let faster = times.json.median() / times.protobuf.median();
        let [json, protobuf] = times.bytes.map(|bytes| {
            #[expect(clippy::cast_precision_loss, reason = "a few thousand")]
            let bytes = bytes as f64;
            figure(bytes / 1_000.0)
        });
        vec![
            (*what).to_owned(),
            json,
            protobuf,
            times.json.to_string(),
            times.protobuf.to_string(),
            figure(faster),
        ]
    });
    let ready = &kinds[0].1.protobuf;
    Finding {
        title: "Reading pods and nodes from the apiserver".to_owned(),
        about: ABOUT.to_owned(),
        columns: [
            "an object",
            "kB of JSON",
            "kB of Protobuf",
            "from JSON, µs",
            "from Protobuf, µs",
            "times faster",
        ]
        .map(str::to_owned)
        .to_vec(),
        rows: rows.collect(),
        targets: vec![Target::at_most(
            "reading a pod from Protobuf",
            LONGEST_MICROS,
            ready.median(),
            "µs",
        )],
        charts: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_recorded_object_is_measured() -> Result<()> {
        let finding = finding(&recorded_times(1, 1)?);
        assert_eq!(finding.rows.len(), 3);
        assert!(finding.rows.iter().all(|row| row.len() == finding.columns.len()));
        assert_eq!(finding.targets.len(), 1);
        Ok(())
    }
}
