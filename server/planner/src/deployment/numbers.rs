//! Arithmetic with 32-bit numbers of replicas.
//!
//! Upstream's sums and products wrap when they overflow. With the deviation `WIDE_PROPORTIONS` they do not.

use std::cell::Cell;

/// Converts results of 64-bit arithmetic to 32 bits.
#[derive(Debug)]
pub(crate) struct Numbers {
    wide: bool,
    differs: Cell<bool>,
}

impl Numbers {
    /// `wide` is whether the deviation is on.
    pub(crate) fn new(wide: bool) -> Self {
        Self {
            wide,
            differs: Cell::new(false),
        }
    }

    /// A number in 32 bits. It wraps as in upstream; with the deviation it is the nearest 32-bit number.
    pub(crate) fn int32(&self, number: i64) -> i32 {
        i32::try_from(number).unwrap_or_else(|_| self.overflow(number.into()))
    }

    /// The sum of 32-bit numbers.
    pub(crate) fn sum(&self, numbers: impl IntoIterator<Item = i32>) -> i32 {
        self.int32(numbers.into_iter().map(i64::from).sum())
    }

    /// `size` · `replicas` / `base`, rounded half away from zero. The product wraps as in upstream. `base` must not be 0.
    pub(crate) fn proportion(&self, size: i32, replicas: i32, base: i32) -> i32 {
        let product = i64::from(size) * i64::from(replicas);
        let product = if self.wide {
            if i32::try_from(product).is_err() {
                self.differs.set(true);
            }
            product
        } else {
            self.int32(product).into()
        };
        let (product, base) = (i128::from(product), i128::from(base));
        let negative = (product < 0) != (base < 0);
        let (product, base) = (product.abs(), base.abs());
        let rounded = (2 * product + base) / (2 * base);
        let rounded = if negative { -rounded } else { rounded };
        i32::try_from(rounded).unwrap_or_else(|_| self.overflow(rounded))
    }

    /// Whether a result differs from upstream's.
    pub(crate) fn differ(&self) -> bool {
        self.differs.get()
    }

    #[allow(clippy::cast_possible_truncation, reason = "upstream's arithmetic wraps")]
    fn overflow(&self, number: i128) -> i32 {
        if !self.wide {
            return number as i32;
        }
        self.differs.set(true);
        if number < 0 { i32::MIN } else { i32::MAX }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn p_44_proportions_round_half_away_from_zero() {
        // (size, replicas, base, result)
        let table = [
            (5, 1, 2, 3),
            (-5, 1, 2, -3),
            (5, 1, -2, -3),
            (3, 1, 2, 2),
            (1, 1, 3, 0),
            (2, 1, 3, 1),
            (0, 7, 3, 0),
            (8, 33, 13, 20),
        ];
        for wide in [false, true] {
            let numbers = Numbers::new(wide);
            for (size, replicas, base, expected) in table {
                let result = numbers.proportion(size, replicas, base);
                assert_eq!(result, expected, "{size} · {replicas} / {base}");
            }
            assert!(!numbers.differ());
        }
    }

    #[test]
    fn p_44_products_and_sums_overflow_only_upstream() {
        let (narrow, wide) = (Numbers::new(false), Numbers::new(true));
        // 50000 · 60000 wraps in upstream: the share is -75899 with a base of 50000.
        assert_eq!(narrow.proportion(50_000, 60_000, 50_000) - 50_000, -75_899);
        assert_eq!(wide.proportion(50_000, 60_000, 50_000), 60_000);
        assert!(wide.differ() && !narrow.differ());
        let (narrow, wide) = (Numbers::new(false), Numbers::new(true));
        assert_eq!(narrow.sum([i32::MAX, 1]), i32::MIN);
        assert_eq!(wide.sum([i32::MAX, 1]), i32::MAX);
        assert_eq!(wide.sum([i32::MIN, -1]), i32::MIN);
        assert!(wide.differ() && !narrow.differ());
        assert_eq!(wide.proportion(i32::MIN, i32::MAX, -1), i32::MAX);
    }
}
