//! What servers keep for themselves.

use std::sync::Arc;

use super::{Database, Story, write};

pub(super) const STORIES: &[Story] =
    &[Story { name: "first_secret_of_a_name_is_kept_and_shared", tell: shared }];

fn shared(database: &Arc<dyn Database>) {
    let (mut one, mut other) = (database.open(), database.open());
    assert_eq!(one.secret("passwords").unwrap(), None);
    let mut keep = |bytes: &'static [u8]| {
        write(&mut *other, |metadata| Ok(metadata.keep_secret("passwords", bytes)?)).unwrap()
    };
    assert_eq!(keep(&[0, 255, 1]), [0, 255, 1]);
    // Who comes later gets what the first has kept, and harms nothing.
    assert_eq!(keep(b"another"), [0, 255, 1]);
    let kept = write(&mut *one, |metadata| Ok(metadata.keep_secret("passwords", b"mine")?));
    assert_eq!(kept.unwrap(), [0, 255, 1]);
    assert_eq!(one.secret("passwords").unwrap(), Some(vec![0, 255, 1]));
    assert_eq!(one.secret("Passwords").unwrap(), None);
}
