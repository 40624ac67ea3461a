//! Text to orders.

use super::{
    ClusterText, EntryText, Item, OfLoop, OrderText, PlannedText, RoundCluster, RoundEntry,
    RoundsText, Stream,
};

/// The most iterations that something runs ahead.
const MOST_AHEAD: u32 = 16;
/// The most steps of a product, and of other counts.
const MOST: u32 = 1 << 10;
/// The priorities of a wave.
const MOST_PRIORITY: u32 = 3;

/// What is wrong with a text, and where: bytes `start .. end`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Mistake {
    pub start: usize,
    pub end: usize,
    pub message: String,
}

impl Mistake {
    /// The line it is in, from 1.
    pub fn line(&self, text: &str) -> usize {
        1 + text
            .bytes()
            .take(self.start)
            .filter(|b| *b == b'\n')
            .count()
    }
}

/// The orders of a text.
pub fn parse(text: &str) -> Result<Vec<OrderText>, Mistake> {
    let mut parser = Parser {
        tokens: tokens(text)?,
        at: 0,
        end: text.len(),
    };
    let mut orders = Vec::new();
    while parser.at < parser.tokens.len() {
        orders.push(parser.order()?);
    }
    match orders.is_empty() {
        true => Err(parser.mistake("an order begins with `schedule NAME`")),
        false => Ok(orders),
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Word,
    Number,
    Mark,
}

#[derive(Clone, Copy)]
struct Token<'a> {
    kind: Kind,
    text: &'a str,
    start: usize,
}

fn tokens(text: &str) -> Result<Vec<Token<'_>>, Mistake> {
    let mut found = Vec::new();
    let mut chars = text.char_indices().peekable();
    while let Some((start, c)) = chars.next() {
        let mut run = |belongs: &dyn Fn(char) -> bool| {
            let mut end = start + c.len_utf8();
            while let Some((at, next)) = chars.next_if(|(_, next)| belongs(*next)) {
                end = at + next.len_utf8();
            }
            &text[start..end]
        };
        let (kind, text) = match c {
            _ if c.is_whitespace() => continue,
            '#' => {
                run(&|c| c != '\n');
                continue;
            }
            '0'..='9' => (Kind::Number, run(&|c| c.is_ascii_digit())),
            _ if c.is_alphabetic() || c == '_' => (
                Kind::Word,
                run(&|c| c.is_alphanumeric() || matches!(c, '_' | '.')),
            ),
            '{' | '}' | '[' | ']' | '(' | ')' | ';' | ',' => (Kind::Mark, run(&|_| false)),
            _ => {
                return Err(Mistake {
                    start,
                    end: start + c.len_utf8(),
                    message: format!("`{c}` means nothing in an order"),
                });
            }
        };
        found.push(Token { kind, text, start });
    }
    Ok(found)
}

struct Parser<'a> {
    tokens: Vec<Token<'a>>,
    at: usize,
    end: usize,
}

