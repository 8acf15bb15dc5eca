//! Where options come from: `server.properties` in the format of `java.util.Properties`, the
//! `KAFKA_*` variables of the official image, its default node, and texts kept elsewhere.

use std::fmt::Write;

use super::Values;
use super::value::parse_list;

/// Reads the text of a properties file. A key that is given twice is listed twice.
pub(crate) fn parse(text: &str) -> Vec<(String, String)> {
    logical_lines(text).iter().map(|line| split(line)).collect()
}

/// Prints properties so that [`parse`] and Java read the same back.
pub(crate) fn print(properties: &[(String, String)]) -> String {
    let mut text = String::new();
    for (key, value) in properties {
        let _ = writeln!(text, "{}={}", escape(key, true), escape(value, false));
    }
    text
}

/// The properties by name; the last one wins.
pub(crate) fn last_wins(properties: &[(String, String)]) -> Values {
    properties.iter().cloned().collect()
}

/// Where the text of a `${...}` is found (KIP-297, KIP-421, KIP-887).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Provider {
    /// A variable of the environment.
    Environment,
    /// A property in a file.
    File,
    /// A file in a directory.
    Directory,
}

/// The providers that `config.providers` names, each with its kind; those of unknown classes are
/// left out, and what is asked of them stays as it is.
pub(crate) fn providers(given: &Values) -> Vec<(String, Provider)> {
    let names = parse_list(given.get("config.providers").map_or("", String::as_str));
    let kind = |name: String| {
        let class = given.get(&format!("config.providers.{name}.class"))?;
        let provider = match class.trim().rsplit('.').next()? {
            "EnvVarConfigProvider" => Provider::Environment,
            "FileConfigProvider" => Provider::File,
            "DirectoryConfigProvider" => Provider::Directory,
            _ => return None,
        };
        Some((name, provider))
    };
    names.into_iter().filter_map(kind).collect()
}

/// Replaces every `${provider:path:key}` and `${provider:key}` by what `look_up` finds for the
/// provider, the path and the key; what it does not find stays.
pub(crate) fn resolve(text: &str, look_up: &dyn Fn(&str, &str, &str) -> Option<String>) -> String {
    let mut resolved = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${") {
        resolved.push_str(before);
        let found = after.split_once('}').and_then(|(inside, tail)| {
            let (provider, place) = inside.split_once(':')?;
            let (path, key) = place.split_once(':').unwrap_or(("", place));
            Some((look_up(provider, path, key)?, tail))
        });
        match found {
            Some((value, tail)) => {
                resolved.push_str(&value);
                rest = tail;
            }
            None => {
                resolved.push_str("${");
                rest = after;
            }
        }
    }
    resolved.push_str(rest);
    resolved
}

/// Joins lines that end in an odd number of backslashes; drops comments and blank lines.
fn logical_lines(text: &str) -> Vec<String> {
    let mut lines = Vec::new();
    let mut open: Option<String> = None;
    for line in text.split(['\n', '\r']) {
        let line = line.trim_start_matches(BLANKS);
        if open.is_none() && (line.is_empty() || line.starts_with(['#', '!'])) {
            continue;
        }
        let mut whole = open.take().unwrap_or_default();
        match continued(line) {
            Some(part) => {
                whole.push_str(part);
                open = Some(whole);
            }
            None => {
                whole.push_str(line);
                lines.push(whole);
            }
        }
    }
    lines.extend(open);
    lines
}

/// The line without its last backslash, if that one continues it.
fn continued(line: &str) -> Option<&str> {
    let backslashes = line.bytes().rev().take_while(|byte| *byte == b'\\').count();
    (backslashes % 2 == 1).then(|| &line[..line.len() - 1])
}

/// Splits at the first separator: `=`, `:` or blanks, which may stand around either.
fn split(line: &str) -> (String, String) {
    let mut escaped = false;
    let mut end = line.len();
    for (at, c) in line.char_indices() {
        if !escaped && (c == '=' || c == ':' || BLANKS.contains(&c)) {
            end = at;
            break;
        }
        escaped = c == '\\' && !escaped;
    }
    let (key, rest) = line.split_at(end);
    let rest = rest.trim_start_matches(BLANKS);
    let rest = rest
        .strip_prefix(['=', ':'])
        .unwrap_or(rest)
        .trim_start_matches(BLANKS);
    (unescape(key), unescape(rest))
}

