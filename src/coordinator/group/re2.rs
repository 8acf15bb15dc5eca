//! Regular expressions as RE2/J reads them, for subscriptions by pattern (KIP-848).
//!
//! Kafka hands `SubscribedTopicRegex` to RE2/J in its Perl mode. That syntax and the one of our
//! engine differ at the edges (nested repetition, classes in classes, flags, escapes), so a pattern
//! is read here by RE2's rules, refused with RE2/J's words, and written anew in a small common
//! core. Names of topics are ASCII and have no line breaks: classes are kept as sets of ASCII, and
//! greediness, line modes and captures need not survive.

use std::collections::HashSet;
use std::fmt::Write;

use regex::bytes::{Regex, RegexBuilder};

/// A pattern that topics' names are matched against, from end to end.
#[derive(Debug)]
pub(crate) struct Pattern(Regex);

/// What is wrong with a pattern, in the words of RE2/J.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Invalid(pub(crate) &'static str);

const CHAR_RANGE: Invalid = Invalid("invalid character class range");
const ESCAPE: Invalid = Invalid("invalid escape sequence");
const NAMED_CAPTURE: Invalid = Invalid("invalid named capture");
const DUPLICATE_NAME: Invalid = Invalid("duplicate capture group name");
const PERL: Invalid = Invalid("invalid or unsupported Perl syntax");
const NESTED_REPEAT: Invalid = Invalid("invalid nested repetition operator");
const REPEAT_SIZE: Invalid = Invalid("invalid repeat count");
const REPEAT_ARGUMENT: Invalid = Invalid("missing argument to repetition operator");
const MISSING_BRACKET: Invalid = Invalid("missing closing ]");
const MISSING_PAREN: Invalid = Invalid("missing closing )");
const TRAILING_BACKSLASH: Invalid = Invalid("trailing backslash at end of expression");
// RE2/J has no better words for a parenthesis that closes nothing.
const UNEXPECTED_PAREN: Invalid = Invalid("regexp/syntax: internal error");
const TOO_LARGE: Invalid = Invalid("expression too large");

/// Bytes that a compiled pattern may take.
const SIZE_LIMIT: usize = 2 << 20;
const MAX_REPEAT: u32 = 1000;

impl Pattern {
    /// Reads a pattern.
    pub(crate) fn compile(pattern: &str) -> Result<Self, Invalid> {
        let core = Translator::new(pattern).translate()?;
        RegexBuilder::new(&format!("\\A(?:{core})\\z"))
            .unicode(false)
            .size_limit(SIZE_LIMIT)
            .dfa_size_limit(SIZE_LIMIT)
            .build()
            .map(Self)
            .map_err(|_| TOO_LARGE)
    }

    /// Whether the whole name matches.
    pub(crate) fn matches(&self, name: &str) -> bool {
        self.0.is_match(name.as_bytes())
    }
}

/// A set of ASCII characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Ascii(u128);

impl Ascii {
    const NONE: Self = Self(0);
    const ALL: Self = Self(u128::MAX);

    fn of(text: &str) -> Self {
        let mut set = Self::NONE;
        let mut chars = text.chars();
        while let Some(low) = chars.next() {
            let high = chars.next().unwrap_or(low);
            set.add_range(low, high);
        }
        set
    }

    fn add_range(&mut self, low: char, high: char) {
        for code in u32::from(low)..=u32::from(high).min(127) {
            self.0 |= 1 << code;
        }
    }

    fn add_folded_range(&mut self, low: char, high: char) {
        self.add_range(low, high);
        for letter in 'a'..='z' {
            let mut others = vec![letter, letter.to_ascii_uppercase()];
            // The Kelvin sign and the long s have ASCII letters for siblings.
            others.extend(match letter {
                'k' => Some('\u{212a}'),
                's' => Some('\u{17f}'),
                _ => None,
            });
            if others.iter().any(|other| (low..=high).contains(other)) {
                self.add(Self::of(&format!("{letter}{letter}")).folded());
            }
        }
    }

    fn add(&mut self, other: Self) {
        self.0 |= other.0;
    }

