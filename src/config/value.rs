//! Texts to values and back, as Kafka's `ConfigDef` reads, checks and prints them.

use std::borrow::Cow;
use std::fmt;

use super::error::ConfigError;
use super::key::{ConfigType, Default, Key, Valid};

/// A value that has been read; the narrower types of a row are checked while reading.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Value {
    Boolean(bool),
    Whole(i64),
    Real(f64),
    Text(String),
    List(Vec<String>),
}

impl Value {
    /// The form DescribeConfigs shows.
    pub(crate) fn print(&self) -> String {
        match self {
            Self::List(items) => items.join(","),
            Self::Boolean(_) | Self::Whole(_) | Self::Real(_) | Self::Text(_) => self.to_string(),
        }
    }
}

/// The form Kafka's error texts show, which differs for lists.
impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Boolean(value) => write!(f, "{value}"),
            Self::Whole(value) => write!(f, "{value}"),
            Self::Real(value) => f.write_str(&print_real(*value)),
            Self::Text(value) => f.write_str(value),
            Self::List(items) => write!(f, "[{}]", items.join(", ")),
        }
    }
}

/// Reads a text as a value of that type; the refusals are those of `ConfigDef.parseType`.
pub(crate) fn parse(kind: ConfigType, name: &str, text: &str) -> Result<Value, ConfigError> {
    let trimmed = trim(text);
    let not_a_number = || {
        ConfigError::value(
            name,
            text,
            format_args!("Not a number of type {}", kind.name()),
        )
    };
    match kind {
        ConfigType::Boolean if trimmed.eq_ignore_ascii_case("true") => Ok(Value::Boolean(true)),
        ConfigType::Boolean if trimmed.eq_ignore_ascii_case("false") => Ok(Value::Boolean(false)),
        ConfigType::Boolean => Err(ConfigError::value(
            name,
            text,
            "Expected value to be either true or false",
        )),
        ConfigType::Short => trimmed
            .parse()
            .map(|n: i16| Value::Whole(n.into()))
            .map_err(|_| not_a_number()),
        ConfigType::Int => trimmed
            .parse()
            .map(|n: i32| Value::Whole(n.into()))
            .map_err(|_| not_a_number()),
        ConfigType::Long => trimmed
            .parse()
            .map(Value::Whole)
            .map_err(|_| not_a_number()),
        ConfigType::Double => parse_real(trimmed)
            .map(Value::Real)
            .ok_or_else(not_a_number),
        ConfigType::List => Ok(Value::List(parse_list(trimmed))),
        // What we cannot load must not be taken for loaded: a policy would silently not hold.
        ConfigType::Class if !trimmed.starts_with("org.apache.kafka.") => Err(ConfigError::value(
            name,
            text,
            format_args!("Class {trimmed} could not be found."),
        )),
        ConfigType::String | ConfigType::Class | ConfigType::Password | ConfigType::Unknown => {
            Ok(Value::Text(trimmed.to_owned()))
        }
    }
}

/// Splits at commas and drops the blanks around them; empty items stay, as in Kafka.
pub(crate) fn parse_list(text: &str) -> Vec<String> {
    let text = trim(text);
    if text.is_empty() {
        return Vec::new();
    }
    text.split(',').map(|item| trim(item).to_owned()).collect()
}

/// Java's `String.trim`: everything up to the blank goes.
pub(crate) fn trim(text: &str) -> &str {
    text.trim_matches(|c| c <= ' ')
}

fn parse_real(text: &str) -> Option<f64> {
    let unsigned = text.trim_start_matches(['+', '-']);
    let spelled = unsigned == "NaN" || unsigned == "Infinity";
    let digits = text.strip_suffix(['d', 'D', 'f', 'F']).unwrap_or(text);
    let plain = |c: char| c.is_ascii_digit() || matches!(c, '.' | 'e' | 'E' | '+' | '-');
    match spelled {
        true => text.parse().ok(),
        false if digits.chars().all(plain) => digits.parse().ok(),
        false => None,
    }
}

