//! Reads the lines of FTP lists, none of which is trusted.

use crate::tree_store::TreeEntry;

/// What a line says; nothing when it names neither a file nor a folder.
type Line = Result<Option<TreeEntry>, ()>;

/// Reads a line of `MLSD`: `type=file;size=5;modify=20261120190000; name`.
pub(super) fn parse_machine_line(line: &str) -> Line {
    let (facts, name) = line.split_once(' ').ok_or(())?;
    let fact = |wanted: &str| {
        facts
            .split(';')
            .filter_map(|fact| fact.split_once('='))
            .find_map(|(fact, value)| fact.eq_ignore_ascii_case(wanted).then_some(value))
    };
    let kind = fact("type").ok_or(())?;
    if kind.eq_ignore_ascii_case("file") {
        let size = fact("size").and_then(|size| size.parse().ok()).ok_or(())?;
        return entry(name, Some(size));
    }
    if kind.eq_ignore_ascii_case("dir") { entry(name, None) } else { Ok(None) }
}

/// Reads a line of `LIST`, in the form of `ls -l` or of DOS.
pub(super) fn parse_line(line: &str) -> Line {
    match line.chars().next() {
        Some('-' | 'd') => parse_unix_line(line),
        Some('0'..='9') => parse_dos_line(line),
        Some('l' | 'p' | 's' | 'b' | 'c') => Ok(None),
        // `total 7` stands before the lines of some servers.
        _ if line.starts_with("total ") => Ok(None),
        _ => Err(()),
    }
}

/// `-rw-r--r--    1 1000     1000            5 Nov 20 19:00 name`
fn parse_unix_line(line: &str) -> Line {
    let (columns, name) = columns(line, 8).ok_or(())?;
    match line.starts_with('d') {
        true => entry(name, None),
        false => entry(name, Some(columns[4].parse().map_err(|_| ())?)),
    }
}

/// `11-20-26  07:00PM                 5 name`, or `<DIR>` where the size stands
fn parse_dos_line(line: &str) -> Line {
    let (columns, name) = columns(line, 3).ok_or(())?;
    match columns[2] {
        "<DIR>" => entry(name, None),
        size => entry(name, Some(size.parse().map_err(|_| ())?)),
    }
}

/// Returns the first columns and what follows them.
fn columns(line: &str, count: usize) -> Option<(Vec<&str>, &str)> {
    let mut found = Vec::with_capacity(count);
    let mut rest = line;
    for _ in 0..count {
        let (column, after) = rest.split_once(' ')?;
        found.push(column);
        rest = after.trim_start_matches(' ');
    }
    Some((found, rest))
}

fn entry(name: &str, size: Option<u64>) -> Line {
    match name {
        "" => Err(()),
        "." | ".." => Ok(None),
        name => Ok(Some(TreeEntry { name: name.to_owned(), size })),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(name: &str, size: u64) -> Line {
        entry(name, Some(size))
    }

    #[test]
    fn every_form_of_list_is_read() {
        let unix = "-rw-r--r--    1 1000     1000        12345 Feb 29 12:00 a.b_c-d";
        assert_eq!(parse_line(unix), file("a.b_c-d", 12345));
        assert_eq!(parse_line("drwxr-xr-x 2 ftp ftp 4096 Nov 20 2025 packs"), entry("packs", None));
        assert_eq!(parse_line("lrwxrwxrwx 1 ftp ftp 4 Nov 20 2025 x -> y"), Ok(None));
        assert_eq!(parse_line("total 12"), Ok(None));
        assert_eq!(parse_line("11-20-26  07:00PM                 5 name"), file("name", 5));
        assert_eq!(parse_line("11-20-26  07:00PM       <DIR>          log"), entry("log", None));
        let machine = "Type=file;Size=7;modify=20261120190000;perm=adfrw; genesis";
        assert_eq!(parse_machine_line(machine), file("genesis", 7));
        assert_eq!(parse_machine_line("type=dir;modify=20261120190000; log"), entry("log", None));
        assert_eq!(parse_machine_line("type=cdir; /srv"), Ok(None));
    }

    #[test]
    fn what_cannot_be_read_is_an_error_and_not_left_out() {
        for line in ["", "-rw-r--r-- 1 0 0 five Nov 20 19:00 a", "-rw", "11-20-26 x", "?", "<html>"]
        {
            assert!(parse_line(line).is_err(), "{line}");
        }
        for line in ["", "type=file; a", "size=1; a", "type=file;size=-1; a", "type=dir; "] {
            assert!(parse_machine_line(line).is_err(), "{line}");
        }
    }
}
