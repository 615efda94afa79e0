//! "Did you mean": finds the known word nearest to a mistyped one.

/// Returns the word of `known` that is most similar to `word`; `None` if none is similar enough.
pub fn nearest_word<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let distance = |candidate: &&str| strsim::damerau_levenshtein(word, candidate);
    let best = known.into_iter().min_by_key(distance)?;
    // A word with too many changed characters was replaced, not mistyped.
    let max = match word.chars().count() {
        0..=2 => 0,
        3..=5 => 1,
        _ => 2,
    };
    let is_part = best.contains(word) && word.len() > 2 || word.contains(best) && best.len() > 3;
    (distance(&best) <= max || is_part).then_some(best)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_similar_words_are_suggested() {
        let known = ["streams", "rto_min", "rto_max"];
        assert_eq!(nearest_word("stream", known), Some("streams"));
        assert_eq!(nearest_word("rtomin", known), Some("rto_min"));
        assert_eq!(nearest_word("bandwidth", known), None);
        assert_eq!(nearest_word("listen-on", ["listen"]), Some("listen"));
        assert_eq!(nearest_word("dealy", ["rate", "delay"]), Some("delay"));
        for (word, known) in [
            ("LL", "if"),
            ("loss", "hosts"),
            ("bbr", "prr"),
            ("tb-set-node-lan-params", "tb-set-node-rpms"),
            ("al", "all"),
        ] {
            assert_eq!(nearest_word(word, [known]), None, "{word}");
        }
    }
}
