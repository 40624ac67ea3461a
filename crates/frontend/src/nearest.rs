//! "Did you mean": the nearest names to one that is not known.

/// A help text naming the candidates nearest to `name`, if any is near.
pub fn suggest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<String> {
    let near = nearest(name, candidates);
    match near.as_slice() {
        [] => None,
        [one] => Some(format!("did you mean `{one}`?")),
        many => {
            let quoted: Vec<String> = many.iter().map(|n| format!("`{n}`")).collect();
            Some(format!("did you mean one of {}?", quoted.join(", ")))
        }
    }
}

/// At most three candidates within a third of the name's length of edits, nearest first.
pub fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    let limit = (name.chars().count() / 3).max(1) + 1;
    let lower = name.to_lowercase();
    let mut found: Vec<(usize, &str)> = candidates
        .into_iter()
        .filter(|c| !c.starts_with('<'))
        .filter_map(|c| {
            let distance = edit_distance(&lower, &c.to_lowercase(), limit)?;
            // A word that contains the other is nearer than its length says.
            Some((distance, c))
        })
        .collect();
    found.sort();
    found.dedup();
    let best = found.first().map_or(0, |f| f.0);
    found
        .into_iter()
        .filter(|f| f.0 <= best + 1)
        .take(3)
        .map(|f| f.1)
        .collect()
}

/// Insertions, deletions, replacements and swaps of neighbours, or `None` past the limit.
fn edit_distance(a: &str, b: &str, limit: usize) -> Option<usize> {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    if a.len().abs_diff(b.len()) > limit {
        return None;
    }
    let mut before = vec![0; b.len() + 1];
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for (i, &ca) in a.iter().enumerate() {
        let mut row = vec![i + 1; b.len() + 1];
        for (j, &cb) in b.iter().enumerate() {
            let replace = last[j] + usize::from(ca != cb);
            let mut best = replace.min(last[j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && ca == b[j - 1] && a[i - 1] == cb {
                best = best.min(before[j - 1] + 1);
            }
            row[j + 1] = best;
        }
        before = std::mem::replace(&mut last, row);
    }
    (last[b.len()] <= limit).then_some(last[b.len()])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn typing_errors_find_their_name() {
        let names = [
            "copy",
            "clear",
            "alloc_shared",
            "alloc_fragment",
            "Parallel",
            "Pipelined",
        ];
        assert_eq!(nearest("coyp", names), ["copy"]);
        assert_eq!(nearest("alloc_share", names), ["alloc_shared"]);
        assert_eq!(nearest("parallel", names), ["Parallel"]);
        assert!(nearest("quaternion", names).is_empty());
    }
}
