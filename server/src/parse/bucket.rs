//! Buckets: by their bytes or by their digest.

use nodewise_planner::snapshot::{Digest, List};
use nodewise_proto::{bucket as placement, v1};
use sha2::{Digest as _, Sha256};

use super::{
    Context, Path,
    items::{Item, Notes},
    wire::{self, Elements},
};
use crate::{
    cache::{BucketId, Decoded},
    refusal::{Refusal, Violation},
    warnings::Warnings,
};

/// Items decoded, or checked, between two looks at the deadline.
const ITEMS_PER_LOOK: usize = 512;
/// Bytes of an item before which the deadline is looked at in any case.
const LONG_ITEM: usize = 64 << 10;
/// Bytes hashed between two looks at the deadline.
const BYTES_PER_LOOK: usize = 1 << 20;

/// All buckets of a kind.
pub(super) struct Buckets<T> {
    /// What they hold, in order of their index.
    pub(super) lists: Vec<List<T>>,
    /// What is odd about what they hold.
    pub(super) warnings: Warnings,
    /// Indices and digests of those that are not in the cache.
    pub(super) missing: Vec<(u32, Digest)>,
}

impl<T> Buckets<T> {
    /// Items in all buckets.
    pub(super) fn len(&self) -> usize {
        self.lists.iter().map(|list| list.len()).sum()
    }
}

/// The bucket list `at` of a snapshot, of at most `most` items.
pub(super) fn all<T: Item>(
    messages: Vec<v1::Bucket>,
    bucket_count: u32,
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
    let mut room = most as usize;
    for (index, message) in (0_u32..).zip(messages) {
        let id = BucketId {
            count: bucket_count,
            index,
        };
        let at = at.index(index as usize);
        match one::<T>(message, id, room, &at, context)? {
            Found::Here(bucket) => {
                room = room
                    .checked_sub(bucket.items.len())
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
    room: usize,
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
    let (data, digest) = match (message.data, digest) {
        (None, None) => {
            context.problems.add(at, "has neither data nor a digest");
            return Ok(Found::Wrong);
        }
        (None, Some(digest)) => {
            let Some(bucket) = T::get(context.cache, &digest) else {
                return Ok(Found::Missing(digest));
            };
            return recheck(bucket, digest, id, at, context);
        }
        (Some(data), None) => (data, None),
        (Some(data), Some(digest)) => {
            if sha256(&data, context)? != digest {
                context
                    .problems
                    .add(&at.field("digest"), "is not the SHA-256 of data");
                return Ok(Found::Wrong);
            }
            if let Some(bucket) = T::get(context.cache, &digest) {
                return recheck(bucket, digest, id, at, context);
            }
            (data, Some(digest))
        }
    };
    let Some(bucket) = decode::<T>(&data, digest, id, room, &at.field("data"), context)? else {
        return Ok(Found::Wrong);
    };
    if let Some(digest) = digest {
        T::put(context.cache, digest, &bucket);
    }
    Ok(Found::Here(bucket))
}

/// A bucket of the cache that may have been decoded for another index or count.
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
    let at = at.field("data");
    let at = at.field(T::LIST);
    let mut right = true;
    for (index, item) in bucket.items.iter().enumerate() {
        if index % ITEMS_PER_LOOK == 0 {
            context.look()?;
        }
        right &= belongs(item, id, &at.index(index), context);
    }
    if !right {
        return Ok(Found::Wrong);
    }
    let bucket = Decoded { id, ..bucket };
    T::put(context.cache, digest, &bucket);
    Ok(Found::Here(bucket))
}

/// Decodes a bucket item by item, so that a limit, a deadline and a wrong field are met at the item where they are.
fn decode<T: Item>(
    data: &[u8],
    digest: Option<Digest>,
    id: BucketId,
    room: usize,
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
        if count > room {
            return Err(too_many(at, T::LIST));
        }
    }
    let mut items: Vec<T> = Vec::with_capacity(count);
    let mut right = true;
    let mut shared = T::shared(data, at, context)?;
    let mut labels = Vec::new();
    let mut warnings = Warnings::default();
    for (index, element) in Elements::listed(data).flatten().enumerate() {
        if index % ITEMS_PER_LOOK == 0 || element.len() > LONG_ITEM {
            context.look()?;
        }
        let at = at_list.index(index);
        labels.clear();
        match wire::decode::<T::Message>(element, &mut labels) {
            Ok(message) => {
                let notes = Notes {
                    problems: &mut context.problems,
                    warnings: &mut warnings,
                };
                let item = T::parse(message, &mut labels, &mut shared, &at, notes);
                right &= belongs(&item, id, &at, context);
                items.push(item);
            }
            Err(error) => {
                context.problems.add(&at, error);
                right = false;
            }
        }
        if context.problems.is_full() {
            break;
        }
    }
    right &= T::are_unique(&items, &at_list, context)?;
    // A bucket with a problem is not kept: the next call that brings it must hear of the problem too.
    Ok((right && context.problems.is_empty()).then(|| Decoded {
        warnings,
        items: match digest {
            Some(digest) => List::known_by(items, digest),
            None => List::new(items),
        },
        id,
    }))
}

fn belongs<T: Item>(item: &T, id: BucketId, at: &Path<'_>, context: &mut Context<'_>) -> bool {
    let name = item.bucket_name();
    // Everything belongs to the only bucket there is.
    let right = if id.count == 1 {
        0
    } else {
        placement::of(name, id.count)
    };
    if right != id.index {
        context.problems.add(
            at,
            format!("is for node `{name}`, which belongs to bucket {right}"),
        );
    }
    right == id.index
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
    for chunk in data.chunks(BYTES_PER_LOOK) {
        context.look()?;
        hasher.update(chunk);
    }
    Ok(hasher.finalize().into())
}
