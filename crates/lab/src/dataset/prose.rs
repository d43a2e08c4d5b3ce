//! Text that compresses as that of people does: words of which few are met everywhere and most hardly ever, in sentences.

use crate::random::Random;

/// How many words there are.
const VOCABULARY: usize = 6000;

/// Which words there are is no matter of a seed: two people write in one language.
const LANGUAGE: u64 = 0x6c61_6e67;

const SYLLABLES: [&str; 32] = [
    "an", "be", "con", "da", "den", "er", "fi", "ga", "hel", "in", "ja", "ka", "la", "men", "mo",
    "na", "ne", "or", "pa", "pre", "ra", "re", "sa", "sen", "si", "ta", "ter", "ti", "un", "ver",
    "wa", "zo",
];

/// A language in which texts are written.
#[derive(Debug)]
pub(crate) struct Prose {
    words: Vec<String>,
    /// How often each word and all before it are met; the word of rank n is met 1/n as often as the first (Zipf).
    heard: Vec<u64>,
}

impl Prose {
    pub(crate) fn new() -> Self {
        let mut random = Random::new(LANGUAGE);
        let (mut words, mut heard, mut sum) = (Vec::new(), Vec::new(), 0);
        for rank in 1..=VOCABULARY {
            // Words that are met often are short.
            let syllables = 1 + (rank > 40) as u64 + random.below(2 + (rank > 400) as u64);
            let word = (0..syllables).map(|_| SYLLABLES[random.below(32) as usize]);
            words.push(word.collect::<String>());
            sum += (VOCABULARY * 100 / rank) as u64;
            heard.push(sum);
        }
        Self { words, heard }
    }

    pub(crate) fn word(&self, random: &mut Random) -> &str {
        let all = self.heard[VOCABULARY - 1];
        let place = random.below(all);
        &self.words[self.heard.partition_point(|heard| *heard <= place)]
    }

    /// Returns some words with a capital letter, as a name of a person or a work.
    pub(crate) fn title(&self, random: &mut Random) -> String {
        let count = 2 + random.below(3);
        let words: Vec<_> = (0..count).map(|_| self.word(random)).collect();
        capital(&words.join(" "))
    }

    pub(crate) fn sentence(&self, random: &mut Random) -> String {
        let count = 5 + random.below(16);
        let mut text = capital(self.word(random));
        for _ in 0..count {
            text.push_str(if random.below(12) == 0 { ", " } else { " " });
            text.push_str(self.word(random));
        }
        text + "."
    }

    pub(crate) fn paragraph(&self, random: &mut Random) -> String {
        let count = 2 + random.below(6);
        let sentences: Vec<_> = (0..count).map(|_| self.sentence(random)).collect();
        sentences.join(" ")
    }
}

fn capital(words: &str) -> String {
    let (first, rest) = words.split_at(1);
    first.to_uppercase() + rest
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    #[test]
    fn prose_compresses_as_text_of_people_does() {
        let prose = Prose::new();
        let mut random = Random::new(1);
        let text: String = (0..200).map(|_| prose.paragraph(&mut random) + "\n").collect();
        let mut packed = Vec::new();
        let level = flate2::Compression::default();
        flate2::read::GzEncoder::new(text.as_bytes(), level).read_to_end(&mut packed).unwrap();
        let ratio = text.len() as f64 / packed.len() as f64;
        // Novels in English come to 2.5 to 3.
        assert!((2.2..3.4).contains(&ratio), "{ratio} of {text:.200}");
    }
}