    fn add_signed(&mut self, other: Self, negated: bool) {
        self.add(if negated { other.complement() } else { other });
    }

    const fn complement(self) -> Self {
        Self(!self.0)
    }

    fn folded(self) -> Self {
        let upper = Self::of("AZ").0;
        let lower = Self::of("az").0;
        Self(self.0 | (self.0 & upper) << 32 | (self.0 & lower) >> 32)
    }

    fn write(self, out: &mut String) {
        if self == Self::NONE {
            // Matches no byte at all.
            out.push_str("[^\\x00-\\xFF]");
            return;
        }
        out.push('[');
        let has = |code: u32| code < 128 && self.0 & (1 << code) != 0;
        let mut code = 0;
        while code < 128 {
            let mut end = code;
            while has(end) {
                end += 1;
            }
            if end > code {
                let _ = write!(out, "\\x{code:02X}-\\x{:02X}", end - 1);
            }
            code = end + 1;
        }
        out.push(']');
    }
}

fn posix_class(name: &str) -> Option<Ascii> {
    Some(match name {
        "alnum" => Ascii::of("09AZaz"),
        "alpha" => Ascii::of("AZaz"),
        "ascii" => Ascii::ALL,
        "blank" => Ascii::of("\t\t  "),
        "cntrl" => Ascii::of("\0\x1f\x7f\x7f"),
        "digit" => Ascii::of("09"),
        "graph" => Ascii::of("!~"),
        "lower" => Ascii::of("az"),
        "print" => Ascii::of(" ~"),
        "punct" => Ascii::of("!/:@[`{~"),
        "space" => Ascii::of("\t\r  "),
        "upper" => Ascii::of("AZ"),
        "word" => Ascii::of("09AZaz__"),
        "xdigit" => Ascii::of("09AFaf"),
        _ => return None,
    })
}

/// General categories and scripts by the names that RE2/J knows; most have no ASCII character.
fn unicode_class(name: &str) -> Option<Ascii> {
    Some(match name {
        "Any" => Ascii::ALL,
        "Latin" | "L" => Ascii::of("AZaz"),
        "Lu" => Ascii::of("AZ"),
        "Ll" => Ascii::of("az"),
        "N" | "Nd" => Ascii::of("09"),
        "C" | "Cc" => Ascii::of("\0\x1f\x7f\x7f"),
        "Z" | "Zs" => Ascii::of("  "),
        "Pc" => Ascii::of("__"),
        "Pd" => Ascii::of("--"),
        "Ps" => Ascii::of("(([[{{"),
        "Pe" => Ascii::of("))]]}}"),
        "Po" => Ascii::of("!#%'**,,./:;?@\\\\"),
        "P" => Ascii::of("!#%*,/:;?@[]__{{}}"),
        "Sc" => Ascii::of("$$"),
        "Sk" => Ascii::of("^^``"),
        "Sm" => Ascii::of("++<>||~~"),
        "S" => Ascii::of("$$++<>^^``||~~"),
        "Common" => Ascii::of("AZaz").complement(),
        "Cf" | "Co" | "Cs" | "Lm" | "Lo" | "Lt" | "M" | "Mc" | "Me" | "Mn" | "Nl" | "No" | "Pf"
        | "Pi" | "So" | "Zl" | "Zp" => Ascii::NONE,
        name => OTHER_SCRIPTS
            .split_ascii_whitespace()
            .any(|script| script == name)
            .then_some(Ascii::NONE)?,
    })
}

