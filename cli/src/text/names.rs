//! Shortens long lists of names: `node-001 … node-250, node-300`.

use std::cmp::Ordering;

/// The largest number of names or ranges in the text.
const SHOWN: usize = 4;

/// The names in natural order. Consecutive numbers become ranges, and names beyond the limit a count.
pub(crate) fn shorten<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    let mut names: Vec<&str> = names.into_iter().collect();
    names.sort_unstable_by(|a, b| natural_order(a, b));
    names.dedup();
    let parts = parts(&names);
    // "and 1 more" would be longer than the name itself.
    let shown = if parts.len() <= SHOWN + 1 {
        parts.len()
    } else {
        SHOWN
    };
    let text: Vec<String> = parts[..shown].iter().map(Part::to_string).collect();
    let hidden: usize = parts[shown..].iter().map(|part| part.names).sum();
    if hidden == 0 {
        text.join(", ")
    } else {
        format!("{} and {hidden} more", text.join(", "))
    }
}

/// One name, or a range of at least three.
struct Part<'a> {
    first: &'a str,
    last: &'a str,
    names: usize,
}

impl std::fmt::Display for Part<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.names == 1 {
            f.write_str(self.first)
        } else {
            write!(f, "{} … {}", self.first, self.last)
        }
    }
}

fn parts<'a>(names: &[&'a str]) -> Vec<Part<'a>> {
    let mut parts = Vec::new();
    let mut rest = names;
    while let Some(first) = rest.first() {
        let run = run_length(rest);
        let taken = if run >= 3 { run } else { 1 };
        parts.push(Part {
            first,
            last: rest[taken - 1],
            names: taken,
        });
        rest = &rest[taken..];
    }
    parts
}

/// The number of names from the first on in which the same number counts upwards.
fn run_length(names: &[&str]) -> usize {
    let mut piece = None;
    let mut length = 1;
    for pair in names.windows(2) {
        match counting_piece(pair[0], pair[1]) {
            Some(here) if piece.is_none_or(|piece| piece == here) => piece = Some(here),
            _ => break,
        }
        length += 1;
    }
    length
}

/// The index of the piece in which `b` is `a` plus one. `None` if the names differ in another way.
fn counting_piece(a: &str, b: &str) -> Option<usize> {
    let mut piece = None;
    let (mut left, mut right) = (Pieces(a), Pieces(b));
    for index in 0.. {
        match (left.next(), right.next()) {
            (None, None) => return piece,
            (Some(x), Some(y)) if x == y => {}
            (Some(x), Some(y)) if piece.is_none() && is_next(x, y) => piece = Some(index),
            _ => return None,
        }
    }
    None
}

/// `09` → `10` and `9` → `10` count upwards; `9` → `010` does not.
fn is_next(a: &str, b: &str) -> bool {
    let (Ok(x), Ok(y)) = (a.parse::<u64>(), b.parse::<u64>()) else {
        return false;
    };
    x.checked_add(1) == Some(y) && (a.len() == b.len() || !(a.starts_with('0') || b.starts_with('0')))
}

/// `node-2` before `node-10`.
pub(crate) fn natural_order(a: &str, b: &str) -> Ordering {
    let (mut left, mut right) = (Pieces(a), Pieces(b));
    loop {
        let order = match (left.next(), right.next()) {
            (None, None) => return a.cmp(b),
            (None, Some(_)) => Ordering::Less,
            (Some(_), None) => Ordering::Greater,
            (Some(x), Some(y)) if is_number(x) && is_number(y) => numeric_order(x, y),
            (Some(x), Some(y)) => x.cmp(y),
        };
        if order.is_ne() {
            return order;
        }
    }
}

fn is_number(piece: &str) -> bool {
    piece.starts_with(|first: char| first.is_ascii_digit())
}

/// By value, however many digits there are.
fn numeric_order(a: &str, b: &str) -> Ordering {
    let (a, b) = (a.trim_start_matches('0'), b.trim_start_matches('0'));
    a.len().cmp(&b.len()).then_with(|| a.cmp(b))
}

/// A name cut into digits and everything else.
struct Pieces<'a>(&'a str);

impl<'a> Iterator for Pieces<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        let digits = self.0.bytes().next()?.is_ascii_digit();
        let end = self
            .0
            .bytes()
            .position(|byte| byte.is_ascii_digit() != digits)
            .unwrap_or(self.0.len());
        let (piece, rest) = self.0.split_at(end);
        self.0 = rest;
        Some(piece)
    }
}

#[cfg(test)]
mod tests {
    use super::shorten;

    #[test]
    fn long_lists_become_short() {
        for (names, expected) in [
            (&["a"][..], "a"),
            (&["node-2", "node-1"], "node-1, node-2"),
            (&["node-10", "node-9", "node-8"], "node-8 … node-10"),
            (&["node-08", "node-09", "node-10"], "node-08 … node-10"),
            (
                &["node-1", "node-2", "node-3", "node-5"],
                "node-1 … node-3, node-5",
            ),
            (
                &[
                    "ip-10-0-0-1.ec2.internal",
                    "ip-10-0-0-2.ec2.internal",
                    "ip-10-0-0-3.ec2.internal",
                ],
                "ip-10-0-0-1.ec2.internal … ip-10-0-0-3.ec2.internal",
            ),
            // Two numbers change: no range.
            (&["a1-1", "a2-1", "a2-2"], "a1-1, a2-1, a2-2"),
            (&["a", "b", "c", "d", "e"], "a, b, c, d, e"),
            (&["a", "b", "c", "d", "e", "f"], "a, b, c, d and 2 more"),
            (
                &["n1", "n2", "n3", "p", "q", "r", "s", "t1", "t2", "t3"],
                "n1 … n3, p, q, r and 4 more",
            ),
            (&["x9", "x010", "x11"], "x9, x010, x11"),
            (
                &["99999999999999999999", "100000000000000000000"],
                "99999999999999999999, 100000000000000000000",
            ),
            (&["é1", "é2", "é3"], "é1 … é3"),
            (&[], ""),
        ] {
            assert_eq!(shorten(names.iter().copied()), expected, "{names:?}");
        }
    }
}
