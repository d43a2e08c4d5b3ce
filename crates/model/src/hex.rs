//! Bytes as hexadecimal digits: lower case only, so that everything has one spelling.

/// Returns two digits for each byte.
pub fn encode(bytes: &[u8]) -> String {
    let mut text = vec![0; bytes.len() * 2];
    encode_into(bytes, &mut text);
    text.into_iter().map(char::from).collect()
}

/// Returns the bytes of digits; nothing where there is anything else, upper case included.
pub fn decode(text: &str) -> Option<Vec<u8>> {
    let mut bytes = vec![0; text.len() / 2];
    decode_into(text.as_bytes(), &mut bytes)?;
    Some(bytes)
}

/// Writes the digits. Ids are keys of objects, so servers write them by the ten thousand.
pub(crate) fn encode_into(bytes: &[u8], text: &mut [u8]) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    for (byte, pair) in bytes.iter().zip(text.chunks_exact_mut(2)) {
        pair[0] = DIGITS[usize::from(byte >> 4)];
        pair[1] = DIGITS[usize::from(byte & 15)];
    }
}

/// Decodes digits that fill `bytes` exactly.
pub(crate) fn decode_into(text: &[u8], bytes: &mut [u8]) -> Option<()> {
    if text.len() != bytes.len() * 2 {
        return None;
    }
    let digit = |byte: u8| match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    };
    for (byte, pair) in bytes.iter_mut().zip(text.chunks_exact(2)) {
        *byte = digit(pair[0])? << 4 | digit(pair[1])?;
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_bytes_return() {
        let all: Vec<u8> = (0..=255).collect();
        assert_eq!(decode(&encode(&all)), Some(all));
        assert_eq!(encode(&[0, 15, 255]), "000fff");
        assert_eq!(decode(""), Some(Vec::new()));
    }

    #[test]
    fn what_is_no_pair_of_digits_is_nothing() {
        for text in ["0", "zz", "0F", "+1", "ä", "00 "] {
            assert_eq!(decode(text), None, "{text}");
        }
    }
}
