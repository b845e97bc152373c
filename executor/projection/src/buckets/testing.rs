//! Names and uids for the tests of encoded objects.

/// Names of objects.
pub(super) const NAMES: [&str; 4] = ["p", "é", "", "a-name-as-pods-have-them-x7fqz"];
/// Uids of objects. Only the first one is a UUID as Kubernetes writes them.
pub(super) const UIDS: [&str; 6] = [
    "5d8c7f9b-5d2e-4c0f-9b1a-7f3c2a9e6d10",
    "5D8C7F9B-5d2e-4c0f-9b1a-7f3c2a9e6d10",
    "5d8c7f9b5d2e4c0f9b1a7f3c2a9e6d10",
    "00000000-0000-0000-0000-000000000000",
    "u",
    "",
];
