//! The names a misspelt one may have meant.

/// At most three of the candidates that differ from the word in few letters, best first.
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    // A third of the letters may be wrong; a long word is cut so that the table stays small.
    let word: Vec<char> = word.chars().take(64).collect();
    let limit = (word.len() / 3).max(1);
    let mut found: Vec<(usize, &str)> = candidates
        .into_iter()
        .filter_map(|c| {
            let distance = edit_distance(&word, c);
            (distance <= limit).then_some((distance, c))
        })
        .collect();
    found.sort_unstable();
    found.dedup();
    found.into_iter().take(3).map(|(_, c)| c).collect()
}

/// "did you mean `a`, `b`?", or nothing where no candidate is near.
pub fn suggestion<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<String> {
    let near = nearest(word, candidates);
    if near.is_empty() {
        return None;
    }
    let quoted: Vec<String> = near.iter().map(|n| format!("`{n}`")).collect();
    Some(format!("did you mean {}?", quoted.join(" or ")))
}

/// How many letters are inserted, dropped, replaced or swapped with their neighbour.
fn edit_distance(a: &[char], b: &str) -> usize {
    let b: Vec<char> = b.chars().take(64).collect();
    let mut before: Vec<usize> = vec![0; b.len() + 1];
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut row = vec![i; b.len() + 1];
        for j in 1..=b.len() {
            let replaced = last[j - 1] + (a[i - 1] != b[j - 1]) as usize;
            row[j] = replaced.min(last[j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                row[j] = row[j].min(before[j - 2] + 1);
            }
        }
        before = std::mem::replace(&mut last, row);
    }
    last[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_likely_ones() {
        let names = ["copy", "gemm", "reduce", "transpose"];
        assert_eq!(nearest("copi", names), ["copy"]);
        assert_eq!(nearest("gmem", names), ["gemm"]);
        assert_eq!(nearest("tranpose", names), ["transpose"]);
        assert!(nearest("x", names).is_empty());
        assert_eq!(
            suggestion("redduce", names).as_deref(),
            Some("did you mean `reduce`?")
        );
    }
}
