use super::*;
pub(crate) use crate::documents::PHOTOGRAPH as PHOTO;
use crate::samples::{Random, random_bytes, text};

mod golden;

/// What was stored of it when this was new.
const PHOTO_FORM: &[u8] = include_bytes!("samples/photo.form");

/// How a picture is to be.
pub(crate) struct Plan {
    pub(crate) width: u16,
    pub(crate) height: u16,
    /// How many blocks of each component are coded at once, beside and below each other.
    pub(crate) components: &'static [(u8, u8)],
    pub(crate) restart: u16,
    pub(crate) fills_with_ones: bool,
    /// Whether nothing is drawn.
    pub(crate) is_flat: bool,
}

/// Brightness, and colours with half as many values both ways, as most cameras have them.
pub(crate) const COLOURS: &[(u8, u8)] = &[(2, 2), (1, 1), (1, 1)];

impl Plan {
    pub(crate) fn new(width: u16, height: u16, components: &'static [(u8, u8)]) -> Self {
        Self { width, height, components, restart: 0, fills_with_ones: true, is_flat: false }
    }

    /// Writes what stands before the bits.
    fn head(&self) -> Vec<u8> {
        let mut bytes = vec![0xff, 0xd8];
        let mut segment = |marker: u8, content: &[u8]| {
            bytes.extend([0xff, marker]);
            bytes.extend((content.len() as u16 + 2).to_be_bytes());
            bytes.extend(content);
        };
        segment(0xe0, b"JFIF\0\x01\x01\0\0\x01\0\x01\0\0");
        let steps: Vec<u8> = (0..64).map(|number| 3 + number / 2).collect();
        segment(0xdb, &[&[0][..], &steps].concat());
        let count = self.components.len() as u8;
        let numbered = || (1..).zip(self.components);
        let mut size = vec![8];
        size.extend([self.height.to_be_bytes(), self.width.to_be_bytes()].concat());
        size.push(count);
        size.extend(numbered().flat_map(|(id, (across, down))| [id, across << 4 | down, 0]));
        segment(0xc0, &size);
        // 16 codes of 5 bits; 200 of 8 bits and 56 of 9.
        let first: Vec<u8> = (0..16).collect();
        segment(
            0xc4,
            &[&[0x00, 0, 0, 0, 0, 16, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], &first[..]].concat(),
        );
        let other: Vec<u8> = (0..=255).collect();
        segment(
            0xc4,
            &[&[0x10, 0, 0, 0, 0, 0, 0, 0, 200, 56, 0, 0, 0, 0, 0, 0, 0], &other[..]].concat(),
        );
        if self.restart > 0 {
            segment(0xdd, &self.restart.to_be_bytes());
        }
        let mut scan = vec![count];
        scan.extend(numbered().flat_map(|(id, _)| [id, 0]));
        scan.extend([0, 63, 0]);
        segment(0xda, &scan);
        bytes
    }

    /// Draws something that is alike in neighbouring blocks; returns the file without what stands behind the bits.
    pub(crate) fn draw(&self, seed: u64) -> Vec<u8> {
        let head = self.head();
        let frame = Frame::read(&head).expect("a picture");
        let mut drawing = Drawing {
            scan: ScanWriter::new(&head, 0),
            before: vec![0; self.components.len()],
            random: Random(seed),
            fills_with_ones: self.fills_with_ones,
            is_flat: self.is_flat,
        };
        walk(&frame, &mut drawing).expect("drawn");
        drawing.scan.into_bytes()
    }
}

struct Drawing {
    scan: ScanWriter,
    before: Vec<i32>,
    random: Random,
    fills_with_ones: bool,
    is_flat: bool,
}