const OTHER_SCRIPTS: &str = "Arabic Armenian Avestan Balinese Bamum Batak Bengali Bopomofo Brahmi \
    Braille Buginese Buhid Canadian_Aboriginal Carian Cham Cherokee Coptic Cuneiform Cypriot \
    Cyrillic Deseret Devanagari Egyptian_Hieroglyphs Ethiopic Georgian Glagolitic Gothic Greek \
    Gujarati Gurmukhi Han Hangul Hanunoo Hebrew Hiragana Imperial_Aramaic Inherited \
    Inscriptional_Pahlavi Inscriptional_Parthian Javanese Kaithi Kannada Katakana Kayah_Li \
    Kharoshthi Khmer Lao Lepcha Limbu Linear_B Lisu Lycian Lydian Malayalam Mandaic Meetei_Mayek \
    Mongolian Myanmar New_Tai_Lue Nko Ogham Ol_Chiki Old_Italic Old_Persian Old_South_Arabian \
    Old_Turkic Oriya Osmanya Phags_Pa Phoenician Rejang Runic Samaritan Saurashtra Shavian \
    Sinhala Sundanese Syloti_Nagri Syriac Tagalog Tagbanwa Tai_Le Tai_Tham Tai_Viet Tamil Telugu \
    Thaana Thai Tibetan Tifinagh Ugaritic Unknown Vai Yi";

/// A group that is open, or the pattern itself.
#[derive(Clone, Copy)]
struct Group {
    fold_before: bool,
    last: Option<Item>,
}

/// The last thing in the current sequence: what a repetition would repeat.
#[derive(Clone, Copy)]
struct Item {
    start: usize,
    is_repeated: bool,
}

struct Translator<'a> {
    rest: &'a str,
    out: String,
    open: Vec<Group>,
    current: Group,
    fold: bool,
    names: HashSet<&'a str>,
}

impl<'a> Translator<'a> {
    fn new(pattern: &'a str) -> Self {
        Self {
            rest: pattern,
            out: String::with_capacity(pattern.len() * 2),
            open: Vec::new(),
            current: Group {
                fold_before: false,
                last: None,
            },
            fold: false,
            names: HashSet::new(),
        }
    }

    fn translate(mut self) -> Result<String, Invalid> {
        // RE2 looks only at what came right before; a brace that is a literal counts too.
        let mut after_repeat = false;
        while let Some(next) = self.rest.chars().next() {
            let was_repeat = std::mem::take(&mut after_repeat);
            match next {
                '(' => self.open_group()?,
                ')' => self.close_group()?,
                '|' => {
                    self.skip(1);
                    self.out.push('|');
                    self.current.last = None;
                }
                '^' => self.assertion(1, "\\A"),
                '$' => self.assertion(1, "\\z"),
                '.' => {
                    self.skip(1);
                    self.class(Ascii::of("\0\t\x0b\x7f"));
                }
                '[' => {
                    let set = self.bracket_class()?;
                    self.class(set);
                }
                '*' | '+' | '?' => {
                    self.skip(1);
                    self.repeat(next.encode_utf8(&mut [0; 4]), was_repeat)?;
                    after_repeat = true;
                }
                '{' => {
                    match self.repeat_count()? {
                        Some(counts) => self.repeat(&counts, was_repeat)?,
                        None => self.next_literal(),
                    }
                    after_repeat = true;
                }
                '\\' => self.backslash()?,
                _ => self.next_literal(),
            }
        }
        if self.open.is_empty() {
            Ok(self.out)
        } else {
            Err(MISSING_PAREN)
        }
    }

    fn skip(&mut self, bytes: usize) {
        self.rest = &self.rest[bytes..];
    }

    fn take(&mut self) -> Option<char> {
        let next = self.rest.chars().next()?;
        self.skip(next.len_utf8());
        Some(next)
    }

    fn eat(&mut self, text: &str) -> bool {
        let found = self.rest.strip_prefix(text);
        self.rest = found.unwrap_or(self.rest);
        found.is_some()
    }

    fn item(&mut self) {
        self.current.last = Some(Item {
            start: self.out.len(),
            is_repeated: false,
        });
    }

    fn assertion(&mut self, bytes: usize, written: &str) {
        self.skip(bytes);
        self.item();
        self.out.push_str(written);
    }

    fn class(&mut self, set: Ascii) {
        self.item();
        set.write(&mut self.out);
    }

    fn next_literal(&mut self) {
        if let Some(literal) = self.take() {
            self.literal(literal);
        }
    }

    fn literal(&mut self, literal: char) {
        let mut set = Ascii::NONE;
        self.add_range(&mut set, literal, literal);
        self.class(set);
    }

