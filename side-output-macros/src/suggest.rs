/// The candidate that `word` was probably meant to be.
pub(crate) fn closest<'a>(word: &str, candidates: &[&'a str]) -> Option<&'a str> {
    let (candidate, distance) = candidates
        .iter()
        .map(|candidate| (*candidate, distance(word, candidate)))
        .min_by_key(|(_, distance)| *distance)?;
    // A third of the letters, as rustc does; one slip is forgiven in any word but the shortest.
    let longest = word.chars().count().max(candidate.chars().count());
    (distance <= (longest / 3).max(1) && distance < longest).then_some(candidate)
}

/// `; did you mean …?`, or the list of what is possible.
pub(crate) fn hint(word: &str, candidates: &[&str]) -> String {
    match closest(word, candidates) {
        Some(candidate) => format!("; did you mean `{candidate}`?"),
        None => format!("; expected {}", list(candidates)),
    }
}

/// `` `a`, `b` or `c` ``.
pub(crate) fn list(words: &[&str]) -> String {
    let quoted: Vec<_> = words.iter().map(|word| format!("`{word}`")).collect();
    match quoted.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} or {last}", rest.join(", ")),
        Some((last, _)) => last.clone(),
        None => String::new(),
    }
}

/// Number of letters to insert, remove, replace or swap with their neighbour.
fn distance(from: &str, to: &str) -> usize {
    let (from, to): (Vec<_>, Vec<_>) = (from.chars().collect(), to.chars().collect());
    let mut rows = vec![(0..=to.len()).collect::<Vec<_>>()];
    for i in 1..=from.len() {
        let mut row = vec![i];
        for j in 1..=to.len() {
            let replace = rows[i - 1][j - 1] + usize::from(from[i - 1] != to[j - 1]);
            let mut best = replace.min(rows[i - 1][j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && from[i - 1] == to[j - 2] && from[i - 2] == to[j - 1] {
                best = best.min(rows[i - 2][j - 2] + 1);
            }
            row.push(best);
        }
        rows.push(row);
    }
    rows[from.len()][to.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_is_recognized_and_another_word_is_not() {
        let options = ["capacity", "overflow", "name"];
        for (word, expected) in [
            ("capcity", Some("capacity")),
            ("capacty", Some("capacity")),
            ("size", None),
            ("overlfow", Some("overflow")),
            ("nmae", Some("name")),
            ("naem", Some("name")),
            ("x", None),
            ("", None),
        ] {
            assert_eq!(closest(word, &options), expected, "{word}");
        }
    }

    #[test]
    fn a_hint_without_a_candidate_lists_them_all() {
        assert_eq!(hint("size", &["capacity", "name"]), "; expected `capacity` or `name`");
        assert_eq!(hint("size", &["capacity"]), "; expected `capacity`");
        assert_eq!(hint("nam", &["capacity", "name"]), "; did you mean `name`?");
    }
}
