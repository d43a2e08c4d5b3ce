//! Names in an archive, of which none leads out of where it is unpacked, whatever unpacks it. Pure.

use std::collections::{HashMap, HashSet};

use model::Name;

/// Returns names of one folder as an archive has them, in their order and each but once. A backslash is a separator to some who unpack, and a
/// letter with a colon in the outermost folder, `is_top`, names a disk; control characters do what they like to whoever shows names. Whoever can keep
/// his name keeps it.
pub(super) fn safe_names<'a>(
    names: impl Iterator<Item = &'a Name> + Clone,
    is_top: bool,
) -> Vec<Name> {
    if names.clone().all(|name| safe(name, is_top).is_none()) {
        return names.cloned().collect();
    }
    let mut taken: HashSet<Name> =
        names.clone().filter(|name| safe(name, is_top).is_none()).cloned().collect();
    let mut last: HashMap<Name, u32> = HashMap::new();
    names
        .map(|name| {
            let Some(made) = safe(name, is_top) else { return name.clone() };
            let last = last.entry(made.clone()).or_default();
            loop {
                *last += 1;
                let made = match *last {
                    1 => made.clone(),
                    number => made.conflict(&number.to_string(), 0),
                };
                if taken.insert(made.clone()) {
                    return made;
                }
            }
        })
        .collect()
}

/// Returns what takes the place of a name; nothing where that can stay.
fn safe(name: &Name, is_top: bool) -> Option<Name> {
    let bytes = name.as_bytes();
    let is_disk = is_top && matches!(bytes, [letter, b':', ..] if letter.is_ascii_alphabetic());
    let is_bad =
        |at: usize, byte: u8| byte == b'\\' || byte.is_ascii_control() || is_disk && at == 1;
    if !bytes.iter().enumerate().any(|(at, &byte)| is_bad(at, byte)) {
        return None;
    }
    let made = bytes.iter().enumerate();
    let made = made.map(|(at, &byte)| if is_bad(at, byte) { b'_' } else { byte });
    Some(Name::new(made.collect::<Vec<u8>>()).expect("underlines make no name a forbidden one"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(names: &[&str], is_top: bool) -> Vec<String> {
        let names: Vec<Name> = names.iter().map(|name| Name::new(*name).unwrap()).collect();
        safe_names(names.iter(), is_top).iter().map(Name::to_string).collect()
    }

    #[test]
    fn separators_and_disks_are_no_more_and_other_names_stay() {
        assert_eq!(made(&[r"..\..\x", "a b", "12:30"], true), [".._.._x", "a b", "12:30"]);
        assert_eq!(made(&[r"\", "C:evil", "ü:x"], true), ["_", "C_evil", "ü:x"]);
        assert_eq!(made(&["C:evil"], false), ["C:evil"]);
        assert_eq!(made(&["a\nb", "\x1b[2J", "x\x7f"], false), ["a_b", "_[2J", "x_"]);
    }

    #[test]
    fn no_two_are_equal_and_who_can_keep_his_name_keeps_it() {
        let names = [r"a\b.txt", "a_b.txt", r"a\b\c", r"a_b\c", "a_b (2).txt", r"\\", r"\_", "__"];
        let wanted = [
            "a_b (3).txt",
            "a_b.txt",
            "a_b_c",
            "a_b_c (2)",
            "a_b (2).txt",
            "__ (2)",
            "__ (3)",
            "__",
        ];
        assert_eq!(made(&names, false), wanted);
    }

    #[test]
    fn longest_name_stays_one() {
        let long = format!(r"{}\", "x".repeat(254));
        let safe = format!("{}_", "x".repeat(254));
        let made = made(&[&long, &safe], false);
        assert_eq!((made[1] == safe, made[0].len()), (true, 255));
        assert!(made[0].ends_with("x (2)"));
    }
}
