//! Parses buckets, which a request gives as bytes, as a digest, or as both.

use nodewise_planner::snapshot::{Digest, List};
use nodewise_proto::{bucket as placement, v1};
use sha2::{Digest as _, Sha256};

use super::{
    Context, Path, Problems,
    items::{Form, Item, Notes, Reader as _},
    wire::Elements,
};
use crate::{
    cache::{BucketBy, BucketId, Decoded},
    refusal::{Refusal, Violation},
    warnings::Warnings,
};

/// Items that are decoded or checked between two checks of the deadline.
const ITEMS_PER_CHECK: usize = 512;
/// Bytes of an item that is always preceded by a check of the deadline.
const LONG_ITEM: usize = 64 << 10;
/// Bytes that are hashed between two checks of the deadline.
const BYTES_PER_CHECK: usize = 1 << 20;

/// All node buckets, or all pod buckets, of a snapshot.
pub(super) struct Buckets<T> {
    /// The items of each bucket, by index.
    pub(super) lists: Vec<List<T>>,
    /// The warnings about the items.
    pub(super) warnings: Warnings,
    /// Indices and digests of the buckets that are not in the cache.
    pub(super) missing: Vec<(u32, Digest)>,
}

impl<T: Item> Buckets<T> {
    /// The number of items in all buckets.
    pub(super) fn len(&self) -> usize {
        self.lists.iter().map(|list| list.count()).sum()
    }
}

/// Parses the list of buckets at `at`, which may have at most `most` items in total.
pub(super) fn all<T: Item>(
    messages: Vec<v1::Bucket>,
    (bucket_count, by): (u32, BucketBy),
    most: u32,
    at: &Path<'_>,
    context: &mut Context<'_>,
) -> Result<Buckets<T>, Refusal> {
    let mut parsed = Buckets {
        lists: Vec::with_capacity(messages.len()),
        warnings: Warnings::default(),
        missing: Vec::new(),
    };
    if messages.len() != bucket_count as usize {
        let found = messages.len();
        context
            .problems
            .add(at, format!("has {found} buckets; bucket_count is {bucket_count}"));
        return Ok(parsed);
    }
    let mut remaining = most as usize;
    for (index, message) in (0_u32..).zip(messages) {
        let id = BucketId {
            count: bucket_count,
            index,
            by,
        };
        let at = at.index(index as usize);
        match one::<T>(message, id, remaining, &at, context)? {
            Found::Here(bucket) => {
                remaining = remaining
                    .checked_sub(bucket.items.count())
                    .ok_or_else(|| too_many(&at, T::LIST))?;
                parsed.warnings.merge(&bucket.warnings);
                parsed.lists.push(bucket.items);
            }
            Found::Missing(digest) => parsed.missing.push((index, digest)),
            Found::Wrong => {}
        }
        if context.problems.is_full() {
            break;
        }
    }
    Ok(parsed)
}

enum Found<T> {
    Here(Decoded<T>),
    Missing(Digest),
    Wrong,
}

fn one<T: Item>(
    message: v1::Bucket,
    id: BucketId,
    remaining: usize,
    at: &Path<'_>,
    context: &mut Context<'_>,
) -> Result<Found<T>, Refusal> {
    let digest = match (message.digest.is_empty(), Digest::try_from(&message.digest[..])) {
        (true, _) => None,
        (false, Ok(digest)) => Some(digest),
        (false, Err(_)) => {
            let length = message.digest.len();
            context
                .problems
                .add(&at.field("digest"), format!("has {length} bytes; SHA-256 has 32"));
            return Ok(Found::Wrong);
        }
    };
    let (data, form) = match (message.data, message.data_with_shared_labels) {
        (data, None) => (data, Form::Plain),
        (None, data) if T::MAY_SHARE_LABELS => (data, Form::SharedLabels),
        (Some(_), Some(_)) if T::MAY_SHARE_LABELS => {
            context
                .problems
                .add(&at.field(Form::SharedLabels.field()), "is set, and so is data");
            return Ok(Found::Wrong);
        }
        (_, Some(_)) => {
            let problem = "is set; only buckets of nodes may have it";
            context
                .problems
                .add(&at.field(Form::SharedLabels.field()), problem);
            return Ok(Found::Wrong);
        }
    };
    let at_data = at.field(form.field());
    let (data, digest) = match (data, digest) {
        (None, None) => {
            context.problems.add(at, "has neither data nor a digest");
            return Ok(Found::Wrong);
        }
        (None, Some(digest)) => {
            let Some(bucket) = context.cache.bucket::<T>(&digest) else {
                return Ok(Found::Missing(digest));
            };
            return recheck(bucket, digest, id, &at_data, context);
        }
        (Some(data), None) => (data, None),
        (Some(data), Some(digest)) => {
            if sha256(&data, context)? != digest {
                let problem = format!("is not the SHA-256 of {}", form.field());
                context.problems.add(&at.field("digest"), problem);
                return Ok(Found::Wrong);
            }
            let is_allowed = |bucket: &Decoded<T>| form == Form::SharedLabels || !bucket.shares_labels;
            if let Some(bucket) = context.cache.bucket::<T>(&digest).filter(is_allowed) {
                return recheck(bucket, digest, id, &at_data, context);
            }
            (data, Some(digest))
        }
    };
    let Some(bucket) = decode::<T>((&data, form), digest, id, remaining, &at_data, context)? else {
        return Ok(Found::Wrong);
    };
    if let Some(digest) = digest {
        context.cache.put_bucket(digest, &bucket);
    }
    Ok(Found::Here(bucket))
}

