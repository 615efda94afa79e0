//! Whole numbers on the command line; an error contains the range.

/// Parses a whole number of at least 0.
pub fn parse_whole_number(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| match suggestion(text) {
        Some(number) => format!("write {number}"),
        None => format!("write a whole number from 0 to {}", u64::MAX),
    })
}

/// Returns the whole number that the user wrote in another notation, such as `1e6`, `10,000` or `5.0`; `None` if
/// it is no whole number.
fn suggestion(text: &str) -> Option<u64> {
    let number: f64 = text.replace([',', '_'], "").parse().ok()?;
    (number.fract() == 0.0 && (0.0..1e15).contains(&number)).then_some(number as u64)
}

/// Parses a whole number of at least 1.
pub fn parse_positive_number(text: &str) -> Result<usize, String> {
    let number = text.parse().ok().filter(|number| *number > 0);
    number.ok_or_else(|| match suggestion(text).filter(|number| *number > 0) {
        Some(number) => format!("write {number}"),
        None => "write a whole number of at least 1".to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_out_of_range_are_refused_with_the_range() {
        assert_eq!(
            (parse_whole_number("0"), parse_whole_number("18446744073709551615")),
            (Ok(0), Ok(u64::MAX))
        );
        for wrong in ["-1", "18446744073709551616", "99999999999999999999999", "x", ""] {
            assert!(
                parse_whole_number(wrong).unwrap_err().contains("from 0 to 18446744073709551615"),
                "{wrong}"
            );
        }
        assert_eq!(
            ["1e6", "10,000", "5.0"].map(|text| parse_whole_number(text).unwrap_err()),
            ["write 1000000", "write 10000", "write 5"]
        );
        assert_eq!(parse_positive_number("1"), Ok(1));
        for wrong in ["0", "-1", "x"] {
            assert!(parse_positive_number(wrong).unwrap_err().contains("at least 1"), "{wrong}");
        }
    }
}
