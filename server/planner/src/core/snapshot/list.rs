//! The objects of one kind in one bucket, with their digest.

use std::{ops::Deref, sync::Arc};

/// The digest of a list. Lists with equal digests hold equal objects.
pub type Digest = [u8; 32];

/// A table of objects of one kind.
pub trait Table {
    /// An object of its own.
    type Item;

    /// A table of objects, which may be in any order.
    fn of(items: Vec<Self::Item>) -> Self;
}

/// A table with its digest. A clone shares the table.
#[derive(Debug)]
pub struct List<T> {
    table: Arc<T>,
    digest: Option<Digest>,
}

impl<T: Table> List<T> {
    /// A list without a digest. The objects may be in any order.
    #[must_use]
    pub fn new(items: Vec<T::Item>) -> Self {
        Self::of(T::of(items), None)
    }

    /// A list with a digest. The objects may be in any order.
    #[must_use]
    pub fn with_digest(items: Vec<T::Item>, digest: Digest) -> Self {
        Self::of(T::of(items), Some(digest))
    }
}

impl<T> List<T> {
    /// A list of the objects of a table.
    #[must_use]
    pub fn of(table: T, digest: Option<Digest>) -> Self {
        Self {
            table: Arc::new(table),
            digest,
        }
    }

    /// The same table with another digest.
    #[must_use]
    pub fn numbered(&self, digest: Digest) -> Self {
        Self {
            table: Arc::clone(&self.table),
            digest: Some(digest),
        }
    }

    /// The digest, if the list has one.
    #[must_use]
    pub fn digest(&self) -> Option<&Digest> {
        self.digest.as_ref()
    }
}

impl<T> Clone for List<T> {
    fn clone(&self) -> Self {
        Self {
            table: Arc::clone(&self.table),
            digest: self.digest,
        }
    }
}

impl<T: Default> Default for List<T> {
    fn default() -> Self {
        Self {
            table: Arc::default(),
            digest: None,
        }
    }
}

impl<T> Deref for List<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.table
    }
}
