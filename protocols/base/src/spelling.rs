//! "Did you mean": finds the known word nearest to a mistyped one.

/// Returns the word of `known` nearest to `word`; `None` if none is near.
pub fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let distance = |candidate: &&str| strsim::damerau_levenshtein(word, candidate);
    let best = known.into_iter().min_by_key(distance)?;
    let near = distance(&best) <= 2.max(word.len() / 3) || best.contains(word) && word.len() > 2;
    near.then_some(best)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_words_are_suggested_and_far_ones_are_not() {
        let known = ["streams", "rto_min", "rto_max"];
        assert_eq!(nearest("stream", known), Some("streams"));
        assert_eq!(nearest("rtomin", known), Some("rto_min"));
        assert_eq!(nearest("bandwidth", known), None);
    }
}