/// Prints a fraction as Java's `Double.toString` does.
pub(crate) fn print_real(value: f64) -> String {
    if value.is_nan() {
        return "NaN".to_owned();
    }
    if value.is_infinite() {
        return if value > 0.0 { "Infinity" } else { "-Infinity" }.to_owned();
    }
    let size = value.abs();
    if size == 0.0 || (1e-3..1e7).contains(&size) {
        return format!("{value:?}");
    }
    let text = format!("{value:E}");
    match text.split_once('E') {
        Some((digits, power)) if !digits.contains('.') => format!("{digits}.0E{power}"),
        _ => text,
    }
}

impl Valid {
    /// Refuses a value outside of what the row allows, in the words of Kafka's validators.
    pub(crate) fn check(&self, name: &str, value: &Value) -> Result<(), ConfigError> {
        let refuse = |why: fmt::Arguments<'_>| Err(ConfigError::value(name, value, why));
        match (self, value) {
            (Self::AtLeast(least), Value::Whole(n)) if n < least => {
                refuse(format_args!("Value must be at least {least}"))
            }
            (Self::Between(least, _), Value::Whole(n)) if n < least => {
                refuse(format_args!("Value must be at least {least}"))
            }
            (Self::Between(_, most), Value::Whole(n)) if n > most => {
                refuse(format_args!("Value must be no more than {most}"))
            }
            (Self::BetweenReal(least, _), Value::Real(n)) if n < least => {
                refuse(format_args!("Value must be at least {least}"))
            }
            (Self::BetweenReal(_, most), Value::Real(n)) if n > most => {
                refuse(format_args!("Value must be no more than {most}"))
            }
            (Self::BetweenOr(least, most, also), Value::Whole(n))
                if !(least..=most).contains(&n) && n != also =>
            {
                refuse(format_args!(
                    "Value must be between {least} and {most} or equal to {also}"
                ))
            }
            (Self::OneOf(words), Value::Text(text)) => one_of(words, name, text),
            (Self::OneOf(words), Value::List(items)) => {
                items.iter().try_for_each(|item| one_of(words, name, item))
            }
            (Self::OneOfAnyCase(words), Value::Text(text))
                if !words.iter().any(|word| word.eq_ignore_ascii_case(text)) =>
            {
                refuse(format_args!(
                    "String must be one of (case insensitive): {}",
                    words.join(", ")
                ))
            }
            (Self::NonEmptyText, Value::Text(text)) if text.is_empty() => {
                refuse(format_args!("String must be non-empty"))
            }
            (Self::ThrottledReplicas, Value::List(items)) if !throttled_replicas(items) => {
                refuse(format_args!(
                    "{name} must be the literal '*' or a list of replicas in the following format: \
                     [partitionId]:[brokerId],[partitionId]:[brokerId],..."
                ))
            }
            (Self::OffsetReset, Value::Text(text)) if !offset_reset(text) => refuse(format_args!(
                "Invalid value `{text}` for configuration {name}. The value must be either \
                 'earliest', 'latest' or of the format 'by_duration:<PnDTnHnMn.nS>'."
            )),
            _ => Ok(()),
        }
    }

    /// The form of Kafka's own documentation; a dash where everything goes.
    pub(crate) fn describe(&self) -> String {
        match self {
            Self::Any => "-".to_owned(),
            Self::AtLeast(least) => format!("[{least},...]"),
            Self::Between(least, most) => format!("[{least},...,{most}]"),
            Self::BetweenReal(least, most) => format!("[{least},...,{most}]"),
            Self::BetweenOr(least, most, also) => format!("[{least},...,{most}] or {also}"),
            Self::OneOf(words) => format!("[{}]", words.join(", ")),
            Self::OneOfAnyCase(words) => format!("(case insensitive) [{}]", words.join(", ")),
            Self::NonEmptyText => "non-empty string".to_owned(),
            Self::NonNullText => "non-null string".to_owned(),
            Self::NonEmptyList => "non-empty list".to_owned(),
            Self::ThrottledReplicas => {
                "[partitionId]:[brokerId],[partitionId]:[brokerId],...".to_owned()
            }
            Self::OffsetReset => "[latest, earliest, by_duration:PnDTnHnMn.nS]".to_owned(),
            Self::ClientMatch => {
                format!(
                    "key=regex of {}",
                    super::client_metrics::MATCH_KEYS.join(", ")
                )
            }
            Self::Positive => "> 0".to_owned(),
        }
    }
}

