//! A QR code in a terminal: two rows of it in each line, black on white whatever the colours of the terminal are.

use qrcode::types::Color;
use qrcode::{EcLevel, QrCode};

/// How many white squares stand around it, as readers expect.
const MARGIN: usize = 4;

const BLACK_ON_WHITE: &str = "\u{1b}[30;107m";
const AS_BEFORE: &str = "\u{1b}[0m";

/// Returns the lines of the picture of a text; nothing where it is too long for one.
pub(super) fn draw(text: &str) -> Option<Vec<String>> {
    let code = QrCode::with_error_correction_level(text, EcLevel::L).ok()?;
    let (width, squares) = (code.width(), code.to_colors());
    Some(lines(width, |column, row| squares[row * width + column] == Color::Dark))
}

fn lines(width: usize, is_dark: impl Fn(usize, usize) -> bool) -> Vec<String> {
    let inside = |place: usize| place.checked_sub(MARGIN).filter(|place| *place < width);
    let is_dark = |column, row| match (inside(column), inside(row)) {
        (Some(column), Some(row)) => is_dark(column, row),
        _ => false,
    };
    let size = width + 2 * MARGIN;
    let square = |column, row| match (is_dark(column, row), is_dark(column, row + 1)) {
        (false, false) => ' ',
        (true, false) => '▀',
        (false, true) => '▄',
        (true, true) => '█',
    };
    let line = |row| {
        let squares: String = (0..size).map(|column| square(column, row)).collect();
        format!("{BLACK_ON_WHITE}{squares}{AS_BEFORE}")
    };
    (0..size).step_by(2).map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_rows_stand_in_a_line_with_a_margin_around() {
        // #.#
        // ##.
        // ..#
        let dark = [(0, 0), (2, 0), (0, 1), (1, 1), (2, 2)];
        let drawn = lines(3, |column, row| dark.contains(&(column, row)));
        let inner: Vec<_> = drawn
            .iter()
            .map(|line| {
                let line = line.strip_prefix(BLACK_ON_WHITE).unwrap();
                line.strip_suffix(AS_BEFORE).unwrap()
            })
            .collect();
        let (first, second, empty) = ("    █▄▀    ", "      ▀    ", "           ");
        assert_eq!(inner, [empty, empty, first, second, empty, empty]);
    }

    #[test]
    fn an_address_for_apps_fits_and_what_is_too_long_is_not_drawn() {
        let uri = format!("otpauth://totp/Syncline:ada?secret={}", "A".repeat(32));
        let drawn = draw(&uri).unwrap();
        let width = drawn[0].chars().filter(|letter| " ▀▄█".contains(*letter)).count();
        assert_eq!(drawn.len(), width.div_ceil(2));
        // Version 4 has 33 squares, and version 5 has 37.
        assert!((41..=45).contains(&width), "{width}");
        assert!(draw(&"x".repeat(5000)).is_none());
    }
}
