//! Reads one element of a list.

use std::{fmt, marker::PhantomData};

use serde::Deserialize;
use serde::de::{Deserializer, SeqAccess, Visitor};

/// The first element of a list that matches. The other elements are read and dropped, so a long list takes no memory.
#[derive(Clone, Debug)]
pub struct FirstMatch<T>(pub Option<T>);

/// The condition for the element of a [`FirstMatch`].
pub trait ElementFilter {
    /// Whether this element matches.
    fn is_match(&self) -> bool;
}

/// Converts no more elements than needed.
impl<T: ElementFilter> FromIterator<T> for FirstMatch<T> {
    fn from_iter<I: IntoIterator<Item = T>>(list: I) -> Self {
        Self(list.into_iter().find(ElementFilter::is_match))
    }
}

impl<'de, T: ElementFilter + Deserialize<'de>> Deserialize<'de> for FirstMatch<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(FirstVisitor(PhantomData))
    }
}

struct FirstVisitor<T>(PhantomData<T>);

impl<'de, T: ElementFilter + Deserialize<'de>> Visitor<'de> for FirstVisitor<T> {
    type Value = FirstMatch<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a sequence")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<FirstMatch<T>, A::Error> {
        let mut first = None;
        while let Some(element) = list.next_element::<T>()? {
            if first.is_none() && element.is_match() {
                first = Some(element);
            }
        }
        Ok(FirstMatch(first))
    }
}
