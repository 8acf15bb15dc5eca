//! What is known of an option before anyone sets it, and the macro by which each is declared once.
//!
//! A row of [`config_keys!`] becomes the typed field, its parser, its line in DescribeConfigs, the
//! check of an alteration and its line in the documentation.

use super::error::ConfigError;
use super::value::{self, Value};

/// One option, as it stands in the table of its scope.
#[derive(Debug)]
pub(crate) struct Key {
    pub(crate) name: &'static str,
    pub(crate) kind: ConfigType,
    pub(crate) default: Default,
    pub(crate) valid: Valid,
    pub(crate) scope: Scope,
    pub(crate) mode: Mode,
    pub(crate) flags: &'static [Flag],
    /// The broker options that supply the value while this one is unset, by precedence.
    pub(crate) synonyms: &'static [Synonym],
    pub(crate) doc: &'static str,
}

impl Key {
    /// A value that must not be shown.
    pub(crate) fn sensitive(&self) -> bool {
        self.kind == ConfigType::Password
    }

    /// Left out of descriptions until it is set.
    pub(crate) fn internal(&self) -> bool {
        self.flags.contains(&Flag::Internal)
    }

    /// Whether setting the option changes anything here; the others are accepted and shown.
    pub(crate) fn has_effect(&self) -> bool {
        !self.flags.contains(&Flag::Inert)
    }

    /// May be altered while the broker runs.
    pub(crate) fn dynamic(&self) -> bool {
        self.mode != Mode::ReadOnly
    }

    /// The text of the default, where there is one.
    pub(crate) fn default_text(&self) -> Option<&'static str> {
        match self.default {
            Default::Text(text) => Some(text),
            Default::Required | Default::Null => None,
        }
    }

    /// Reads and checks a text given for this option.
    pub(crate) fn read(&self, text: &str) -> Result<Value, ConfigError> {
        self.read_as(self.name, text)
    }

    /// The same for an option given under another name, such as one with a listener's prefix.
    pub(crate) fn read_as(&self, name: &str, text: &str) -> Result<Value, ConfigError> {
        let value = value::parse(self.kind, name, text)?;
        self.valid.check(name, &value)?;
        Ok(value)
    }
}

/// The option of that name in a table.
pub(crate) fn find<'a>(table: &'a [Key], name: &str) -> Option<&'a Key> {
    table.iter().find(|key| key.name == name)
}

/// The types of Kafka's `ConfigDef`; the numbers are those of DescribeConfigs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(i8)]
pub(crate) enum ConfigType {
    Unknown = 0,
    Boolean = 1,
    String = 2,
    Int = 3,
    Short = 4,
    Long = 5,
    Double = 6,
    List = 7,
    Class = 8,
    Password = 9,
}

impl ConfigType {
    /// The number on the wire.
    pub(crate) fn id(self) -> i8 {
        self as i8
    }

    /// Kafka's name, as its error texts print it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Unknown => "UNKNOWN",
            Self::Boolean => "BOOLEAN",
            Self::String => "STRING",
            Self::Int => "INT",
            Self::Short => "SHORT",
            Self::Long => "LONG",
            Self::Double => "DOUBLE",
            Self::List => "LIST",
            Self::Class => "CLASS",
            Self::Password => "PASSWORD",
        }
    }
}

/// What an option configures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scope {
    Broker,
    /// A broker's, but only ever set while it runs.
    BrokerDynamicOnly,
    Topic,
    Group,
    ClientMetrics,
    /// A quota of a user, a client id, or both.
    ClientQuota,
    /// A quota of an address.
    IpQuota,
}

/// When and for whom an option may change (KIP-226).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Only in the file a broker starts with.
    ReadOnly,
    /// While running, for a named broker.
    PerBroker,
    /// While running, for a named broker or for all.
    ClusterWide,
    /// Options of topics, groups and the like: always.
    Dynamic,
}

/// What holds while nobody has set the option.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Default {
    Required,
    Null,
    Text(&'static str),
}

