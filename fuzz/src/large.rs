//! Inputs of about a megabyte that are cheap to send and expensive to process. They are generated when they are needed.

mod fields;
mod messages;
mod objects;
mod products;
mod reports;
mod states;
mod texts;

/// The approximate size of each input in bytes.
pub const BYTES: usize = 1 << 20;

/// Bytes that are left for the other parts of a request.
const REST: usize = 4 << 10;

/// Generates an input of about the given number of bytes.
type Make = fn(usize) -> Vec<u8>;

/// Generates the large inputs of a target one by one, each of about `bytes` bytes, and passes each with its name to `take`.
pub fn each(target: &str, bytes: usize, mut take: impl FnMut(&str, Vec<u8>)) {
    let mut of = |inputs: &[(&str, Make)], bytes| {
        for (name, make) in inputs {
            take(name, make(bytes));
        }
    };
    match target {
        "parse" | "plan" => {
            of(messages::REQUESTS, bytes);
            of(objects::REQUESTS, bytes - REST);
            of(products::REQUESTS, bytes);
        }
        "report" => of(reports::REPORTS, bytes),
        "file" => texts::each(bytes, take),
        _ => {}
    }
}
