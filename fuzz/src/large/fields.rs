//! Fields, repeated fields and different words, as many as fit.

use prost::Message;

/// A length-delimited field.
pub(super) fn field(tag: u8, content: &[u8]) -> Vec<u8> {
    let mut bytes = vec![tag << 3 | 2];
    prost::encoding::encode_varint(content.len() as u64, &mut bytes);
    bytes.extend(content);
    bytes
}

/// As many copies of a field as fit.
pub(super) fn many(tag: u8, content: &[u8], bytes: usize) -> Vec<u8> {
    let field = field(tag, content);
    field.repeat(bytes / field.len())
}

/// An infinite sequence of different words, short ones first.
pub(super) fn words() -> impl Iterator<Item = String> {
    (0_usize..).map(|mut number| {
        let mut word = String::new();
        loop {
            word.push(char::from(b'a' + u8::try_from(number % 26).unwrap_or(0)));
            number /= 26;
            if number == 0 {
                return word;
            }
        }
    })
}

/// Different items, as many as fit.
pub(super) fn items<M: Message>(bytes: usize, item: impl Fn(String) -> M) -> Vec<u8> {
    let mut data = Vec::new();
    for word in words() {
        let next = field(1, &item(word).encode_to_vec());
        if data.len() + next.len() > bytes {
            return data;
        }
        data.extend(next);
    }
    data
}
