//! What the tests of `deploy/images` need.
//!
//! * [`Image`]: an image for one architecture: what it says about itself, and its files;
//! * [`Image::command`]: what is inside, started as a cluster would: as the image's user, on a read-only file system, with
//!   nothing else in sight;
//! * [`bill_of_materials`]: what is listed beside it.
//!
//! What shall be is in `tests/`. `make images-test` builds images and runs these; `make images` does with those for users.

mod layout;
mod sandbox;

pub use layout::{Config, Image, Settings, bill_of_materials};