impl<'a> Parser<'a> {
    fn peek(&self) -> &'a str {
        self.tokens.get(self.at).map_or("", |t| t.text)
    }

    /// At the next word.
    fn mistake(&self, message: impl Into<String>) -> Mistake {
        let token = self.tokens.get(self.at);
        let start = token.map_or(self.end, |t| t.start);
        Mistake {
            start,
            end: token.map_or(self.end, |t| t.start + t.text.len()),
            message: message.into(),
        }
    }

    /// Takes the next word if it is this one.
    fn takes(&mut self, word: &str) -> bool {
        let found = self.peek() == word;
        self.at += usize::from(found);
        found
    }

    fn expect(&mut self, word: &str) -> Result<(), Mistake> {
        match self.takes(word) {
            true => Ok(()),
            false => Err(self.mistake(format!("`{word}` is expected here"))),
        }
    }

    fn word(&mut self, what: &str) -> Result<&'a str, Mistake> {
        match self.tokens.get(self.at) {
            Some(token) if token.kind == Kind::Word => {
                self.at += 1;
                Ok(token.text)
            }
            _ => Err(self.mistake(format!("{what} is expected here"))),
        }
    }

    fn number(&mut self, what: &str, most: u32) -> Result<u32, Mistake> {
        let token = self.tokens.get(self.at).filter(|t| t.kind == Kind::Number);
        let value = token.and_then(|t| t.text.parse().ok());
        match value.filter(|value| *value <= most) {
            Some(value) => {
                self.at += 1;
                Ok(value)
            }
            None => Err(self.mistake(format!("{what}, 0 to {most}, is expected here"))),
        }
    }

    fn order(&mut self) -> Result<OrderText, Mistake> {
        self.expect("schedule")?;
        let mut order = OrderText {
            name: self.word("the name of the schedule")?.to_string(),
            of_loop: None,
            m: 1,
            n: 1,
            p: 1,
            k: None,
            stream: Stream::All,
            spare: 0,
            taken_from: None,
            items: Vec::new(),
        };
        if self.takes("for") {
            let start = self.tokens.get(self.at).map_or(self.end, |t| t.start);
            let name = self.word("the variable of a loop")?.to_string();
            let end = start + name.len();
            order.of_loop = Some(OfLoop { name, start, end });
        }
        while self.at < self.tokens.len() && self.peek() != "schedule" {
            if self.takes("split") {
                self.split(&mut order)?;
            } else if self.takes("stream") {
                order.stream = self.stream()?;
            } else if self.takes("spare") {
                order.spare = self.number("a number of versions", MOST_AHEAD)?;
                if self.takes("taken") {
                    self.expect("from")?;
                    let from = self.number("a number of iterations", MOST_AHEAD)?;
                    order.taken_from = Some(from);
                }
            } else if self.takes("cluster") {
                order.items.push(Item::Cluster(self.cluster()?));
            } else if self.takes("planned") {
                let planned = self.planned()?;
                order.items.push(Item::Planned(planned));
            } else if self.peek() == "rounds" {
                let again = order.items.iter().any(|i| matches!(i, Item::Rounds(_)));
                if again {
                    return Err(self.mistake("an order has `rounds` once"));
                }
                order.items.push(Item::Rounds(self.rounds()?));
            } else {
                let known =
                    "`split`, `stream`, `spare`, `cluster`, `planned`, `rounds` or `schedule`";
                return Err(self.mistake(format!("{known} is expected here")));
            }
        }
        match order.items.is_empty() {
            true => Err(self.mistake(format!("the order `{}` has no cluster", order.name))),
            false => Ok(order),
        }
    }

    fn stream(&mut self) -> Result<Stream, Mistake> {
        if self.takes("halves") {
            self.expect("lag")?;
            let lag = self.number("a number of barriers", 1)?;
            return Ok(Stream::Halves { lag });
        }
        match (self.takes("all"), self.takes("producer")) {
            (true, _) => Ok(Stream::All),
            (_, true) => Ok(Stream::Producer),
            _ => Err(self.mistake("`all`, `halves lag 1` or `producer` is expected here")),
        }
    }

    fn priority(&mut self) -> Result<u8, Mistake> {
        if !self.takes("prio") {
            return Ok(0);
        }
        let priority = self.number("a priority", MOST_PRIORITY)?;
        Ok(u8::try_from(priority).unwrap_or(u8::MAX))
    }

    fn planned(&mut self) -> Result<PlannedText, Mistake> {
        let bar = self.takes("bar");
        let until_use = self.takes("until");
        if until_use {
            self.expect("use")?;
        }
        Ok(PlannedText { bar, until_use })
    }

    fn rounds(&mut self) -> Result<RoundsText, Mistake> {
        self.expect("rounds")?;
        let least = match self.peek() {
            "{" => 1,
            _ => self.number("the least number of rounds", MOST)?,
        };
        self.expect("{")?;
        let mut clusters = Vec::new();
        while self.takes("cluster") {
            clusters.push(self.round_cluster()?);
        }
        match clusters.is_empty() {
            true => Err(self.mistake("`cluster` is expected here")),
            false => self.expect("}").map(|()| RoundsText { least, clusters }),
        }
    }

    fn round_cluster(&mut self) -> Result<RoundCluster, Mistake> {
        let mut cluster = RoundCluster {
            name: self.word("the name of the cluster")?.to_string(),
            bar: self.takes("bar"),
            priority: self.priority()?,
            paired: self.takes("paired"),
            entries: Vec::new(),
        };
        self.expect("{")?;
        loop {
            let found = ROUND_ENTRIES.iter().find(|(words, _)| {
                let here = self.tokens[self.at..].iter().map(|t| t.text);
                let words = words.split(' ');
                here.take(words.clone().count()).eq(words)
            });
            let Some((words, entry)) = found else {
                let known: Vec<String> = ROUND_ENTRIES
                    .iter()
                    .map(|(words, _)| format!("`{words}`"))
                    .collect();
                return Err(self.mistake(format!("one of {} is expected here", known.join(", "))));
            };
            self.at += words.split(' ').count();
            cluster.entries.push(*entry);
            if !self.takes(";") || self.peek() == "}" {
                break;
            }
        }
        self.expect("}")?;
        Ok(cluster)
    }

    fn cluster(&mut self) -> Result<ClusterText, Mistake> {
        let mut cluster = ClusterText {
            name: self.word("the name of the cluster")?.to_string(),
            bar: self.takes("bar"),
            priority: self.priority()?,
            woven: self.takes("woven"),
            entries: Vec::new(),
        };
        self.expect("{")?;
        loop {
            self.pieces(&mut cluster.entries)?;
            if !self.takes(";") || self.peek() == "}" {
                break;
            }
        }
        self.expect("}")?;
        Ok(cluster)
    }

    /// An op and what it is about.
    fn pieces(&mut self, entries: &mut Vec<EntryText>) -> Result<(), Mistake> {
        let op = self.word("an op, such as `g2s`, `s2r` or `mma`,")?;
        loop {
            let mut label = format!("{op} {}", self.word("a buffer")?);
            // A statement is called by all that it writes.
            while op == COMPUTE && self.takes(",") {
                label = format!("{label}, {}", self.word("a buffer")?);
            }
            let mut entry = EntryText {
                label,
                ordinal: 1,
                m: None,
                n: None,
                k: None,
                p: None,
                ahead: 0,
            };
            if self.takes("(") {
                entry.ordinal = self.number("which of those that are called so", MOST)?;
                self.expect(")")?;
            }
            if self.takes("[") {
                loop {
                    self.place(&mut entry)?;
                    if !self.takes(",") {
                        break;
                    }
                }
                self.expect("]")?;
            }
            if self.takes("ahead") {
                entry.ahead = self.number("a number of iterations", MOST_AHEAD)?;
            }
            entries.push(entry);
            if op == COMPUTE || !self.takes(",") {
                return Ok(());
            }
        }
    }

    /// `m 2, n 2, k 4`.
    fn split(&mut self, order: &mut OrderText) -> Result<(), Mistake> {
        loop {
            let axis = self.peek();
            if !matches!(axis, "m" | "n" | "k" | "p") {
                return Err(self.mistake("`m`, `n`, `k` or `p` is expected here"));
            }
            self.at += 1;
            let parts = self.number("a number of parts", MOST)?.max(1);
            match axis {
                "m" => order.m = parts,
                "n" => order.n = parts,
                "p" => order.p = parts,
                _ => order.k = Some(parts),
            }
            if !self.takes(",") {
                return Ok(());
            }
        }
    }

    /// `k3`.
    fn place(&mut self, entry: &mut EntryText) -> Result<(), Mistake> {
        let word = self.peek();
        let at = word.get(1..).and_then(|n| n.parse().ok());
        let place = match word.get(..1) {
            Some("m") => &mut entry.m,
            Some("n") => &mut entry.n,
            Some("k") => &mut entry.k,
            Some("p") => &mut entry.p,
            _ => &mut None,
        };
        *place = at.filter(|at| *at < MOST);
        match place.is_some() && matches!(word.get(..1), Some("m" | "n" | "k" | "p")) {
            true => {
                self.at += 1;
                Ok(())
            }
            false => {
                Err(self.mistake("a part of the product, such as `m0` or `k1`, is expected here"))
            }
        }
    }
}

/// The op of a statement that is no micro-op.
const COMPUTE: &str = "compute";

/// What can stand in a round, longer names before what they begin with.
const ROUND_ENTRIES: [(&str, RoundEntry); 6] = [
    ("read next", RoundEntry::ReadNext),
    ("read", RoundEntry::Read),
    ("multiply", RoundEntry::Multiply),
    ("bring first", RoundEntry::BringFirst),
    ("bring spread", RoundEntry::BringSpread),
    ("store last", RoundEntry::StoreLast),
];
