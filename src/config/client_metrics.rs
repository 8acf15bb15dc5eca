//! The options of a client-metrics subscription (KIP-714): what clients report, how often, and
//! which clients are meant.

use super::error::ConfigError;
use super::key::config_keys;

/// The properties of a client that a subscription may match.
pub(crate) const MATCH_KEYS: &[&str] = &[
    "client_instance_id",
    "client_id",
    "client_software_name",
    "client_software_version",
    "client_source_address",
    "client_source_port",
];

config_keys! {
    /// One subscription to the metrics of clients.
    ClientMetricsConfig in ClientMetrics, table CLIENT_METRICS_KEYS;

    /// How often clients push the metrics that were asked for.
    "interval.ms" interval_ms: i32 = "300000", Between(100, 3_600_000), Dynamic;
    /// Which clients are meant: pairs of a property and a pattern that must all fit; empty means
    /// every client.
    "match" match_: Vec<String> = "", ClientMatch, Dynamic;
    /// The beginnings of the names that are asked for; `*` for all, empty for none.
    "metrics" metrics: Vec<String> = "", Any, Dynamic;
}

impl ClientMetricsConfig {
    /// The property and pattern of every condition; `valid` says whether a pattern compiles.
    pub(crate) fn matches(
        &self,
        valid: &dyn Fn(&str) -> bool,
    ) -> Result<Vec<(String, String)>, ConfigError> {
        parse_match(&self.match_, valid)
    }
}

/// Splits `property=pattern` conditions; `valid` says whether a pattern compiles.
pub(crate) fn parse_match(
    items: &[String],
    valid: &dyn Fn(&str) -> bool,
) -> Result<Vec<(String, String)>, ConfigError> {
    let condition = |item: &String| {
        let parts: Vec<&str> = item.split('=').map(str::trim).collect();
        match parts.as_slice() {
            [key, pattern] if MATCH_KEYS.contains(key) && !pattern.is_empty() && valid(pattern) => {
                Ok(((*key).to_owned(), (*pattern).to_owned()))
            }
            _ => Err(ConfigError::config(format!(
                "Illegal client matching pattern: {item}"
            ))),
        }
    };
    items.iter().map(condition).collect()
}

/// Whether a regular expression can be one: brackets close, nothing repeats without a subject.
/// Whoever compiles patterns knows better; this is for those who only store them.
pub(crate) fn plausible_pattern(pattern: &str) -> bool {
    let mut groups = 0_u32;
    let mut rest = pattern.chars();
    let mut subject = false;
    while let Some(c) = rest.next() {
        let follows = match c {
            '\\' => rest.next().is_some(),
            '[' => skip_class(&mut rest),
            '(' => {
                groups += 1;
                subject = false;
                if let Some(special) = rest.as_str().strip_prefix('?') {
                    rest = special.chars();
                }
                continue;
            }
            ')' if groups == 0 => false,
            ')' => {
                groups -= 1;
                true
            }
            '{' => subject && skip_count(&mut rest),
            '*' | '+' | '?' => subject,
            '|' | '^' => {
                subject = false;
                continue;
            }
            _ => true,
        };
        if !follows {
            return false;
        }
        subject = true;
    }
    groups == 0
}

/// Skips to the end of a class; a bracket right at its beginning belongs to it.
fn skip_class(rest: &mut std::str::Chars<'_>) -> bool {
    let mut first = true;
    while let Some(c) = rest.next() {
        match c {
            '\\' => {
                rest.next();
            }
            '^' if first => continue,
            ']' if !first => return true,
            '[' if !skip_class(rest) => return false,
            _ => {}
        }
        first = false;
    }
    false
}

/// Skips `{3}`, `{3,}` or `{3,5}`.
fn skip_count(rest: &mut std::str::Chars<'_>) -> bool {
    let Some((count, after)) = rest.as_str().split_once('}') else {
        return false;
    };
    let number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let (least, most) = count.split_once(',').unwrap_or((count, ""));
    *rest = after.chars();
    number(least) && (most.is_empty() || number(most))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_that_no_one_can_compile_are_told_apart() {
        for good in [
            "a.*", "(?<n>a)", "[a-]b", "[]a]", "a{1,2}", r"\(", "", "a|b", "[^]]", "^a$",
        ] {
            assert!(plausible_pattern(good), "{good}");
        }
        for bad in ["[", "a(", "a)", "*a", r"a\", "a{1", "(*)", "a{x}"] {
            assert!(!plausible_pattern(bad), "{bad}");
        }
    }
}