/// Rare properties of an option.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Flag {
    /// Not part of the public interface; hidden until set.
    Internal,
    /// Accepted and shown, and nothing here depends on it.
    Inert,
}

/// A broker option that supplies a topic's or group's value, with the unit it is counted in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Synonym {
    pub(crate) name: &'static str,
    pub(crate) factor: i64,
}

/// Which values an option takes beyond being of its type.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Valid {
    Any,
    AtLeast(i64),
    Between(i64, i64),
    /// A range of fractions; Kafka prints a whole bound without a point.
    BetweenReal(f64, f64),
    /// A range, or one value outside of it.
    BetweenOr(i64, i64, i64),
    /// One of these words; for a list, each of its items.
    OneOf(&'static [&'static str]),
    OneOfAnyCase(&'static [&'static str]),
    NonEmptyText,
    NonNullText,
    NonEmptyList,
    /// `partition:broker` pairs, or `*`.
    ThrottledReplicas,
    /// `latest`, `earliest` or `by_duration:` with an ISO 8601 duration.
    OffsetReset,
    /// `key=pattern` pairs over the properties of a client.
    ClientMatch,
    Positive,
}

/// Declares the options of one scope: a typed struct and the table that describes it.
///
/// A row is a doc sentence, the name, the field and its type, the default (a text, `Null` or
/// `Required`), the valid values, the mode, the broker's synonyms, and flags.
macro_rules! config_keys {
    (
        $(#[$meta:meta])*
        $name:ident in $scope:ident, table $table:ident
        $(, with { $( $(#[doc = $extra_doc:literal])+ $extra:ident : $extra_type:ty ),* $(,)? })? ;
        $(
            $(#[doc = $doc:literal])+
            $key:literal $field:ident : $type:ty = $default:tt, $valid:expr, $mode:ident
            $(from [ $( $synonym:literal $(* $factor:literal)? ),+ ])?
            $(, $flag:ident)* ;
        )+
    ) => {
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq)]
        pub(crate) struct $name {
            $( $(#[doc = $doc])+ pub(crate) $field: $type, )+
            $($( $(#[doc = $extra_doc])+ pub(crate) $extra: $extra_type, )*)?
        }

        #[doc = concat!("The options of [`", stringify!($name), "`], one row each.")]
        pub(crate) static $table: &[$crate::config::key::Key] = {
            #[allow(unused_imports, reason = "not every table has every kind of row")]
            use $crate::config::key::{Flag, Key, Mode, Scope, Synonym, Valid::*};
            &[ $( Key {
                name: $key,
                kind: <$type as $crate::config::value::Field>::TYPE,
                default: $crate::config::key::default_of!($default),
                valid: $valid,
                scope: Scope::$scope,
                mode: Mode::$mode,
                flags: &[$(Flag::$flag),*],
                synonyms: &[$($( Synonym { name: $synonym, factor: 1 $(* $factor)? } ),+)?],
                doc: concat!($($doc),+).trim_ascii(),
            } ),+ ]
        };

        impl $name {
            /// Reads every option from the text that `given` finds for its name, or its default.
            pub(crate) fn read<'a>(
                given: &dyn Fn(&str) -> Option<std::borrow::Cow<'a, str>>,
            ) -> Result<Self, $crate::config::error::ConfigError> {
                let mut rows = $table.iter();
                Ok(Self {
                    $( $field: $crate::config::value::field(&mut rows, given)?, )+
                    $($( $extra: std::default::Default::default(), )*)?
                })
            }

            /// The value of the option of that name, printed; nothing for a null or unknown one.
            pub(crate) fn print(&self, name: &str) -> Option<String> {
                match name {
                    $( $key => $crate::config::value::Field::print(&self.$field), )+
                    _ => None,
                }
            }
        }
    };
}
pub(super) use config_keys;

/// The default written in a row.
macro_rules! default_of {
    (Null) => {
        $crate::config::key::Default::Null
    };
    (Required) => {
        $crate::config::key::Default::Required
    };
    ($text:literal) => {
        $crate::config::key::Default::Text($text)
    };
}
pub(super) use default_of;