    fn add_range(&self, set: &mut Ascii, low: char, high: char) {
        if self.fold {
            set.add_folded_range(low, high);
        } else {
            set.add_range(low, high);
        }
    }

    fn open_group(&mut self) -> Result<(), Invalid> {
        let fold_before = self.fold;
        if self.rest.starts_with("(?") {
            if !self.perl_group()? {
                return Ok(());
            }
        } else {
            self.skip(1);
        }
        self.item();
        self.out.push_str("(?:");
        let group = Group {
            fold_before,
            last: None,
        };
        self.open.push(std::mem::replace(&mut self.current, group));
        Ok(())
    }

    fn close_group(&mut self) -> Result<(), Invalid> {
        self.skip(1);
        let outer = self.open.pop().ok_or(UNEXPECTED_PAREN)?;
        self.fold = self.current.fold_before;
        self.current = outer;
        self.out.push(')');
        Ok(())
    }

    /// A group that begins with a name or flags; false when it is flags alone.
    fn perl_group(&mut self) -> Result<bool, Invalid> {
        if self.eat("(?P<") || self.eat("(?<") {
            let end = self.rest.find('>').ok_or(NAMED_CAPTURE)?;
            let name = &self.rest[..end];
            let is_word = |c: char| c == '_' || c.is_ascii_alphanumeric();
            if name.is_empty() || !name.chars().all(is_word) {
                return Err(NAMED_CAPTURE);
            }
            if !self.names.insert(name) {
                return Err(DUPLICATE_NAME);
            }
            self.skip(end + 1);
            return Ok(true);
        }
        self.skip(2);
        let (mut fold, mut negated, mut saw_flag) = (self.fold, false, false);
        loop {
            match self.take().ok_or(PERL)? {
                'i' => {
                    fold = !negated;
                    saw_flag = true;
                }
                'm' | 's' | 'U' => saw_flag = true,
                '-' if !negated => {
                    negated = true;
                    saw_flag = false;
                }
                end @ (':' | ')') if saw_flag || !negated => {
                    self.fold = fold;
                    return Ok(end == ':');
                }
                _ => return Err(PERL),
            }
        }
    }

    fn repeat(&mut self, operator: &str, after_repeat: bool) -> Result<(), Invalid> {
        self.eat("?");
        if after_repeat {
            return Err(NESTED_REPEAT);
        }
        let last = self.current.last.as_mut().ok_or(REPEAT_ARGUMENT)?;
        if std::mem::replace(&mut last.is_repeated, true) {
            self.out.insert_str(last.start, "(?:");
            self.out.push(')');
        }
        self.out.push_str(operator);
        Ok(())
    }

    /// The counts in braces, as our engine reads them; `None` when the brace is a literal.
    fn repeat_count(&mut self) -> Result<Option<String>, Invalid> {
        let Some(end) = self.rest.find('}') else {
            return Ok(None);
        };
        let inside = &self.rest[1..end];
        let (low, high) = match inside.split_once(',') {
            None => (inside, Some(inside)),
            Some((low, "")) => (low, None),
            Some((low, high)) => (low, Some(high)),
        };
        let (Some(low), Some(high)) = (count(low), high.map_or(Some(0), count)) else {
            return Ok(None);
        };
        let is_open = inside.ends_with(',');
        if low > MAX_REPEAT || high > MAX_REPEAT || (!is_open && low > high) {
            return Err(REPEAT_SIZE);
        }
        let counts = self.rest[..=end].to_owned();
        self.skip(end + 1);
        Ok(Some(counts))
    }

    fn backslash(&mut self) -> Result<(), Invalid> {
        match self.rest.as_bytes().get(1) {
            Some(b'A') => self.assertion(2, "\\A"),
            Some(b'z') => self.assertion(2, "\\z"),
            Some(b'b') => self.assertion(2, "\\b"),
            Some(b'B') => self.assertion(2, "\\B"),
            Some(b'C') => return Err(ESCAPE),
            Some(b'Q') => {
                self.skip(2);
                let (quoted, rest) = self.rest.split_once("\\E").unwrap_or((self.rest, ""));
                self.rest = rest;
                quoted.chars().for_each(|c| self.literal(c));
            }
            _ => {
                let mut set = Ascii::NONE;
                if self.class_escape(&mut set)? {
                    self.class(set);
                } else {
                    let literal = self.escape()?;
                    self.literal(literal);
                }
            }
        }
        Ok(())
    }

