//! A one-pass JSON scanner: checks that the text is well-formed, bounds its depth and finds its
//! members. Nothing is unescaped, copied or kept.
//!
//! Nearly every message is plain, and the scanner reads it several times faster than a general
//! parser. All others (a key with escapes, a duplicate field, any mistake) are left to
//! `serde_json`, which is the authority and reports mistakes. So `None` only means "use the full
//! parser".

/// Reads JSON text from its beginning.
pub struct Scanner<'a> {
    text: &'a str,
    at: usize,
    /// How many containers may still be opened.
    room: usize,
    /// Whether there is any escape at all: without one, a string ends at the next quote.
    has_escapes: bool,
}

/// The members of an object, in their order: their names, none with an escape, and their values.
/// `None` if it is not plain, or if `each` returns `None`.
pub fn members<'a>(
    object: &'a str,
    mut each: impl FnMut(&'a str, &'a str) -> Option<()>,
) -> Option<()> {
    let mut scanner = Scanner::new(object, MAX_DEPTH)?;
    scanner.object(|scanner, key| each(key, scanner.value()?))?;
    scanner.end()
}

/// The items of an array, in their order. `None` if it is not plain, or if `each` returns `None`.
pub fn items<'a>(array: &'a str, each: impl FnMut(&'a str) -> Option<()>) -> Option<()> {
    let mut scanner = Scanner::new(array, MAX_DEPTH)?;
    scanner.array(each)?;
    scanner.end()
}

/// The content of a string without escapes; `None` for any other value.
pub fn plain_string(json: &str) -> Option<&str> {
    let inner = json.strip_prefix('"')?.strip_suffix('"')?;
    (memchr::memchr(b'\\', inner.as_bytes()).is_none()).then_some(inner)
}

/// The scanner is recursive; deeper nesting is left to `serde_json`.
const MAX_DEPTH: usize = 128;

impl<'a> Scanner<'a> {
    /// A scanner at the first value of `text`, in which containers may be nested `depth` deep.
    /// `None` if the text has control characters: they are invalid in strings and rare between
    /// values.
    pub fn new(text: &'a str, depth: usize) -> Option<Self> {
        let text = text.trim_matches([' ', '\t', '\n', '\r']);
        let has_control = text.bytes().fold(false, |any, byte| any | (byte < 0x20));
        let has_escapes = memchr::memchr(b'\\', text.as_bytes()).is_some();
        let room = depth.min(MAX_DEPTH);
        (!has_control).then_some(Self { text, at: 0, room, has_escapes })
    }

    /// `Some` if only spaces are left.
    pub fn end(mut self) -> Option<()> {
        self.skip_space();
        (self.at == self.text.len()).then_some(())
    }

    /// Whether an object comes next.
    pub fn is_at_object(&self) -> bool {
        self.peek() == Some(b'{')
    }

    /// The position of the scanner, for [`Scanner::since`].
    pub fn place(&self) -> usize {
        self.at
    }

