//! Configurations: names and values, and those that the names of parameters ask for.

use std::fmt;

/// One choice of values for the open parameters of a kernel, as people write it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Config(pub Vec<(String, String)>);

impl Config {
    pub fn new<N: Into<String>, V: Into<String>>(
        items: impl IntoIterator<Item = (N, V)>,
    ) -> Config {
        let items = items.into_iter();
        Config(items.map(|(n, v)| (n.into(), v.into())).collect())
    }
}

impl fmt::Display for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return f.write_str("as it stands");
        }
        for (at, (name, value)) in self.0.iter().enumerate() {
            let comma = if at == 0 { "" } else { ", " };
            write!(f, "{comma}{name}={value}")?;
        }
        Ok(())
    }
}

/// What a machine allows of what is varied.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Lanes of a warp or wave.
    pub warp: u32,
    /// Threads of a block, at most.
    pub threads: u32,
    /// Names of schedules of pipelined loops.
    pub schedules: Vec<String>,
}

/// More configurations than this are nobody's to compile.
pub const MOST: usize = 4096;

/// The values that are tried of a parameter, by its name: tiles (`block_M`, `tile_n`, `BK`),
/// `threads`, stages (`num_stages`), `schedule`, and switches (`enable_…`, `use_…`, `is_…`). None
/// where the name says nothing.
pub fn values(name: &str, limits: &Limits) -> Option<Vec<String>> {
    let lower = name.to_lowercase();
    let words: Vec<&str> = lower.split('_').filter(|w| !w.is_empty()).collect();
    let has = |all: &[&str]| words.iter().any(|word| all.contains(word));
    let numbers = |list: &[u32]| Some(list.iter().map(u32::to_string).collect());
    if has(&["thread", "threads", "nthreads"]) {
        let all = [2 * limits.warp, 128, 256, 512];
        let mut all: Vec<u32> = all.into_iter().filter(|n| *n <= limits.threads).collect();
        all.sort_unstable();
        all.dedup();
        return numbers(&all);
    }
    if has(&["stage", "stages"]) {
        return numbers(&[1, 2, 3, 4]);
    }
    if has(&["schedule"]) {
        return Some(limits.schedules.iter().map(|s| format!("{s:?}")).collect());
    }
    if matches!(words.first(), Some(&("enable" | "use" | "is" | "swizzle"))) {
        return Some(vec!["False".to_owned(), "True".to_owned()]);
    }
    if has(&["block", "tile"]) || matches!(lower.as_str(), "bm" | "bn" | "bk") {
        let along_k = matches!(words.last(), Some(&"k" | &"bk"));
        return match along_k {
            true => numbers(&[16, 32, 64, 128]),
            false => numbers(&[32, 64, 128, 256]),
        };
    }
    None
}

/// Every combination of values; the last name changes fastest. None where there are too many.
pub fn product(axes: &[(String, Vec<String>)]) -> Option<Vec<Config>> {
    let mut all = vec![Config::default()];
    for (name, values) in axes {
        if all.len().saturating_mul(values.len()) > MOST {
            return None;
        }
        let mut next = Vec::with_capacity(all.len() * values.len());
        for config in &all {
            for value in values {
                let mut longer = config.clone();
                longer.0.push((name.clone(), value.clone()));
                next.push(longer);
            }
        }
        all = next;
    }
    Some(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_say_what_is_tried() {
        let limits = Limits {
            warp: 64,
            threads: 256,
            schedules: vec!["ping_pong".to_owned()],
        };
        let tried = |name: &str| values(name, &limits).map(|all| all.join(" "));
        assert_eq!(tried("block_M").as_deref(), Some("32 64 128 256"));
        assert_eq!(tried("BLOCK_K").as_deref(), Some("16 32 64 128"));
        assert_eq!(tried("BN").as_deref(), Some("32 64 128 256"));
        assert_eq!(tried("threads").as_deref(), Some("128 256"));
        assert_eq!(tried("num_stages").as_deref(), Some("1 2 3 4"));
        assert_eq!(tried("enable_rasterization").as_deref(), Some("False True"));
        assert_eq!(tried("schedule").as_deref(), Some("\"ping_pong\""));
        assert_eq!(tried("policy"), None);
        assert_eq!(tried("M"), None);
    }

    #[test]
    fn products_are_in_order_and_have_an_end() {
        let axis = |name: &str, n: usize| {
            let values = (0..n).map(|v| v.to_string()).collect();
            (name.to_owned(), values)
        };
        let all = product(&[axis("a", 2), axis("b", 3)]).expect("six");
        let texts: Vec<String> = all.iter().map(Config::to_string).collect();
        assert_eq!(texts.len(), 6);
        assert_eq!((&*texts[1], &*texts[3]), ("a=0, b=1", "a=1, b=0"));
        assert_eq!(product(&[]).map(|all| all.len()), Some(1));
        assert_eq!(product(&[axis("a", 100), axis("b", 100)]), None);
    }
}
