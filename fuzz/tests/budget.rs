//! Tests that memory is measured. In its own process, since the memory of other tests would count too.

use nodewise_fuzz::budget::{Origin, hold};

#[test]
fn memory_over_the_bound_is_a_failure() {
    assert_eq!(
        hold(Origin::Request(0), 1 << 20, || vec![1_u8; 10 << 20].len()),
        10 << 20
    );
    let beyond =
        std::panic::catch_unwind(|| hold(Origin::Request(0), 1 << 20, || vec![1_u8; 18 << 20].len()));
    let message = beyond
        .expect_err("18 MiB are over the bound")
        .downcast::<String>()
        .expect("a message");
    assert!(
        message.starts_with("an input of 1048576 bytes took 188"),
        "{message}"
    );
}