impl Visit for Drawing {
    fn block(
        &mut self,
        frame: &Frame,
        number: usize,
        beside: Beside<'_>,
    ) -> Result<Coded, NoPicture> {
        let (mut values, mut mask) = ([0; 64], 0);
        let mut noise =
            |spread: u64| (self.random.next() % (2 * spread + 1)) as i16 - spread as i16;
        values[0] =
            ((beside.left.values[0] + beside.above.values[0]) / 2 + noise(12)).clamp(-900, 900);
        for (place, number) in blocks::ZIGZAG.into_iter().zip(0..).skip(1).take(20) {
            let place = usize::from(place);
            let like = beside.left.values[place] / 2 + noise(9) * noise(9) / 30;
            let value = if number % 3 == 0 { noise(1) } else { like };
            values[place] = value;
            mask |= u64::from(value != 0) << number;
        }
        // Now and then the last one, behind which nothing stands, and a large one.
        if noise(10) == 0 {
            (values[63], mask) = (1023, mask | 1 << 63);
        }
        if self.is_flat {
            (values, mask) = ([0; 64], 0);
        }
        let component = &frame.components[number];
        self.scan.block(component, &mut self.before[number], (&values, mask))?;
        Ok(Coded::of(values, mask))
    }

    fn end_stretch(&mut self, next: Option<usize>) -> Result<(), NoPicture> {
        self.scan.end_stretch(self.fills_with_ones);
        if let Some(next) = next {
            self.before.fill(0);
            self.scan.restart(next);
        }
        Ok(())
    }
}

fn assert_shortened(file: &[u8]) -> Vec<u8> {
    let form = shorten(file).expect("it is a picture");
    assert!(lengthen(&form, file.len()).expect("made") == file);
    form
}

#[test]
fn pictures_of_all_kinds_come_out_again_bit_by_bit() {
    const KINDS: [&[(u8, u8)]; 7] = [
        &[(1, 1)],
        // One alone is coded block by block, whatever it says.
        &[(2, 2)],
        &[(1, 1), (1, 1), (1, 1)],
        &[(2, 1), (1, 1), (1, 1)],
        COLOURS,
        // Four inks.
        &[(1, 1), (1, 1), (1, 1), (1, 1)],
        &[(4, 1), (1, 1), (1, 1)],
    ];
    for (components, seed) in KINDS.into_iter().zip(1..) {
        for (width, height) in [(1, 1), (8, 8), (17, 33), (200, 120)] {
            for (restart, fills_with_ones) in [(0, true), (3, false), (1, true)] {
                let plan =
                    Plan { restart, fills_with_ones, ..Plan::new(width, height, components) };
                let mut file = plan.draw(seed);
                assert_shortened(&file);
                for tail in [&[0xff, 0xd9][..], b"\xff\xd9 and what a camera adds", &[0; 3000]] {
                    file.extend(tail);
                    assert_shortened(&file);
                }
            }
        }
    }
}

#[test]
fn photograph_takes_a_quarter_less() {
    let form = assert_shortened(PHOTO);
    assert!(form.len() * 4 < PHOTO.len() * 3, "{} of {}", form.len(), PHOTO.len());
}

/// What is stored so is read for ever. Where this changes, pictures that are stored can no longer be read.
#[test]
fn golden_photograph_is_made_and_stored_as_ever() {
    assert!(lengthen(PHOTO_FORM, PHOTO.len()).expect("made") == PHOTO);
    assert!(shorten(PHOTO).expect("it is a picture") == PHOTO_FORM);
    let hash = |bytes: &[u8]| blake3::hash(bytes).to_hex()[..16].to_owned();
    let plan = Plan { restart: 5, ..Plan::new(150, 90, COLOURS) };
    let file = plan.draw(1);
    assert_eq!(
        [hash(&file), hash(&shorten(&file).expect("it is a picture"))],
        ["286d9be839dcddb3", "9862cd02b1253c34"]
    );
}

