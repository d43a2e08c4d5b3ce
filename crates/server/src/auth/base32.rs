//! Base32 of RFC 4648 without padding: what apps for codes expect a secret in, and what people type without mistakes.

const LETTERS: &[u8; 32] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";

/// Returns the text of bytes, whose number must be a multiple of five, so that no letter is filled up.
pub(super) fn encode(bytes: &[u8]) -> String {
    assert!(bytes.len().is_multiple_of(5), "five bytes are eight letters");
    let mut text = String::with_capacity(bytes.len() / 5 * 8);
    for five in bytes.chunks(5) {
        let bits = five.iter().fold(0_u64, |bits, byte| (bits << 8) | u64::from(*byte));
        for place in (0..8).rev() {
            text.push(char::from(LETTERS[((bits >> (5 * place)) & 31) as usize]));
        }
    }
    text
}

/// Reads text; nothing where it does not stand for `N` bytes. Small letters count, and digits that look like letters.
pub(super) fn decode<const N: usize>(text: &str) -> Option<[u8; N]> {
    let value = |letter: &u8| {
        let letter = match letter.to_ascii_uppercase() {
            b'0' => b'O',
            b'1' => b'I',
            b'8' => b'B',
            other => other,
        };
        LETTERS.iter().position(|known| *known == letter)
    };
    let mut bytes = Vec::with_capacity(N);
    for eight in text.as_bytes().chunks(8) {
        let values: Option<Vec<usize>> = eight.iter().map(value).collect();
        let values = values.filter(|values| values.len() == 8)?;
        let bits = values.iter().fold(0_u64, |bits, value| (bits << 5) | *value as u64);
        bytes.extend_from_slice(&bits.to_be_bytes()[3..]);
    }
    bytes.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_that_of_the_standard() {
        assert_eq!(encode(b"fooba"), "MZXW6YTB");
        assert_eq!(encode(&[0xff; 10]), "7777777777777777");
        assert_eq!(encode(b"12345678901234567890"), "GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ");
    }

    #[test]
    fn text_is_read_as_people_type_it_and_nothing_else_is() {
        assert_eq!(decode("mzXW6ytb"), Some(*b"fooba"));
        let bytes: [u8; 10] = [7, 0, 255, 14, 3, 200, 100, 50, 25, 12];
        let text = encode(&bytes);
        let typed = text.replace('O', "0").replace('I', "1").replace('B', "8");
        assert_eq!((decode(&text), decode(&typed)), (Some(bytes), Some(bytes)));
        for text in ["", "MZXW6YT", "MZXW6YTB=", "MZXW6YT9", "MZXW6YTBMZXW6YTB", "MZXW6YTä"] {
            assert_eq!(decode::<5>(text), None, "{text}");
        }
    }
}