fn unescape(text: &str) -> String {
    // A character beyond the first plane is written as two escapes, so all goes through UTF-16.
    let mut units: Vec<u16> = Vec::with_capacity(text.len());
    let mut rest = text.chars();
    while let Some(c) = rest.next() {
        if c != '\\' {
            units.extend(c.encode_utf16(&mut [0; 2]).iter());
            continue;
        }
        let Some(escaped) = rest.next() else { break };
        let code = rest
            .as_str()
            .get(..4)
            .and_then(|digits| u16::from_str_radix(digits, 16).ok());
        match (escaped, code) {
            ('u', Some(unit)) => {
                units.push(unit);
                rest.nth(3);
            }
            ('t', _) => units.push(u16::from(b'\t')),
            ('n', _) => units.push(u16::from(b'\n')),
            ('r', _) => units.push(u16::from(b'\r')),
            ('f', _) => units.push(0xc),
            (plain, _) => units.extend(plain.encode_utf16(&mut [0; 2]).iter()),
        }
    }
    String::from_utf16_lossy(&units)
}

fn escape(text: &str, key: bool) -> String {
    let mut escaped = String::with_capacity(text.len());
    for (at, c) in text.char_indices() {
        match c {
            '\t' => escaped.push_str("\\t"),
            '\n' => escaped.push_str("\\n"),
            '\r' => escaped.push_str("\\r"),
            '\u{c}' => escaped.push_str("\\f"),
            ' ' if key || at == 0 => escaped.push_str("\\ "),
            '=' | ':' | '#' | '!' if key => {
                escaped.push('\\');
                escaped.push(c);
            }
            '\\' => escaped.push_str("\\\\"),
            plain => escaped.push(plain),
        }
    }
    escaped
}

const BLANKS: [char; 3] = [' ', '\t', '\u{c}'];

/// Variables of the official image that begin with `KAFKA_` and are no options.
const NOT_OPTIONS: [&str; 11] = [
    "KAFKA_VERSION",
    "KAFKA_HEAP_OPTS",
    "KAFKA_LOG4J_OPTS",
    "KAFKA_OPTS",
    "KAFKA_JMX_OPTS",
    "KAFKA_JVM_PERFORMANCE_OPTS",
    "KAFKA_GC_LOG_OPTS",
    "KAFKA_LOG4J_ROOT_LOGLEVEL",
    "KAFKA_LOG4J_LOGGERS",
    "KAFKA_TOOLS_LOG4J_LOGLEVEL",
    "KAFKA_JMX_HOSTNAME",
];

/// The option that an environment variable sets: `KAFKA_LISTENER_NAME_EXT___1_SSL_KEY` becomes
/// `listener.name.ext-1.ssl.key`. One `_` is a dot, two are `_`, three are `-` (the rule of
/// `kafka.docker.KafkaDockerWrapper`).
pub(crate) fn option_of_variable(name: &str) -> Option<String> {
    let rest = name.strip_prefix("KAFKA_")?;
    if NOT_OPTIONS.contains(&name) {
        return None;
    }
    Some(
        rest.to_lowercase()
            .replace('_', ".")
            .replace("...", "-")
            .replace("..", "_"),
    )
}

/// The options that a list of environment variables sets.
pub(crate) fn from_environment(
    variables: impl IntoIterator<Item = (String, String)>,
) -> Vec<(String, String)> {
    let option = |(name, value): (String, String)| Some((option_of_variable(&name)?, value));
    variables.into_iter().filter_map(option).collect()
}

/// The values of the official image's default file, which make one node that serves alone, but
/// reachable from this machine only, with its data in the working directory. The controller needs
/// no address here: nobody else is to reach it.
pub(crate) fn single_node_defaults() -> Vec<(String, String)> {
    let pair = |(key, value): &(&str, &str)| ((*key).to_owned(), (*value).to_owned());
    SINGLE_NODE.iter().map(pair).collect()
}

/// Puts [`single_node_defaults`] under what is given. Addresses hang together: whoever gives one
/// of them gets none of ours.
pub(crate) fn over_single_node_defaults(given: &[(String, String)]) -> Vec<(String, String)> {
    let names = |name: &str| given.iter().any(|(given, _)| given == name);
    let own_addresses = ADDRESSES.iter().any(|name| names(name));
    let own_id = names("broker.id");
    let mut all = single_node_defaults();
    all.retain(|(name, _)| !(own_addresses && ADDRESSES.contains(&name.as_str())));
    all.retain(|(name, _)| !(own_id && name == "node.id"));
    all.extend_from_slice(given);
    all
}

const SINGLE_NODE: &[(&str, &str)] = &[
    ("process.roles", "broker,controller"),
    ("node.id", "1"),
    ("listeners", "PLAINTEXT://localhost:9092"),
    ("inter.broker.listener.name", "PLAINTEXT"),
    ("num.network.threads", "3"),
    ("num.io.threads", "8"),
    ("socket.send.buffer.bytes", "102400"),
    ("socket.receive.buffer.bytes", "102400"),
    ("socket.request.max.bytes", "104857600"),
    ("log.dirs", "barnabas-data"),
    ("num.partitions", "1"),
    ("num.recovery.threads.per.data.dir", "1"),
    ("offsets.topic.replication.factor", "1"),
    ("transaction.state.log.replication.factor", "1"),
    ("transaction.state.log.min.isr", "1"),
    ("share.coordinator.state.topic.replication.factor", "1"),
    ("share.coordinator.state.topic.min.isr", "1"),
    ("log.retention.hours", "168"),
    ("log.segment.bytes", "1073741824"),
    ("log.retention.check.interval.ms", "300000"),
];

