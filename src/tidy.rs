//! The architecture, held by a test: which folder may import which, which places stay pure, and
//! what may not be left lying about.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Folders from the ground up, each with what it may import. A folder imports only folders that
/// stand above its own row.
const LAYERS: &[(&str, &[&str])] = &[
    ("base", &[]),
    ("os", &["base"]),
    ("protocol", &["base", "os"]),
    ("config", &["base"]),
    ("security", &["base", "os", "protocol", "config"]),
    ("log", &["base", "os", "protocol", "config"]),
    ("machine", &["base", "os", "protocol"]),
    ("metadata", &["base", "protocol", "config", "security"]),
    (
        "controller",
        &[
            "base", "protocol", "config", "security", "machine", "metadata",
        ],
    ),
    (
        "quorum",
        &[
            "base", "os", "protocol", "config", "log", "machine", "metadata",
        ],
    ),
    (
        "replica",
        &[
            "base", "os", "protocol", "config", "security", "log", "metadata",
        ],
    ),
    (
        "coordinator",
        &[
            "base", "os", "protocol", "config", "machine", "metadata", "replica",
        ],
    ),
    ("net", &["base", "os", "protocol", "config", "security"]),
    (
        "api",
        &[
            "base",
            "os",
            "protocol",
            "config",
            "security",
            "log",
            "machine",
            "metadata",
            "controller",
            "quorum",
            "replica",
            "coordinator",
            "net",
        ],
    ),
    (
        "server",
        &[
            "base",
            "os",
            "protocol",
            "config",
            "security",
            "log",
            "machine",
            "metadata",
            "controller",
            "quorum",
            "replica",
            "coordinator",
            "net",
            "api",
        ],
    ),
    (
        "cli",
        &[
            "base", "os", "protocol", "config", "log", "metadata", "server",
        ],
    ),
];

/// Places that decide and never act: no runtime, no waiting, no machine.
const PURE: &[&str] = &[
    "base",
    "config",
    "metadata",
    "controller",
    "coordinator/group",
    "log/append.rs",
    "log/epochs.rs",
    "log/producers.rs",
    "machine/mod.rs",
    "protocol/codec.rs",
    "protocol/error.rs",
    "replica/isr.rs",
];
const IMPURE: &[&str] = &["tokio::", ".await", "crate::os"];

/// What no source may hold; cut in two, so that this one does not.
const LEFTOVERS: &[&str] = &[
    concat!("to", "do!("),
    concat!("unimple", "mented!("),
    concat!("d", "bg!("),
    concat!("#[ig", "nore"),
];

struct Source {
    /// Below `src`, as `log/read.rs`.
    name: String,
    text: String,
    /// Without tests and comments.
    code: String,
}

fn sources() -> Vec<Source> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    collect(&root, &mut files);
    let read = |path: PathBuf| {
        let text = fs::read_to_string(&path).unwrap();
        let name = path
            .strip_prefix(&root)
            .unwrap()
            .to_str()
            .unwrap()
            .to_owned();
        let is_test = name.ends_with("_test.rs")
            || ["testkit.rs", "story.rs", "tidy.rs"]
                .iter()
                .any(|kit| name.ends_with(kit));
        let code = if is_test {
            String::new()
        } else {
            code_of(&text)
        };
        Source { name, text, code }
    };
    files.into_iter().map(read).collect()
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect(&path, files);
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            files.push(path);
        }
    }
}

fn code_of(text: &str) -> String {
    let code = text
        .split("\n#[cfg(test)]\nmod tests")
        .next()
        .unwrap_or_default();
    let code = code
        .split("\n#[cfg(test)]\npub(crate) mod tests")
        .next()
        .unwrap_or_default();
    let lines = code
        .lines()
        .filter(|line| !line.trim_start().starts_with("//"));
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn the_table_only_points_up() {
    for (at, (folder, imports)) in LAYERS.iter().enumerate() {
        for import in *imports {
            let stands = LAYERS[..at].iter().any(|(above, _)| above == import);
            assert!(stands, "{folder} imports {import}, which is not above it");
        }
    }
}

#[test]
fn folders_import_what_the_table_names() {
    let table: BTreeMap<_, _> = LAYERS.iter().copied().collect();
    let mut wrong = Vec::new();
    for source in sources() {
        let Some((folder, _)) = source.name.split_once('/') else {
            continue;
        };
        let Some(imports) = table.get(folder) else {
            wrong.push(format!("{} is in a folder without a row", source.name));
            continue;
        };
        for piece in source.code.split("crate::").skip(1) {
            let target = piece
                .split(|c: char| !c.is_alphanumeric() && c != '_')
                .next()
                .unwrap();
            let is_layer = table.contains_key(target);
            if is_layer && target != folder && !imports.contains(&target) {
                wrong.push(format!("{} imports {target}", source.name));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Whether a word is there and not only the beginning of a longer one.
fn has_word(code: &str, word: &str) -> bool {
    let goes_on = |rest: &str| rest.starts_with(|c: char| c.is_alphanumeric() || c == '_');
    let ends_open = word.ends_with(|c: char| c.is_alphanumeric());
    code.match_indices(word)
        .any(|(at, _)| !ends_open || !goes_on(&code[at + word.len()..]))
}

#[test]
fn pure_places_stay_pure() {
    let mut wrong = Vec::new();
    for source in sources() {
        let is_pure = PURE
            .iter()
            .any(|place| source.name == *place || source.name.starts_with(&format!("{place}/")));
        for word in IMPURE
            .iter()
            .filter(|word| is_pure && has_word(&source.code, word))
        {
            wrong.push(format!("{} has {word}", source.name));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn nothing_is_left_lying_about() {
    let mut wrong = Vec::new();
    for source in sources().iter().filter(|source| source.name != "tidy.rs") {
        for word in LEFTOVERS.iter().filter(|word| source.text.contains(**word)) {
            wrong.push(format!("{} has {word}", source.name));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