#[test]
fn what_is_no_picture_or_one_of_another_kind_stays_as_it_is() {
    let good = [&Plan::new(100, 80, COLOURS).draw(1)[..], &[0xff, 0xd9]].concat();
    assert_shortened(&good);
    let place = |bytes: &[u8]| {
        good.windows(bytes.len()).position(|window| window == bytes).expect("it is there")
    };
    let with = |place: usize, value: u8| {
        let mut file = good.clone();
        file[place] = value;
        file
    };
    let (size, scan) = (place(&[0xff, 0xc0]), place(&[0xff, 0xda]));
    for file in [
        // Progressive, arithmetic codes, 12 bits, no height, no scan of all values.
        with(size + 1, 0xc2),
        with(size + 1, 0xc9),
        with(size + 4, 12),
        [&good[..size + 5], &[0, 0], &good[size + 7..]].concat(),
        with(scan + 12, 5),
        // Steps of 16 bits, one of zero, and a table that there is not.
        with(place(&[0xff, 0xdb]) + 4, 0x10),
        with(place(&[0xff, 0xdb]) + 5, 0),
        with(scan + 6, 0x11),
        good[..good.len() / 2].to_vec(),
        good[..scan].to_vec(),
        [&good[..2], &[0; 10], &good[2..]].concat(),
        [&[0xff, 0xd8, 0xff, 0xc0][..], &random_bytes(1, 5000)].concat(),
        random_bytes(2, 5000),
        vec![0xff, 0xd8, 0xff],
        Vec::new(),
    ] {
        assert!(shorten(&file).is_none(), "{} bytes", file.len());
    }
    // What fills the last byte is neither ones nor zeros: the picture would not come out.
    let mut filled = Plan::new(8, 8, &[(1, 1)]).draw(1);
    let last = filled.len() - 1;
    let is_coded = |file: &[u8]| shorten(file).is_some();
    assert!(is_coded(&filled));
    filled[last] ^= 1;
    assert!(
        shorten(&filled).is_none_or(|form| lengthen(&form, filled.len()).expect("made") == filled)
    );
}

#[test]
fn picture_that_needs_much_memory_or_makes_more_than_is_wanted_is_refused() {
    // A row of the widest picture of four inks.
    let wide = Plan::new(u16::MAX, 8, &[(1, 4), (1, 4), (1, 1), (1, 1)]).head();
    assert!(Frame::read(&wide).is_err());
    let frame = Frame::read(&Plan::new(u16::MAX, u16::MAX, COLOURS).head()).expect("a picture");
    let held = frame.components.iter().map(|it| frame.blocks_across(it) * (it.down + 1));
    assert!(held.sum::<usize>() <= BLOCKS_HELD_MAX && size_of::<Coded>() <= 208);
    // It says that it has 67 million blocks, and there are none.
    let head = Plan::new(u16::MAX, u16::MAX, &[(1, 1)]).head();
    let picture = Picture {
        head: &head,
        tail: &[],
        fills_with_ones: true,
        bits: vec![0; 8].into(),
        raw: Cow::default(),
    };
    assert!(lengthen(&picture.encode(), 4 << 20).is_err());
    let file = Plan::new(100, 80, COLOURS).draw(1);
    let form = assert_shortened(&file);
    for length in [0, 1, file.len() - 1, file.len() + 1, usize::MAX] {
        assert!(lengthen(&form, length).is_err());
    }
}

#[test]
fn whatever_somebody_says_of_a_picture_makes_an_error_or_so_many_bytes() {
    let file = [&Plan { restart: 7, ..Plan::new(90, 60, COLOURS) }.draw(3)[..], b"end"].concat();
    let (form, mut random) = (assert_shortened(&file), Random(1));
    let head = file.len() - file.len() / 2;
    for turn in 0..3000 {
        let mut form = form.clone();
        for _ in 0..=random.next() % 3 {
            let value = random.next();
            // Half of the changes are among the first bytes, where tables and sizes stand.
            let room = if turn % 2 == 0 { head.min(form.len()) } else { form.len() };
            form[(value >> 8) as usize % room] ^= 1 << ((value >> 4) % 8);
        }
        if let Ok(made) = lengthen(&form, file.len()) {
            assert_eq!(made.len(), file.len());
        }
        let _ = lengthen(&form[..(random.next() as usize) % form.len()], file.len());
        // A writer meets such files, too.
        let mut broken = file.clone();
        let place = random.next() as usize % broken.len();
        broken[place] ^= 1 << (random.next() % 8);
        if let Some(form) = shorten(&broken) {
            assert!(lengthen(&form, broken.len()).expect("made") == broken);
        }
    }
}
