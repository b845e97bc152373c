//! A column of texts, all in one allocation: one allocation for each text would dominate time and memory for thousands of objects.

/// The texts, by index.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Texts {
    text: Box<str>,
    /// Where each text ends in `text`.
    ends: Box<[u32]>,
}

impl Texts {
    /// The text with this index.
    ///
    /// # Panics
    /// If there is none.
    pub(crate) fn get(&self, index: usize) -> &str {
        get(&self.text, &self.ends, index)
    }

    /// Memory of the texts, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.text.len() + size_of_val(&*self.ends)
    }
}

fn get<'a>(text: &'a str, ends: &[u32], index: usize) -> &'a str {
    let start = index.checked_sub(1).map_or(0, |before| ends[before]);
    &text[start as usize..ends[index] as usize]
}

/// Collects texts.
#[derive(Debug, Default)]
pub(crate) struct TextsBuilder {
    text: String,
    ends: Vec<u32>,
}

impl TextsBuilder {
    /// Adds a text.
    ///
    /// # Panics
    /// If all texts together have 4 GiB or more. No message is that long.
    pub(crate) fn push(&mut self, text: &str) {
        self.text.push_str(text);
        self.ends
            .push(u32::try_from(self.text.len()).expect("the texts of one bucket are shorter than 4 GiB"));
    }

    /// As [`Texts::get`].
    pub(crate) fn get(&self, index: usize) -> &str {
        get(&self.text, &self.ends, index)
    }

    pub(crate) fn build(self) -> Texts {
        Texts {
            text: self.text.into(),
            ends: self.ends.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_text_is_found_by_its_index() {
        let texts = ["a", "", "é", "longer", ""];
        let mut builder = TextsBuilder::default();
        for text in texts {
            builder.push(text);
        }
        let built = builder.build();
        let found: Vec<_> = (0..texts.len()).map(|index| built.get(index)).collect();
        assert_eq!(found, texts);
        assert_eq!(built.bytes(), 9 + 5 * 4);
        assert_eq!(Texts::default().bytes(), 0);
    }
}