    /// Takes `\pL`, `\d` and the like.
    fn class_escape(&mut self, set: &mut Ascii) -> Result<bool, Invalid> {
        let Some(kind) = self.rest.strip_prefix('\\').and_then(|r| r.chars().next()) else {
            return Ok(false);
        };
        let perl = match kind.to_ascii_lowercase() {
            'p' => {
                self.skip(2);
                self.unicode_escape(set, kind == 'P')?;
                return Ok(true);
            }
            'd' => Ascii::of("09"),
            's' => Ascii::of("\t\n\x0c\r  "),
            'w' => Ascii::of("09AZaz__"),
            _ => return Ok(false),
        };
        self.skip(2);
        set.add_signed(perl, kind.is_ascii_uppercase());
        Ok(true)
    }

    fn unicode_escape(&mut self, set: &mut Ascii, negated: bool) -> Result<(), Invalid> {
        let name = if self.eat("{") {
            let end = self.rest.find('}').ok_or(CHAR_RANGE)?;
            let name = &self.rest[..end];
            self.skip(end + 1);
            name
        } else {
            let rest = self.rest;
            let next = self.take().ok_or(CHAR_RANGE)?;
            &rest[..next.len_utf8()]
        };
        let (name, flipped) = match name.strip_prefix('^') {
            Some(name) => (name, true),
            None => (name, false),
        };
        let mut class = unicode_class(name).ok_or(CHAR_RANGE)?;
        if self.fold {
            class = class.folded();
        }
        set.add_signed(class, negated != flipped);
        Ok(())
    }

    /// Takes an escaped character.
    fn escape(&mut self) -> Result<char, Invalid> {
        self.skip(1);
        let escaped = self.take().ok_or(TRAILING_BACKSLASH)?;
        let is_octal = |text: &str| text.starts_with(|c| ('0'..='7').contains(&c));
        match escaped {
            '1'..='7' if !is_octal(self.rest) => Err(ESCAPE),
            '0'..='7' => {
                let mut code = u32::from(escaped) - u32::from('0');
                for _ in 0..2 {
                    if is_octal(self.rest) {
                        code = code * 8 + self.take().and_then(|c| c.to_digit(8)).unwrap_or(0);
                    }
                }
                char::from_u32(code).ok_or(ESCAPE)
            }
            'x' => self.hex_escape(),
            'a' => Ok('\x07'),
            'f' => Ok('\x0c'),
            'n' => Ok('\n'),
            'r' => Ok('\r'),
            't' => Ok('\t'),
            'v' => Ok('\x0b'),
            other if other.is_ascii_alphanumeric() => Err(ESCAPE),
            other => Ok(other),
        }
    }