fn one_of(words: &[&str], name: &str, text: &str) -> Result<(), ConfigError> {
    if words.contains(&text) {
        return Ok(());
    }
    let why = format_args!("String must be one of: {}", words.join(", ")).to_string();
    Err(ConfigError::value(name, text, why))
}

fn throttled_replicas(items: &[String]) -> bool {
    let number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let pair = |item: &String| {
        item.split_once(':')
            .is_some_and(|(partition, broker)| number(partition) && number(broker))
    };
    matches!(items, [one] if one == "*") || items.iter().all(pair)
}

fn offset_reset(text: &str) -> bool {
    match text.strip_prefix("by_duration:") {
        Some(duration) => parse_duration_ms(duration).is_some_and(|ms| ms >= 0),
        None => text == "latest" || text == "earliest",
    }
}

/// Milliseconds of an ISO 8601 duration in days, hours, minutes and seconds (`P1DT2H3M4.5S`), the
/// forms that `java.time.Duration` reads.
pub(crate) fn parse_duration_ms(text: &str) -> Option<i64> {
    let (sign, text) = match text.strip_prefix('-') {
        Some(rest) => (-1, rest),
        None => (1, text.strip_prefix('+').unwrap_or(text)),
    };
    let text = text.to_ascii_uppercase();
    let text = text.strip_prefix('P')?;
    let (date, time) = match text.split_once('T') {
        Some((_, "")) => return None,
        Some((date, time)) => (date, time),
        None => (text, ""),
    };
    if date.is_empty() && time.is_empty() {
        return None;
    }
    let days = duration_part(date, &[('D', 86_400_000)])?;
    let rest = duration_part(time, &[('H', 3_600_000), ('M', 60_000), ('S', 1000)])?;
    days.checked_add(rest)?.checked_mul(sign)
}

/// Adds up numbers that are each followed by a unit, the units in order and each at most once.
fn duration_part(mut text: &str, mut units: &[(char, i64)]) -> Option<i64> {
    let mut total: i64 = 0;
    while !text.is_empty() {
        let end = text.find(|c: char| c.is_ascii_alphabetic())?;
        let (number, tail) = text.split_at(end);
        let unit = tail.chars().next()?;
        let place = units.iter().position(|(name, _)| *name == unit)?;
        let scale = units.get(place)?.1;
        let part = match number.split_once('.') {
            Some((whole, fraction)) if unit == 'S' => seconds_ms(whole, fraction)?,
            Some(_) => return None,
            None => number.parse::<i64>().ok()?.checked_mul(scale)?,
        };
        total = total.checked_add(part)?;
        text = tail.get(1..)?;
        units = units.get(place + 1..)?;
    }
    Some(total)
}

fn seconds_ms(whole: &str, fraction: &str) -> Option<i64> {
    if fraction.len() > 9 || !fraction.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let thousandths: i64 = format!("{fraction:0<3}").get(..3)?.parse().ok()?;
    let seconds: i64 = whole.parse().ok()?;
    let thousandths = if whole.starts_with('-') {
        -thousandths
    } else {
        thousandths
    };
    seconds.checked_mul(1000)?.checked_add(thousandths)
}

/// A type that a row's field can have.
pub(crate) trait Field: Sized {
    /// The type that DescribeConfigs names.
    const TYPE: ConfigType;

    /// Takes a value that was read as [`Self::TYPE`].
    fn take(value: Value) -> Self;

    /// What stands while there is no value.
    fn absent(key: &Key) -> Result<Self, ConfigError> {
        Err(ConfigError::config(format!(
            "Missing required configuration \"{}\" which has no default value.",
            key.name
        )))
    }

    /// The printed value; nothing for a null.
    fn print(&self) -> Option<String>;
}

