//! What stands before the bits of a picture: how large it is, what it is made of, and its codes (T.81, annex B).

use super::blocks::{Steps, ZIGZAG};
use super::{BLOCKS_HELD_MAX, NoPicture};

/// How the first bytes of a file say that it is a JPEG: the start of a picture, and of another marker.
pub(super) const START: &[u8] = &[0xff, 0xd8, 0xff];

/// How many blocks are coded at once at most.
const UNIT_BLOCKS_MAX: usize = 10;

/// One of brightness and colours.
#[derive(Debug)]
pub(super) struct Component {
    id: u8,
    /// How many of its blocks are coded at once, beside each other.
    pub(super) across: usize,
    /// How many below each other.
    pub(super) down: usize,
    table: usize,
    pub(super) steps: Steps,
    /// The codes of the first value of a block, and of the others.
    pub(super) codes: Option<[Codes; 2]>,
}

#[derive(Debug)]
pub(super) struct Frame {
    /// How many bytes come before the bits.
    pub(super) length: usize,
    pub(super) components: Vec<Component>,
    /// How many units are beside each other: what is coded at once.
    pub(super) across: usize,
    /// How many are below each other.
    pub(super) down: usize,
    /// After how many units a marker stands; 0 for none.
    pub(super) restart: usize,
}

/// Huffman codes.
#[derive(Debug, Clone)]
pub(super) struct Codes {
    /// The bits of the code of each symbol, and how many they are: 0 where it has none.
    pub(super) of: [(u16, u8); 256],
    /// For what the next bits may be, the symbol that they begin with, and how many bits it has: 0 where these are more.
    quick: Vec<(u8, u8)>,
    /// For codes of so many bits, what the next 16 bits are less than, and what is added to a code to find its symbol.
    lengths: [(u32, i32); 17],
    symbols: Vec<u8>,
}

/// How many bits are looked up at once.
const QUICK: u32 = 9;

impl Codes {
    fn new(counts: &[u8; 16], symbols: &[u8]) -> Result<Self, NoPicture> {
        let (of, quick) = ([(0, 0); 256], vec![(0, 0); 1 << QUICK]);
        let mut codes = Self { of, quick, lengths: [(0, 0); 17], symbols: symbols.to_vec() };
        let (mut code, mut number) = (0_u32, 0);
        for (length, count) in (1_u8..).zip(counts) {
            let bits = u32::from(length);
            let offset = number as i32 - code as i32;
            for symbol in symbols.iter().skip(number).take(usize::from(*count)) {
                let place = &mut codes.of[usize::from(*symbol)];
                if code >> bits != 0 || place.1 != 0 {
                    return Err(NoPicture);
                }
                *place = (code as u16, length);
                if let Some(free) = QUICK.checked_sub(bits) {
                    let start = (code << free) as usize;
                    codes.quick[start..start + (1 << free)].fill((*symbol, length));
                }
                code += 1;
            }
            number += usize::from(*count);
            codes.lengths[usize::from(length)] = (code << (16 - bits), offset);
            code <<= 1;
        }
        Ok(codes)
    }

    /// Returns the symbol that the next 16 bits begin with, and how many of them its code has.
    #[inline(always)]
    pub(super) fn next(&self, bits: u32) -> Result<(u8, u32), NoPicture> {
        let (symbol, length) = self.quick[(bits >> (16 - QUICK)) as usize];
        if length > 0 {
            return Ok((symbol, u32::from(length)));
        }
        for length in QUICK + 1..=16 {
            let (end, offset) = self.lengths[length as usize];
            if bits < end {
                let number = (bits >> (16 - length)) as i32 + offset;
                let symbol = usize::try_from(number).ok().and_then(|at| self.symbols.get(at));
                return symbol.map(|symbol| (*symbol, length)).ok_or(NoPicture);
            }
        }
        Err(NoPicture)
    }
}

fn split<const N: usize>(bytes: &[u8]) -> Result<(&[u8; N], &[u8]), NoPicture> {
    bytes.split_first_chunk().ok_or(NoPicture)
}

impl Frame {
    /// Reads what stands before the bits.
    ///
    /// # Errors
    /// [`NoPicture`] of all but pictures in one scan of Huffman codes, of 8 bits, whose steps are 1 to 255.
    pub(super) fn read(file: &[u8]) -> Result<Self, NoPicture> {
        let mut rest = file.strip_prefix(&START[..2]).ok_or(NoPicture)?;
        let (mut tables, mut size, mut restart) = (Tables::default(), None, 0);
        loop {
            let (&[mark, kind, high, low], behind) = split(rest)?;
            let length = usize::from(u16::from_be_bytes([high, low])).checked_sub(2);
            let content = length.and_then(|length| behind.split_at_checked(length));
            let (content, next) = content.filter(|_| mark == START[0]).ok_or(NoPicture)?;
            rest = next;
            match kind {
                // Baseline, and what only has more tables.
                0xc0 | 0xc1 if size.is_none() => size = Some(Size::read(content)?),
                0xc4 => tables.read_codes(content)?,
                0xdb => tables.read_steps(content)?,
                0xdd => {
                    let units = content.try_into().map_err(|_| NoPicture)?;
                    restart = usize::from(u16::from_be_bytes(units));
                }
                0xda => {
                    let length = file.len() - rest.len();
                    return size.ok_or(NoPicture)?.scan(&tables, content, (length, restart));
                }
                // What programs add, and comments.
                0xe0..=0xef | 0xfe => {}
                _ => return Err(NoPicture),
            }
        }
    }

