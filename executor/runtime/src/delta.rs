//! How the objects of a resource change.

/// How the objects of one resource changed.
#[derive(Clone, Debug)]
pub enum Delta<T> {
    /// The object was added or modified.
    Applied(T),
    /// The object was deleted; this is its last state.
    Deleted(T),
    /// A complete list: the first one, or one after a gap. Objects that are not in it no longer exist.
    Listed {
        /// All objects, except those that were sent earlier as pages of this list.
        objects: Vec<T>,
        /// The metadata.resourceVersion of the list.
        resource_version: String,
    },
}

impl<T> Delta<T> {
    /// The resourceVersion of the list, if this is a list.
    #[must_use]
    pub fn listed(&self) -> Option<&str> {
        match self {
            Self::Listed { resource_version, .. } => Some(resource_version),
            Self::Applied(_) | Self::Deleted(_) => None,
        }
    }

    /// Converts the objects.
    #[must_use]
    pub fn map<U>(self, mut convert: impl FnMut(T) -> U) -> Delta<U> {
        match self {
            Self::Applied(object) => Delta::Applied(convert(object)),
            Self::Deleted(object) => Delta::Deleted(convert(object)),
            Self::Listed {
                objects,
                resource_version,
            } => Delta::Listed {
                objects: objects.into_iter().map(convert).collect(),
                resource_version,
            },
        }
    }
}