/// Reads the next row's field.
pub(crate) fn field<'a, T: Field>(
    rows: &mut std::slice::Iter<'_, Key>,
    given: &dyn Fn(&str) -> Option<Cow<'a, str>>,
) -> Result<T, ConfigError> {
    let key = rows.next().expect("the table has a row for every field");
    let text = match (given(key.name), key.default) {
        (Some(text), _) => text,
        (None, Default::Text(text)) => Cow::Borrowed(text),
        (None, Default::Required | Default::Null) => return T::absent(key),
    };
    key.read(&text).map(T::take)
}

impl<T: Field> Field for Option<T> {
    const TYPE: ConfigType = T::TYPE;

    fn take(value: Value) -> Self {
        Some(T::take(value))
    }

    fn absent(_: &Key) -> Result<Self, ConfigError> {
        Ok(None)
    }

    fn print(&self) -> Option<String> {
        self.as_ref().and_then(Field::print)
    }
}

impl Field for bool {
    const TYPE: ConfigType = ConfigType::Boolean;

    fn take(value: Value) -> Self {
        let Value::Boolean(value) = value else {
            unreachable!("a BOOLEAN is read as a boolean")
        };
        value
    }

    fn print(&self) -> Option<String> {
        Some(self.to_string())
    }
}

macro_rules! whole {
    ($($type:ty = $kind:ident),+) => { $(
        impl Field for $type {
            const TYPE: ConfigType = ConfigType::$kind;

            fn take(value: Value) -> Self {
                let Value::Whole(value) = value else { unreachable!("numbers are read whole") };
                Self::try_from(value).expect("the range is checked while reading")
            }

            fn print(&self) -> Option<String> {
                Some(self.to_string())
            }
        }
    )+ };
}
whole!(i16 = Short, i32 = Int, i64 = Long);

impl Field for f64 {
    const TYPE: ConfigType = ConfigType::Double;

    fn take(value: Value) -> Self {
        let Value::Real(value) = value else {
            unreachable!("a DOUBLE is read as a fraction")
        };
        value
    }

    fn print(&self) -> Option<String> {
        Some(print_real(*self))
    }
}

impl Field for String {
    const TYPE: ConfigType = ConfigType::String;

    fn take(value: Value) -> Self {
        let Value::Text(value) = value else {
            unreachable!("a STRING is read as a text")
        };
        value
    }

    fn print(&self) -> Option<String> {
        Some(self.clone())
    }
}

impl Field for Vec<String> {
    const TYPE: ConfigType = ConfigType::List;

    fn take(value: Value) -> Self {
        let Value::List(value) = value else {
            unreachable!("a LIST is read as a list")
        };
        value
    }

    fn print(&self) -> Option<String> {
        Some(self.join(","))
    }
}

/// The name of a Java class, which here can only be compared with names we know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Class(pub(crate) String);

impl Field for Class {
    const TYPE: ConfigType = ConfigType::Class;

    fn take(value: Value) -> Self {
        Self(String::take(value))
    }

    fn print(&self) -> Option<String> {
        Some(self.0.clone())
    }
}

/// A secret: it does not show itself in logs.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Password(String);

impl Password {
    /// The secret itself, for the one who must use it.
    pub(crate) fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Password {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[hidden]")
    }
}

impl Field for Password {
    const TYPE: ConfigType = ConfigType::Password;

    fn take(value: Value) -> Self {
        Self(String::take(value))
    }

