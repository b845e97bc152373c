//! Lists of which one element counts.

use std::{fmt, marker::PhantomData};

use serde::Deserialize;
use serde::de::{Deserializer, SeqAccess, Visitor};

/// The first element of a list that is looked for. The others are read and dropped: however long the list, it takes no
/// memory.
#[derive(Clone, Debug)]
pub struct First<T>(pub Option<T>);

/// What tells the element of a [`First`] from the others.
pub trait LookedFor {
    /// This is one.
    fn is_it(&self) -> bool;
}

impl<'de, T: LookedFor + Deserialize<'de>> Deserialize<'de> for First<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(Search(PhantomData))
    }
}

struct Search<T>(PhantomData<T>);

impl<'de, T: LookedFor + Deserialize<'de>> Visitor<'de> for Search<T> {
    type Value = First<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a sequence")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<First<T>, A::Error> {
        let mut first = None;
        while let Some(element) = list.next_element::<T>()? {
            if first.is_none() && element.is_it() {
                first = Some(element);
            }
        }
        Ok(First(first))
    }
}
