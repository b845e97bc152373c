//! Memory is counted as it is taken. A process of its own, since other tests' memory would count too.

use nodewise_fuzz::budget::{Origin, hold};

#[test]
fn memory_within_the_bound_passes_and_beyond_it_is_a_failure() {
    assert_eq!(
        hold(Origin::Request(0), 1 << 20, || vec![1_u8; 10 << 20].len()),
        10 << 20
    );
    let beyond =
        std::panic::catch_unwind(|| hold(Origin::Request(0), 1 << 20, || vec![1_u8; 17 << 20].len()));
    let message = beyond
        .expect_err("17 MiB are too many")
        .downcast::<String>()
        .expect("a message");
    assert!(
        message.starts_with("an input of 1048576 bytes took 178"),
        "{message}"
    );
}