    /// Returns how many blocks of a component are beside each other.
    pub(super) fn blocks_across(&self, component: &Component) -> usize {
        self.across * component.across
    }
}

/// The tables that a picture may name.
#[derive(Default)]
struct Tables {
    steps: [Option<[i16; 64]>; 4],
    /// Of first values, and of others.
    codes: [[Option<Codes>; 4]; 2],
}

impl Tables {
    fn read_codes(&mut self, mut content: &[u8]) -> Result<(), NoPicture> {
        while !content.is_empty() {
            let (&[which], behind) = split(content)?;
            let (counts, behind) = split::<16>(behind)?;
            let count = counts.iter().map(|count| usize::from(*count)).sum();
            let (symbols, behind) = behind.split_at_checked(count).ok_or(NoPicture)?;
            let of_kind = self.codes.get_mut(usize::from(which >> 4));
            let place = of_kind.and_then(|codes| codes.get_mut(usize::from(which & 15)));
            *place.ok_or(NoPicture)? = Some(Codes::new(counts, symbols)?);
            content = behind;
        }
        Ok(())
    }

    fn read_steps(&mut self, mut content: &[u8]) -> Result<(), NoPicture> {
        while !content.is_empty() {
            // Steps of 16 bits have a number of table that there is not.
            let (&[which], behind) = split(content)?;
            let (steps, behind) = split::<64>(behind)?;
            let mut table = [0; 64];
            // Nobody divides by zero.
            if steps.contains(&0) {
                return Err(NoPicture);
            }
            for (step, place) in steps.iter().zip(ZIGZAG) {
                table[usize::from(place)] = i16::from(*step);
            }
            *self.steps.get_mut(usize::from(which)).ok_or(NoPicture)? = Some(table);
            content = behind;
        }
        Ok(())
    }
}

/// What is said of a picture before its tables are known.
struct Size {
    width: usize,
    height: usize,
    components: Vec<Component>,
}

impl Size {
    fn read(content: &[u8]) -> Result<Self, NoPicture> {
        let (&[8, y_high, y_low, x_high, x_low, count], rest) = split(content)? else {
            return Err(NoPicture);
        };
        let length = |high, low| usize::from(u16::from_be_bytes([high, low]));
        let (height, width) = (length(y_high, y_low), length(x_high, x_low));
        if height == 0 || width == 0 || count == 0 || rest.len() != 3 * usize::from(count) {
            return Err(NoPicture);
        }
        let components = rest.chunks_exact(3).map(|of| {
            let (across, down) = (usize::from(of[1] >> 4), usize::from(of[1] & 15));
            let is_known = (1..=4).contains(&across) && (1..=4).contains(&down);
            let (steps, codes) = (Steps::new([1; 64]), None);
            let component =
                Component { id: of[0], across, down, table: usize::from(of[2]), steps, codes };
            is_known.then_some(component).ok_or(NoPicture)
        });
        Ok(Self { width, height, components: components.collect::<Result<_, _>>()? })
    }

    /// Reads which tables the components have in a scan, which is to have all of them.
    fn scan(
        self,
        tables: &Tables,
        content: &[u8],
        (length, restart): (usize, usize),
    ) -> Result<Frame, NoPicture> {
        let Self { width, height, mut components } = self;
        let (&[count], rest) = split(content)?;
        let (of_components, rest) = rest.split_at_checked(2 * components.len()).ok_or(NoPicture)?;
        // All values of all blocks, at once.
        if usize::from(count) != components.len() || rest != [0, 63, 0] {
            return Err(NoPicture);
        }
        for (component, of) in components.iter_mut().zip(of_components.chunks_exact(2)) {
            let steps = tables.steps.get(component.table).copied().flatten().ok_or(NoPicture)?;
            component.steps = Steps::new(steps);
            let codes = |kind: usize, which: u8| {
                let codes = tables.codes[kind].get(usize::from(which));
                codes.cloned().flatten().filter(|_| of[0] == component.id).ok_or(NoPicture)
            };
            component.codes = Some([codes(0, of[1] >> 4)?, codes(1, of[1] & 15)?]);
        }
        if let [only] = &mut components[..] {
            // One alone is coded block by block.
            (only.across, only.down) = (1, 1);
        }
        let most = |of: fn(&Component) -> usize| components.iter().map(of).max().unwrap_or(1);
        let across = width.div_ceil(8 * most(|component| component.across));
        let down = height.div_ceil(8 * most(|component| component.down));
        let frame = Frame { length, components, across, down, restart };
        let unit: usize = frame.components.iter().map(|it| it.across * it.down).sum();
        let held = frame.components.iter().map(|it| frame.blocks_across(it) * (it.down + 1));
        let fits = unit <= UNIT_BLOCKS_MAX && held.sum::<usize>() <= BLOCKS_HELD_MAX;
        fits.then_some(frame).ok_or(NoPicture)
    }
}
