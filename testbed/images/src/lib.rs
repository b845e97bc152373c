//! Reads and runs the images of `deploy/images` for tests.
//!
//! * [`Image`]: the configuration and files of an image for one architecture;
//! * [`Image::command`]: runs its program as a cluster would: as the image's user, on a read-only file system, with no
//!   other files;
//! * [`bill_of_materials`]: the list of its components.
//!
//! The tests are in `tests/`. `make images-test` builds images and tests them; `make images` does the same with the
//! images for users.

mod layout;
mod sandbox;

pub use layout::{Config, Image, Settings, bill_of_materials};
