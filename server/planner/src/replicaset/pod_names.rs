//! The names of a ReplicaSet's pods (deviation `IDEMPOTENT_CREATES`).
//!
//! A name is `<name>-<five characters>`, as upstream's look. The characters encode a number. New pods get the lowest numbers that are
//! free, so a repeated plan gives the same names, and the apiserver rejects a repeated create. The encoding depends on the uid of the
//! ReplicaSet, so that the names of two ReplicaSets of the same name differ. It can be reversed, so that the number of a present
//! pod is read from its name.

use sha2::{Digest as _, Sha256};

use crate::{
    core::names::{ALPHABET, MAX_POD_NAME, joined},
    replicaset::workload::ReplicaSet,
};

/// Characters of a suffix.
const LENGTH: usize = 5;
/// The number of suffixes: 27^5, which is 3^15.
const COUNT: u64 = 27_u64.pow(5);
/// The number of factors that can be reversed: numbers below [`COUNT`] that 3 does not divide.
const UNITS: u64 = 2 * 3_u64.pow(14);

/// The digit of each character of the alphabet, and [`NO_DIGIT`] for all others.
const DIGITS: [u8; 256] = digits();
const NO_DIGIT: u8 = u8::MAX;

const fn digits() -> [u8; 256] {
    let mut digits = [NO_DIGIT; 256];
    let mut digit = 0;
    while digit < ALPHABET.len() {
        #[allow(clippy::cast_possible_truncation, reason = "the alphabet has 27 characters")]
        {
            digits[ALPHABET[digit] as usize] = digit as u8;
        }
        digit += 1;
    }
    digits
}

/// The names of one ReplicaSet's pods.
#[derive(Debug)]
pub(crate) struct PodNames {
    /// What precedes the suffix.
    prefix: String,
    /// The suffix of number `n` encodes `factor * n + offset`.
    factor: u64,
    offset: u64,
    /// The inverse of `factor` modulo [`COUNT`].
    inverse: u64,
}

impl PodNames {
    /// The names for a ReplicaSet.
    pub(crate) fn of(rs: &ReplicaSet) -> Self {
        let digest: [u8; 32] = Sha256::digest(rs.uid.as_bytes()).into();
        let number = |at: usize| {
            let bytes = digest[at..].iter().take(8);
            bytes.fold(0_u64, |number, byte| number << 8 | u64::from(*byte)) % COUNT
        };
        let (factor, offset) = (number(0), number(8));
        let factor = if factor.is_multiple_of(3) {
            factor + 1
        } else {
            factor
        };
        let mut prefix = joined(&rs.name, "bbbbb", MAX_POD_NAME);
        prefix.truncate(prefix.len() - LENGTH);
        Self {
            prefix,
            factor,
            offset,
            // Euler's theorem.
            inverse: power(factor, UNITS - 1),
        }
    }

    /// The name with a number; `None` if the number is too large.
    pub(crate) fn name(&self, number: u32) -> Option<String> {
        let number = u64::from(number);
        if number >= COUNT {
            return None;
        }
        let mut rest = (self.factor * number + self.offset) % COUNT;
        let mut name = self.prefix.clone();
        for _ in 0..LENGTH {
            // The remainder is less than 27.
            name.push(char::from(ALPHABET[(rest % 27) as usize]));
            rest /= 27;
        }
        Some(name)
    }

    /// The number of a name; `None` if it is not a name of this form.
    pub(crate) fn number(&self, name: &str) -> Option<u32> {
        let suffix = name.strip_prefix(self.prefix.as_str())?.as_bytes();
        if suffix.len() != LENGTH {
            return None;
        }
        let mut encoded = 0;
        for character in suffix.iter().rev() {
            let digit = DIGITS[usize::from(*character)];
            if digit == NO_DIGIT {
                return None;
            }
            encoded = encoded * 27 + u64::from(digit);
        }
        let number = (encoded + COUNT - self.offset) % COUNT * self.inverse % COUNT;
        u32::try_from(number).ok()
    }
}

/// The lowest `count` numbers that are not taken, ascending.
pub(crate) fn free_numbers(taken: &[u32], count: usize) -> Vec<u32> {
    // So many numbers contain enough free ones.
    let enough = taken.len().saturating_add(count);
    let mut is_taken = vec![false; enough];
    for number in taken {
        if let Some(mark) = is_taken.get_mut(*number as usize) {
            *mark = true;
        }
    }
    let numbers = (0_u32..).zip(is_taken);
    numbers
        .filter_map(|(number, is_taken)| (!is_taken).then_some(number))
        .take(count)
        .collect()
}

/// A power modulo [`COUNT`], which is so small that no product overflows.
fn power(mut base: u64, mut exponent: u64) -> u64 {
    let mut result = 1;
    while exponent > 0 {
        if exponent & 1 == 1 {
            result = result * base % COUNT;
        }
        base = base * base % COUNT;
        exponent >>= 1;
    }
    result
}
