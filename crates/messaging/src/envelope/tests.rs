use proptest::prelude::{any, prop, proptest};

use super::*;

fn sample() -> Envelope {
    Envelope {
        kind: Kind::Call,
        encoding: Encoding::Json,
        interface_version: 3,
        attempt: 2,
        operation: OperationId::from_bytes([0x11; 16]),
        sender: InstanceId::from_bytes([0x22; 16]),
        deadline_ms: Some(0x0102_0304),
        sequence: 9,
        previous: 8,
        reply_to: Some(ReplyAddress { instance: InstanceId::from_bytes([0x33; 16]), channel: 5 }),
        target: Name::new("clock").unwrap(),
        method: "tell".to_owned(),
        body: PackedBody { is_compressed: false, size: 2, bytes: Bytes::from_static(b"[]") },
    }
}

/// These bytes are a promise to every program that is out there: they are never edited.
#[test]
fn version_1_has_these_bytes() {
    let mut golden = b"SM\x01\x01\x02\x00\x03\x00\x02\x00\x00\x00\x02\x00\x00\x00".to_vec();
    golden.extend([0x11; 16]);
    golden.extend([0x22; 16]);
    golden.extend([4, 3, 2, 1, 0, 0, 0, 0]);
    golden.extend([9, 0, 0, 0, 0, 0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0]);
    golden.extend([0x33; 16]);
    golden.extend([5, 0, 0, 0, 0, 0, 0, 0]);
    golden.extend([5, 0, 4, 0, 2, 0, 0, 0]);
    golden.extend(b"clocktell[]");
    assert_eq!(sample().encode().unwrap(), golden);
    assert_eq!(Envelope::decode(&golden.into()).unwrap(), sample());
}

#[test]
fn all_kinds_come_back() {
    for kind in Kind::ALL {
        let envelope = Envelope { kind, deadline_ms: None, reply_to: None, ..sample() };
        assert_eq!(Envelope::decode(&envelope.encode().unwrap()).unwrap(), envelope);
    }
}

#[test]
fn other_versions_kinds_and_encodings_are_refused_by_name() {
    for (at, word) in
        [(0, "begin"), (2, "version"), (3, "kind"), (4, "encoding"), (5, "compression")]
    {
        let mut bytes = sample().encode().unwrap().to_vec();
        bytes[at] = 77;
        let error = Envelope::decode(&bytes.into()).unwrap_err().to_string();
        assert!(error.contains(word), "{error}");
    }
}

#[test]
fn cut_and_prolonged_envelopes_are_refused() {
    let bytes = sample().encode().unwrap();
    for cut in 0..bytes.len() {
        Envelope::decode(&bytes.slice(..cut)).unwrap_err();
    }
    Envelope::decode(&[&bytes[..], b"x"].concat().into()).unwrap_err();
}

#[test]
fn an_envelope_that_no_transport_takes_is_refused_before_it_is_sent() {
    let body = Bytes::from(vec![0; ENVELOPE_SIZE_MAX]);
    let body = PackedBody { is_compressed: false, size: body.len(), bytes: body };
    let error = Envelope { body, ..sample() }.encode().unwrap_err();
    assert!(matches!(error, MessagingError::TooLarge { .. }));
}

proptest! {
    #[test]
    fn any_bytes_give_an_envelope_that_encodes_to_them_or_an_error(
        bytes in prop::collection::vec(any::<u8>(), 0..300),
    ) {
        let bytes = Bytes::from(bytes);
        if let Ok(envelope) = Envelope::decode(&bytes) {
            assert_eq!(envelope.encode().unwrap(), bytes);
        }
    }

    #[test]
    fn a_changed_byte_gives_another_envelope_or_an_error(at in 0..115_usize, mask in 1..=255_u8) {
        let mut bytes = sample().encode().unwrap().to_vec();
        bytes[at] ^= mask;
        let bytes = Bytes::from(bytes);
        if let Ok(envelope) = Envelope::decode(&bytes) {
            assert_ne!(envelope, sample());
            assert_eq!(envelope.encode().unwrap(), bytes);
        }
    }
}
