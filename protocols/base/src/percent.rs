/// Percent-encodes `text` for the path or the query of a URL. Octets other than unreserved characters and
/// slashes become `%XX`. RFC 3986 sections 2.1, 2.3 and 3.4.
///
/// ```
/// assert_eq!(hol_base::percent_encoded("failed/a b%é?&.log"), "failed/a%20b%25%C3%A9%3F%26.log");
/// ```
pub fn percent_encoded(text: &str) -> String {
    let is_plain = |octet: u8| octet.is_ascii_alphanumeric() || b"-._~/".contains(&octet);
    let encode =
        |octet| if is_plain(octet) { char::from(octet).to_string() } else { format!("%{octet:02X}") };
    text.bytes().map(encode).collect()
}