/// Checks a cached bucket again if it was decoded for another index or bucket count. `at` is its data.
fn recheck<T: Item>(
    bucket: Decoded<T>,
    digest: Digest,
    id: BucketId,
    at: &Path<'_>,
    context: &mut Context<'_>,
) -> Result<Found<T>, Refusal> {
    if bucket.id == id {
        return Ok(Found::Here(bucket));
    }
    let at = at.field(T::LIST);
    let mut valid = true;
    for index in 0..bucket.items.count() {
        if index % ITEMS_PER_CHECK == 0 {
            context.check_stop()?;
        }
        let name = bucket.items.bucket_name(index, id.by);
        valid &= belongs(name, id, &at.index(index), &mut context.problems);
    }
    if !valid {
        return Ok(Found::Wrong);
    }
    let bucket = Decoded { id, ..bucket };
    context.cache.put_bucket(digest, &bucket);
    Ok(Found::Here(bucket))
}

/// Decodes a bucket item by item, so that an error names its item and parsing stops early at a limit or a deadline.
fn decode<T: Item>(
    (data, form): (&[u8], Form),
    digest: Option<Digest>,
    id: BucketId,
    remaining: usize,
    at: &Path<'_>,
    context: &mut Context<'_>,
) -> Result<Option<Decoded<T>>, Refusal> {
    let at_list = at.field(T::LIST);
    let mut count = 0;
    for element in Elements::listed(data) {
        match element {
            Ok(_) => count += 1,
            Err(error) => {
                context.problems.add(at, error);
                return Ok(None);
            }
        }
        if count > remaining {
            return Err(too_many(at, T::LIST));
        }
    }
    let mut reader = T::Reader::new((data, form), count, at, context)?;
    let mut warnings = Warnings::default();
    for (index, element) in Elements::listed(data).flatten().enumerate() {
        if index % ITEMS_PER_CHECK == 0 || element.len() > LONG_ITEM {
            context.check_stop()?;
        }
        let at = at_list.index(index);
        let notes = Notes {
            problems: &mut context.problems,
            warnings: &mut warnings,
        };
        match reader.read(element, id.by, &at, notes) {
            Ok(name) => _ = belongs(name, id, &at, &mut context.problems),
            Err(error) => context.problems.add(&at, error),
        }
        if context.problems.is_full() {
            break;
        }
    }
    let table = reader.finish(&at_list, context)?;
    // A bucket with a problem is not cached: the next request with this bucket must get the error too.
    Ok(context.problems.is_empty().then(|| Decoded {
        warnings,
        items: List::of(table, digest),
        shares_labels: form == Form::SharedLabels,
        id,
    }))
}

/// Checks that the bucket is that of the name.
fn belongs(name: &str, id: BucketId, at: &Path<'_>, problems: &mut Problems) -> bool {
    // With a single bucket no hash is needed.
    let expected = if id.count == 1 {
        0
    } else {
        placement::of(name, id.count)
    };
    if expected != id.index {
        problems.add(
            at,
            match id.by {
                BucketBy::Node => format!("is for node `{name}`, which belongs to bucket {expected}"),
                BucketBy::Name => format!("has the name `{name}`, which belongs to bucket {expected}"),
            },
        );
    }
    expected == id.index
}

fn too_many(at: &Path<'_>, list: &str) -> Refusal {
    Refusal::TooLarge(Violation {
        field: at.to_string(),
        description: format!(
            "with this the snapshot has more {list} than this server takes (see GetCapabilities)"
        ),
    })
}

fn sha256(data: &[u8], context: &Context<'_>) -> Result<Digest, Refusal> {
    let mut hasher = Sha256::new();
    for chunk in data.chunks(BYTES_PER_CHECK) {
        context.check_stop()?;
        hasher.update(chunk);
    }
    Ok(hasher.finalize().into())
}
