//! The text of the page behind a link. Pure.

use model::{NodeKind, RelativePath};

use crate::doors::files::date::internet_date;
use crate::doors::files::path::encode;
use crate::doors::public::{Page, path_in};
use crate::services::files::FileNode;

/// The only style there is; the browser is told its hash.
pub(super) const STYLE: &str = "
:root{color-scheme:light dark;font:16px/1.5 system-ui,sans-serif}
body{margin:0 auto;max-width:44rem;padding:2rem 1rem}
h1{font-size:1.4rem;overflow-wrap:anywhere}
table{border-collapse:collapse;width:100%}
td{padding:.3rem .5rem;border-top:1px solid #8884;overflow-wrap:anywhere}
td+td{text-align:right;white-space:nowrap}
a.button,button{display:inline-block;padding:.5rem 1rem;border:1px solid;border-radius:.4rem;font:inherit}
input{font:inherit;padding:.4rem}
";

/// Where a page stands.
pub(super) struct Place {
    /// The address of the link.
    pub(super) address: String,
    /// From the node of the link down.
    pub(super) path: RelativePath,
    /// When the link ends, in seconds since 1970.
    pub(super) expires: Option<i64>,
}

impl Place {
    fn to(&self, collection: &str, path: &RelativePath) -> String {
        let address = &self.address;
        match (collection, path.is_root()) {
            ("folders", true) => address.clone(),
            (_, true) => format!("{address}/{collection}"),
            (_, false) => format!("{address}/{collection}/{}", encode(path.as_bytes())),
        }
    }

    fn up(&self) -> String {
        match self.path.split_last() {
            Some((parent, _)) => {
                format!("<p><a href=\"{}\">Up</a></p>\n", self.to("folders", &parent))
            }
            None => String::new(),
        }
    }

    fn end(&self) -> String {
        let end = |expires| format!("<p>This link ends {}.</p>\n", time(expires));
        self.expires.map(end).unwrap_or_default()
    }
}

/// Writes text so that a browser shows it as it is.
fn text(of: &str) -> String {
    let mut escaped = String::with_capacity(of.len());
    for character in of.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            // Letters that turn the others around, and those that nobody sees.
            '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => escaped.push('\u{fffd}'),
            character if character.is_control() => escaped.push('\u{fffd}'),
            character => escaped.push(character),
        }
    }
    escaped
}

fn name(node: &FileNode) -> String {
    match &node.record {
        Some(record) => text(&String::from_utf8_lossy(record.name.as_bytes())),
        None => "Shared files".to_owned(),
    }
}

fn time(seconds: i64) -> String {
    internet_date(seconds).replace('T', " ").replace('Z', " UTC")
}

/// Returns a length for people.
fn size(bytes: u64) -> String {
    const UNITS: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    let power = bytes.checked_ilog2().unwrap_or(0) / 10;
    let Some(name) = power.checked_sub(1).and_then(|power| UNITS.get(power as usize)) else {
        return format!("{bytes} bytes");
    };
    let unit = 1 << (10 * power);
    let tenths = u128::from(bytes % unit) * 10 / u128::from(unit);
    format!("{}.{tenths} {name}", bytes / unit)
}

fn whole(title: &str, body: &str) -> String {
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"robots\" content=\"noindex, nofollow\">\n<title>{title}</title>\n\
         <style>{STYLE}</style>\n</head>\n<body>\n<main>\n{body}</main>\n</body>\n</html>\n"
    )
}

/// The page of a file.
pub(super) fn file(place: &Place, node: &FileNode) -> String {
    let name = name(node);
    let matter = match node.record.as_ref().map(|record| (&record.kind, record.modified)) {
        Some((NodeKind::File(content), modified)) => {
            format!("{}, of {}", size(content.size), time(modified.seconds))
        }
        _ => String::new(),
    };
    let (up, end, to) = (place.up(), place.end(), place.to("content", &place.path));
    let body = format!(
        "{up}<h1>{name}</h1>\n<p>{matter}</p>\n\
         <p><a class=\"button\" href=\"{to}\">Download</a></p>\n{end}"
    );
    whole(&name, &body)
}

/// The page of a folder.
pub(super) fn folder(place: &Place, node: &FileNode, page: &Page) -> String {
    let name = name(node);
    let lines: String = page.nodes.iter().filter_map(|node| line(place, node)).collect();
    let lines = match lines.is_empty() {
        true => "<p>This folder is empty.</p>\n".to_owned(),
        false => {
            let to = place.to("archive", &place.path);
            format!(
                "<p><a class=\"button\" href=\"{to}\">Download all</a></p>\n<table>\n{lines}</table>\n"
            )
        }
    };
    let more = page.next.as_ref().map(|next| {
        let to = place.to("folders", &place.path);
        // It is percent-encoded twice: once as a name, once as a part of the address.
        let next = encode(next.as_bytes());
        format!("<p><a href=\"{to}?start_after={next}\">More</a></p>\n")
    });
    let (up, end, more) = (place.up(), place.end(), more.unwrap_or_default());
    whole(&name, &format!("{up}<h1>{name}</h1>\n{lines}{more}{end}"))
}

fn line(place: &Place, node: &FileNode) -> Option<String> {
    let path = path_in(&place.path, node)?;
    let (collection, size) = match node.content() {
        Some(content) => ("content", size(content.size)),
        None => ("folders", String::new()),
    };
    let (to, name) = (place.to(collection, &path), name(node));
    let slash = if collection == "folders" { "/" } else { "" };
    Some(format!("<tr><td><a href=\"{to}\">{name}{slash}</a></td><td>{size}</td></tr>\n"))
}

/// The page that asks for a password.
pub(super) fn password(address: &str, trouble: Option<&str>) -> String {
    let trouble = trouble.map(|words| format!("<p role=\"alert\">{}</p>\n", sentence(words)));
    let body = format!(
        "<h1>A password is needed</h1>\n{}<form method=\"post\" action=\"{address}\">\n\
         <p><label for=\"password\">Password</label>\n\
         <input id=\"password\" name=\"password\" type=\"password\" required autofocus>\n\
         <button>Open</button></p>\n</form>\n",
        trouble.unwrap_or_default()
    );
    whole("A password is needed", &body)
}

/// The page that says that something cannot be shown.
pub(super) fn notice(words: &str) -> String {
    whole("Link", &format!("<h1>This cannot be shown</h1>\n<p>{}</p>\n", sentence(words)))
}

/// Returns words as a sentence.
fn sentence(words: &str) -> String {
    let mut characters = words.chars();
    let first = characters.next().map(|first| first.to_uppercase().to_string());
    text(&format!("{}{}.", first.unwrap_or_default(), characters.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_text_and_never_markup() {
        assert_eq!(text("<b>&\"'</b>"), "&lt;b&gt;&amp;&quot;&#39;&lt;/b&gt;");
        assert_eq!(text("gpj.\u{202e}exe\n"), "gpj.\u{fffd}exe\u{fffd}");
    }

    #[test]
    fn lengths_have_their_unit() {
        for (bytes, words) in [
            (0, "0 bytes"),
            (1023, "1023 bytes"),
            (1024, "1.0 KiB"),
            (1536, "1.5 KiB"),
            (1 << 20, "1.0 MiB"),
            ((1 << 20) - 1, "1023.9 KiB"),
            (5 << 40, "5.0 TiB"),
        ] {
            assert_eq!(size(bytes), words);
        }
    }
}