    /// The text that was read since the position `place`.
    pub fn since(&self, place: usize) -> &'a str {
        self.text.get(place..self.at).unwrap_or_default()
    }

    /// Reads the value that comes next.
    pub fn value(&mut self) -> Option<&'a str> {
        let begin = self.at;
        self.skip_value()?;
        self.text.get(begin..self.at)
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn skip_space(&mut self) {
        while self.peek() == Some(b' ') {
            self.at += 1;
        }
    }

    /// Reads the object that comes next: `each` gets the names of its members, none with an escape,
    /// and reads their values.
    pub fn object(&mut self, mut each: impl FnMut(&mut Self, &'a str) -> Option<()>) -> Option<()> {
        self.open(b'{')?;
        if self.peek() == Some(b'}') {
            return self.close();
        }
        loop {
            let (key, is_plain) = self.string()?;
            if !is_plain {
                return None;
            }
            self.skip_space();
            if self.peek() != Some(b':') {
                return None;
            }
            self.at += 1;
            self.skip_space();
            each(self, key)?;
            self.skip_space();
            match self.peek()? {
                b',' => self.at += 1,
                b'}' => return self.close(),
                _ => return None,
            }
            self.skip_space();
        }
    }

    fn array(&mut self, mut each: impl FnMut(&'a str) -> Option<()>) -> Option<()> {
        self.open(b'[')?;
        if self.peek() == Some(b']') {
            return self.close();
        }
        loop {
            let item = self.value()?;
            each(item)?;
            self.skip_space();
            match self.peek()? {
                b',' => self.at += 1,
                b']' => return self.close(),
                _ => return None,
            }
            self.skip_space();
        }
    }

    fn open(&mut self, bracket: u8) -> Option<()> {
        if self.peek() != Some(bracket) {
            return None;
        }
        self.room = self.room.checked_sub(1)?;
        self.at += 1;
        self.skip_space();
        Some(())
    }

    fn close(&mut self) -> Option<()> {
        self.room += 1;
        self.at += 1;
        Some(())
    }

    fn skip_value(&mut self) -> Option<()> {
        match self.peek()? {
            b'"' => self.string().map(drop),
            b'{' => self.object(|scanner, _| scanner.skip_value()),
            b'[' => self.array(|_| Some(())),
            b't' => self.word("true"),
            b'f' => self.word("false"),
            b'n' => self.word("null"),
            _ => self.number(),
        }
    }

    fn word(&mut self, word: &str) -> Option<()> {
        if !self.text.as_bytes()[self.at..].starts_with(word.as_bytes()) {
            return None;
        }
        self.at += word.len();
        Some(())
    }

    fn number(&mut self) -> Option<()> {
        if self.peek() == Some(b'-') {
            self.at += 1;
        }
        match self.peek()? {
            b'0' => self.at += 1,
            b'1'..=b'9' => self.digits()?,
            _ => return None,
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            self.digits()?;
        }
        if let Some(b'e' | b'E') = self.peek() {
            self.at += 1;
            if let Some(b'+' | b'-') = self.peek() {
                self.at += 1;
            }
            self.digits()?;
        }
        Some(())
    }

    fn digits(&mut self) -> Option<()> {
        let begin = self.at;
        while self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            self.at += 1;
        }
        (self.at > begin).then_some(())
    }

    /// The text between the quotes, and whether it has no escapes.
    #[inline]
    fn string(&mut self) -> Option<(&'a str, bool)> {
        if self.peek() != Some(b'"') {
            return None;
        }
        self.at += 1;
        let begin = self.at;
        let is_plain = if self.has_escapes { self.pass_string()? } else { self.pass_text() };
        let inner = self.text.get(begin..self.at)?;
        self.at += 1;
        Some((inner, is_plain))
    }

    /// Goes to the end of a string that has no escapes.
    fn pass_text(&mut self) -> bool {
        let bytes = self.text.as_bytes();
        let soon = self.at + BLOCK;
        while let Some(word) = bytes.get(self.at..).and_then(|rest| rest.first_chunk()) {
            let quotes = zero_bytes(u64::from_le_bytes(*word) ^ (ONES * 0x22));
            if quotes != 0 {
                self.at += quotes.trailing_zeros() as usize / 8;
                return true;
            }
            self.at += 8;
            if self.at == soon {
                break;
            }
        }
        let rest = &bytes[self.at..];
        self.at += memchr::memchr(b'"', rest).unwrap_or(rest.len());
        true
    }

    /// Goes to the end of a string, and returns whether it has no escapes.
    fn pass_string(&mut self) -> Option<bool> {
        let mut is_plain = true;
        loop {
            self.at = plain_end(self.text.as_bytes(), self.at);
            match self.peek()? {
                b'"' => return Some(is_plain),
                b'\\' => {
                    is_plain = false;
                    self.escape()?;
                }
                // A control character.
                _ => return None,
            }
        }
    }

    fn escape(&mut self) -> Option<()> {
        let rest = &self.text.as_bytes()[self.at + 1..];
        let length = match rest.first()? {
            b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => 1,
            b'u' if rest.len() > 4 && rest[1..5].iter().all(u8::is_ascii_hexdigit) => 5,
            _ => return None,
        };
        self.at += 1 + length;
        Some(())
    }
}

/// The number of bytes before the first one that a JSON string must escape: a quote, a backslash or
/// a control character.
pub(crate) fn plain_length(bytes: &[u8]) -> usize {
    plain_end(bytes, 0)
}

/// The position of the first such byte from `at` on.
#[inline]
fn plain_end(bytes: &[u8], mut at: usize) -> usize {
    let soon = at + BLOCK;
    while let Some(word) = bytes.get(at..).and_then(|rest| rest.first_chunk()) {
        let special = special_bytes(u64::from_le_bytes(*word));
        if special != 0 {
            return at + special.trailing_zeros() as usize / 8;
        }
        at += 8;
        if at == soon {
            at = long_plain_end(bytes, at);
        }
    }
    let is_plain = |byte: &u8| !is_special(*byte);
    at + bytes[at..].iter().take_while(|byte| is_plain(byte)).count()
}

/// Skips most of a long text, in blocks that the compiler vectorizes.
#[inline(never)]
fn long_plain_end(bytes: &[u8], mut at: usize) -> usize {
    let is_plain = |block: &[u8; BLOCK]| !block.iter().fold(false, |any, b| any | is_special(*b));
    while bytes.get(at..).and_then(|rest| rest.first_chunk()).is_some_and(is_plain) {
        at += BLOCK;
    }
    at
}

fn is_special(byte: u8) -> bool {
    byte < 0x20 || byte == b'"' || byte == b'\\'
}

const BLOCK: usize = 64;

const ONES: u64 = u64::MAX / 255;
const HIGHS: u64 = ONES * 0x80;

/// Sets the highest bit of the first special byte of a word; the bits above it may be wrong.
fn special_bytes(word: u64) -> u64 {
    let control = word.wrapping_sub(ONES * 0x20) & !word & HIGHS;
    zero_bytes(word ^ (ONES * 0x22)) | zero_bytes(word ^ (ONES * 0x5c)) | control
}

/// The same for the first zero byte of a word.
fn zero_bytes(word: u64) -> u64 {
    word.wrapping_sub(ONES) & !word & HIGHS
}

#[cfg(test)]
mod tests;