    fn print(&self) -> Option<String> {
        Some("[hidden]".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::ErrorKind;

    fn refusal(kind: ConfigType, valid: Valid, text: &str) -> String {
        let error = parse(kind, "k", text)
            .and_then(|value| valid.check("k", &value))
            .unwrap_err();
        assert_eq!(error.kind, ErrorKind::InvalidConfig);
        error.message
    }

    #[test]
    fn numbers_are_trimmed_and_bounded_by_their_type() {
        assert_eq!(
            parse(ConfigType::Int, "k", " 1048576 "),
            Ok(Value::Whole(1_048_576))
        );
        assert_eq!(parse(ConfigType::Int, "k", "+5"), Ok(Value::Whole(5)));
        let text = refusal(ConfigType::Int, Valid::Any, "99999999999");
        assert_eq!(
            text,
            "Invalid value 99999999999 for configuration k: Not a number of type INT"
        );
        let text = refusal(ConfigType::Short, Valid::Any, "");
        assert_eq!(
            text,
            "Invalid value  for configuration k: Not a number of type SHORT"
        );
    }

    #[test]
    fn booleans_ignore_case_and_nothing_else() {
        assert_eq!(
            parse(ConfigType::Boolean, "k", "TRUE"),
            Ok(Value::Boolean(true))
        );
        let text = refusal(ConfigType::Boolean, Valid::Any, "yes");
        assert_eq!(
            text,
            "Invalid value yes for configuration k: Expected value to be either true or false"
        );
    }

    #[test]
    fn lists_keep_empty_items_but_an_empty_text_has_none() {
        assert_eq!(parse_list(" a , b,"), ["a", "b", ""]);
        assert!(parse_list("  ").is_empty());
    }

    #[test]
    fn fractions_print_as_java_prints_them() {
        for (value, text) in [
            (f64::MAX, "1.7976931348623157E308"),
            (0.5, "0.5"),
            (1.0, "1.0"),
            (0.0, "0.0"),
            (2_147_483_647.0, "2.147483647E9"),
            (1e10, "1.0E10"),
            (0.0001, "1.0E-4"),
            (9_999_999.0, "9999999.0"),
        ] {
            assert_eq!(print_real(value), text);
        }
    }

    #[test]
    fn fractions_are_read_in_javas_spellings() {
        assert_eq!(parse_real("1.5d"), Some(1.5));
        assert_eq!(parse_real("-Infinity"), Some(f64::NEG_INFINITY));
        assert_eq!(parse_real("inf"), None);
        assert_eq!(parse_real("x"), None);
    }

    #[test]
    fn bounds_are_named_in_the_refusal() {
        let real = ConfigType::Double;
        let share = Valid::BetweenReal(0.0, 1.0);
        assert_eq!(
            refusal(real, share, "1.5"),
            "Invalid value 1.5 for configuration k: Value must be no more than 1"
        );
        assert_eq!(
            refusal(real, share, "-1"),
            "Invalid value -1.0 for configuration k: Value must be at least 0"
        );
        assert_eq!(
            refusal(ConfigType::Int, Valid::BetweenOr(1, 9, -1), "0"),
            "Invalid value 0 for configuration k: Value must be between 1 and 9 or equal to -1"
        );
        assert_eq!(
            refusal(ConfigType::Int, Valid::AtLeast(1_048_576), "1000"),
            "Invalid value 1000 for configuration k: Value must be at least 1048576"
        );
    }

    #[test]
    fn a_list_is_refused_for_its_first_bad_item() {
        assert_eq!(
            refusal(
                ConfigType::List,
                Valid::OneOf(&["compact", "delete"]),
                "compact,bogus"
            ),
            "Invalid value bogus for configuration k: String must be one of: compact, delete"
        );
    }

    #[test]
    fn throttled_replicas_are_pairs_or_one_star() {
        let check = |text| {
            Valid::ThrottledReplicas.check("k", &parse(ConfigType::List, "k", text).unwrap())
        };
        assert_eq!(check("*"), Ok(()));
        assert_eq!(check("1:2, 3:4"), Ok(()));
        assert_eq!(check(""), Ok(()));
        assert!(
            check("*,1:2")
                .unwrap_err()
                .message
                .starts_with("Invalid value [*, 1:2] for")
        );
        assert!(check("abc").is_err());
    }

    #[test]
    fn an_offset_reset_may_reach_back_by_a_duration() {
        for good in [
            "latest",
            "earliest",
            "by_duration:P1D",
            "by_duration:PT1H30M",
            "by_duration:PT0.5S",
        ] {
            assert!(offset_reset(good), "{good}");
        }
        for bad in [
            "",
            "EARLIEST",
            "by_duration:x",
            "by_duration:-P1D",
            "by_duration:P",
            "by_duration:P1DT",
        ] {
            assert!(!offset_reset(bad), "{bad}");
        }
        assert_eq!(parse_duration_ms("P1DT2H3M4.5S"), Some(93_784_500));
    }
}