    fn hex_escape(&mut self) -> Result<char, Invalid> {
        let digits = if self.eat("{") {
            let end = self.rest.find('}').ok_or(ESCAPE)?;
            let digits = &self.rest[..end];
            self.skip(end + 1);
            digits
        } else {
            let digits = self.rest.get(..2).ok_or(ESCAPE)?;
            self.skip(2);
            digits
        };
        if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(ESCAPE);
        }
        let digits = digits.trim_start_matches('0');
        let code = match digits {
            "" => 0,
            digits => u32::from_str_radix(digits, 16).map_err(|_| ESCAPE)?,
        };
        // A surrogate is a character to Java; no name has it.
        let surrogate = (0xd800..0xe000).contains(&code);
        char::from_u32(if surrogate { 0xfffd } else { code }).ok_or(ESCAPE)
    }

    fn bracket_class(&mut self) -> Result<Ascii, Invalid> {
        self.skip(1);
        let negated = self.eat("^");
        let mut set = Ascii::NONE;
        let mut is_first = true;
        // A bracket that comes first is an ordinary character.
        while is_first || !self.rest.starts_with(']') {
            is_first = false;
            if self.named_class(&mut set)? || self.class_escape(&mut set)? {
                continue;
            }
            let low = self.class_char()?;
            let mut high = low;
            // A hyphen at the end is one too.
            if self.rest.starts_with('-') && !self.rest.starts_with("-]") {
                self.skip(1);
                high = self.class_char()?;
                if high < low {
                    return Err(CHAR_RANGE);
                }
            }
            self.add_range(&mut set, low, high);
        }
        self.skip(1);
        Ok(if negated { set.complement() } else { set })
    }

    fn named_class(&mut self, set: &mut Ascii) -> Result<bool, Invalid> {
        let Some((name, rest)) = self
            .rest
            .strip_prefix("[:")
            .and_then(|rest| rest.split_once(":]"))
        else {
            return Ok(false);
        };
        let (name, negated) = match name.strip_prefix('^') {
            Some(name) => (name, true),
            None => (name, false),
        };
        let mut class = posix_class(name).ok_or(CHAR_RANGE)?;
        if self.fold {
            class = class.folded();
        }
        self.rest = rest;
        set.add_signed(class, negated);
        Ok(true)
    }

    fn class_char(&mut self) -> Result<char, Invalid> {
        if self.rest.starts_with('\\') {
            return self.escape();
        }
        self.take().ok_or(MISSING_BRACKET)
    }
}

/// A count without leading zeros; one that is too long is more than any limit.
fn count(digits: &str) -> Option<u32> {
    let has_leading_zero = digits.len() > 1 && digits.starts_with('0');
    if digits.is_empty() || has_leading_zero || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    Some(digits.parse().unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What RE2/J says of many patterns, see testdata/README.md.
    const RE2J: &str = include_str!("testdata/patterns.txt");

    fn unescaped(text: &str) -> String {
        let mut pieces = text.split('\\');
        let mut plain = pieces.next().unwrap().to_owned();
        for piece in pieces {
            let code = u32::from_str_radix(&piece[..4], 16).unwrap();
            plain.push(char::from_u32(code).unwrap());
            plain.push_str(&piece[4..]);
        }
        plain
    }

    #[test]
    fn patterns_mean_what_they_mean_to_re2j() {
        let mut lines = RE2J.lines();
        let names: Vec<_> = lines.next().unwrap().split(' ').collect();
        let mut wrong = Vec::new();
        let mut seen = 0;
        for line in lines {
            let words: Vec<_> = line.split('\t').collect();
            let pattern = unescaped(words[0]);
            let (verdict, matched) = match Pattern::compile(&pattern) {
                Err(Invalid(words)) => (words, String::new()),
                Ok(compiled) => {
                    let matched = (0..names.len()).filter(|at| compiled.matches(names[*at]));
                    let matched: Vec<_> = matched.map(|at| at.to_string()).collect();
                    ("ok", matched.join(","))
                }
            };
            if (verdict, matched.as_str()) != (words[1], words[2]) {
                wrong.push(format!(
                    "{pattern:?}: {verdict} {matched}, RE2/J: {}",
                    &line[words[0].len()..]
                ));
            }
            seen += 1;
        }
        assert!(wrong.is_empty(), "{wrong:#?}");
        assert_eq!(seen, 1194);
    }

    #[test]
    fn a_pattern_that_would_take_much_memory_is_refused() {
        let bombs = [
            "((((a{1000}){1000}){1000}){1000}){1000}",
            "(x+x+)+y{1000}{1",
        ];
        assert_eq!(Pattern::compile(bombs[0]).err(), Some(TOO_LARGE));
        assert!(Pattern::compile(bombs[1]).is_ok());
        let deep = format!("{}a{}", "(".repeat(10_000), ")".repeat(10_000));
        assert_eq!(Pattern::compile(&deep).err(), Some(TOO_LARGE));
        let again = "a*(?i)".repeat(5_000);
        assert!(Pattern::compile(&format!("a{}", "(?i)*".repeat(5_000))).is_err());
        assert!(Pattern::compile(&again).is_ok());
    }
}