const ADDRESSES: &[&str] = &[
    "listeners",
    "advertised.listeners",
    "inter.broker.listener.name",
    "security.inter.broker.protocol",
    "listener.security.protocol.map",
    "controller.listener.names",
    "process.roles",
];

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(text: &str) -> Vec<(String, String)> {
        parse(text)
    }

    fn pair(key: &str, value: &str) -> (String, String) {
        (key.to_owned(), value.to_owned())
    }

    #[test]
    fn separators_are_equals_colon_or_blanks() {
        let text = "a=1\nb: 2\nc 3\nd = 4 \n  e\t:\t5\nf\ng==7\nh=\n";
        let expected = [
            pair("a", "1"),
            pair("b", "2"),
            pair("c", "3"),
            pair("d", "4 "),
            pair("e", "5"),
            pair("f", ""),
            pair("g", "=7"),
            pair("h", ""),
        ];
        assert_eq!(pairs(text), expected);
    }

    #[test]
    fn comments_and_blank_lines_are_dropped() {
        assert_eq!(pairs("# a=1\n ! b=2\n\n\r\nc=3#4\r\n"), [pair("c", "3#4")]);
    }

    #[test]
    fn a_backslash_continues_the_line_and_two_do_not() {
        assert_eq!(
            pairs("a=1,\\\n   2,\\\n#3\nb=x\\\\\nc=y"),
            [pair("a", "1,2,#3"), pair("b", "x\\"), pair("c", "y")]
        );
        assert_eq!(pairs("a=1\\"), [pair("a", "1")]);
    }

    #[test]
    fn escapes_are_resolved_in_keys_and_values() {
        let text = r"a\:b\=c\ d=\u00e9\t\q\\n\uD83D\uDE00";
        assert_eq!(pairs(text), [pair("a:b=c d", "é\tq\\n😀")]);
    }

    #[test]
    fn what_is_printed_is_read_back() {
        let all = [
            pair("a b:c", " x = y\\ "),
            pair("#k", "line\nnext"),
            pair("é", "😀"),
        ];
        assert_eq!(parse(&print(&all)), all);
    }

    #[test]
    fn a_value_may_be_looked_up_elsewhere() {
        let look_up = |provider: &str, path: &str, key: &str| match (provider, path, key) {
            ("env", "", "ID") => Some("7".to_owned()),
            ("file", "/etc/secrets", "pw") => Some("secret".to_owned()),
            _ => None,
        };
        for (text, resolved) in [
            ("${env:ID}", "7"),
            ("a${env:ID}b${file:/etc/secrets:pw}", "a7bsecret"),
            ("${env:UNSET} ${env:ID}", "${env:UNSET} 7"),
            ("${vault:x:y}", "${vault:x:y}"),
            ("$ {env:ID} ${env:ID", "$ {env:ID} ${env:ID"),
        ] {
            assert_eq!(resolve(text, &look_up), resolved);
        }
    }

    #[test]
    fn providers_are_known_by_their_class() {
        let given = last_wins(&parse(
            "config.providers=e, x\nconfig.providers.x.class=com.acme.Vault\n\
             config.providers.e.class=org.apache.kafka.common.config.provider.EnvVarConfigProvider",
        ));
        assert_eq!(providers(&given), [("e".to_owned(), Provider::Environment)]);
    }

    #[test]
    fn variables_become_options() {
        for (name, option) in [
            ("KAFKA_NODE_ID", Some("node.id")),
            (
                "KAFKA_LISTENER_NAME_EXT___1_SSL_KEY",
                Some("listener.name.ext-1.ssl.key"),
            ),
            ("KAFKA_A__B", Some("a_b")),
            ("KAFKA_JMX_PORT", Some("jmx.port")),
            ("KAFKA_OPTS", None),
            ("CLUSTER_ID", None),
        ] {
            assert_eq!(option_of_variable(name).as_deref(), option, "{name}");
        }
    }

    #[test]
    fn an_address_of_ones_own_replaces_all_default_addresses() {
        let all = over_single_node_defaults(&[pair("listeners", "IN://:1")]);
        assert!(!all.iter().any(|(name, _)| name == "advertised.listeners"));
        assert!(all.contains(&pair("node.id", "1")));
    }
}
