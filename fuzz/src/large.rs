//! Inputs of about a megabyte, of every kind that is cheap to send and dear to read. They are made when they are needed.

mod messages;
mod objects;
mod products;
mod reports;
mod states;
mod texts;

/// About the size of each.
pub const BYTES: usize = 1 << 20;

/// What the parts of a request that are none of a list may take of that.
const REST: usize = 4 << 10;

/// Makes an input of at most so many bytes.
type Make = fn(usize) -> Vec<u8>;

/// Names the large inputs of a target, each of about so many bytes, and makes them one by one.
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
