//! Apache Kafka's tools, many in one virtual machine, and what they say of two brokers compared.
//!
//! A tool takes a second to start, so that a long story of them is told by `java/StockTools.java`,
//! which runs them one after the other in one process.

use std::fmt::Write as _;

use crate::Broker;
use crate::process::run;
use crate::tools::{LIMIT, class, java_source_command};

/// One call of a tool.
#[derive(Clone, Debug)]
pub struct Step {
    tool: String,
    input: String,
    arguments: Vec<String>,
}

/// A tool, and its arguments parted by blanks. A word in single quotes may hold blanks; `\t` in it is
/// a tabulator. `{bootstrap}` stands for the server, `{id:NAME}` for a topic's id.
pub fn step(line: &str) -> Step {
    step_with(line, "")
}

/// The same, with a text on standard input.
pub fn step_with(line: &str, input: &str) -> Step {
    let mut words = Vec::new();
    for (number, part) in line.split('\'').enumerate() {
        if number % 2 == 1 {
            words.push(part.replace("\\t", "\t"));
        } else {
            words.extend(part.split_whitespace().map(str::to_owned));
        }
    }
    Step {
        tool: words.remove(0),
        input: input.to_owned(),
        arguments: words,
    }
}

/// What a tool left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    pub status: String,
    pub stdout: String,
    pub stderr: String,
}

/// Runs the steps against a broker, one after the other.
#[track_caller]
pub fn run_steps(broker: &Broker, steps: &[Step]) -> Vec<Outcome> {
    let mut input = String::new();
    for step in steps {
        let tool = if step.tool.starts_with('@') {
            step.tool.as_str()
        } else {
            class(&step.tool)
        };
        let arguments: String = step
            .arguments
            .iter()
            .map(|argument| format!("\u{1f}{argument}"))
            .collect();
        let line = format!("{tool}\u{1f}{}{arguments}", step.input);
        writeln!(input, "{}", line.replace('\n', "\u{1e}")).expect("a string takes it");
    }
    let mut command = java_source_command("StockTools.java", &broker.bootstrap(), &[]);
    let output = run("the tools", &mut command, input.as_bytes(), LIMIT);
    let outcomes: Vec<Outcome> = output
        .text()
        .split_terminator('\u{1c}')
        .map(|step| {
            let mut parts = step.splitn(3, '\u{1f}').map(str::to_owned);
            let mut next = || parts.next().expect("three parts");
            Outcome {
                status: next(),
                stdout: next(),
                stderr: next(),
            }
        })
        .collect();
    let last_words: Vec<&str> = output.stderr.lines().rev().take(20).collect();
    assert_eq!(
        outcomes.len(),
        steps.len(),
        "each step has an outcome, after {:?}: {last_words:#?}",
        outcomes.last()
    );
    outcomes
}

/// Runs the steps against both brokers and returns where the outcomes differ, each as a text.
/// `normal` takes out of an outcome what may differ.
pub fn differences(
    ours: &Broker,
    theirs: &Broker,
    steps: &[Step],
    normal: impl Fn(&Broker, &str) -> String,
) -> Vec<String> {
    let (mine, yours) = std::thread::scope(|scope| {
        let mine = scope.spawn(|| run_steps(ours, steps));
        let yours = run_steps(theirs, steps);
        (mine.join().expect("the tools run"), yours)
    });
    let shown = |broker: &Broker, outcome: &Outcome| {
        format!(
            "exit {}\n{}{}",
            outcome.status,
            normal(broker, &outcome.stdout),
            normal(broker, &outcome.stderr)
        )
    };
    let mut differences = Vec::new();
    for ((step, mine), yours) in steps.iter().zip(&mine).zip(&yours) {
        let (mine, yours) = (shown(ours, mine), shown(theirs, yours));
        if mine != yours {
            differences.push(format!(
                "{} {}\n--- Apache Kafka: {yours}\n--- Barnabas: {mine}\n",
                step.tool,
                step.arguments.join(" ")
            ));
        } else if std::env::var_os("PROTOCOL_TESTS_SHOW").is_some() {
            println!("{} {}\n{mine}", step.tool, step.arguments.join(" "));
        }
    }
    differences
}

/// The same, where there is to be no difference.
#[track_caller]
pub fn assert_no_difference(
    ours: &Broker,
    theirs: &Broker,
    steps: &[Step],
    normal: impl Fn(&Broker, &str) -> String,
) {
    let found = differences(ours, theirs, steps, normal);
    assert!(
        found.is_empty(),
        "{} of {} steps differ\n{}",
        found.len(),
        steps.len(),
        found.join("\n")
    );
}

/// Replaces each word behind a label by a sign.
pub fn hide_after(text: &str, label: &str) -> String {
    let mut parts = text.split(label);
    let mut hidden = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let end = part
            .find(|sign: char| !(sign.is_alphanumeric() || "-_".contains(sign)))
            .unwrap_or(part.len());
        hidden.push_str(label);
        hidden.push('*');
        hidden.push_str(&part[end..]);
    }
    hidden
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stands_behind_a_label_is_hidden() {
        let text = "TopicId: abc-_1\tx TopicId: \nTopicId: q";
        let hidden = "TopicId: *\tx TopicId: *\nTopicId: *";
        assert_eq!(hide_after(text, "TopicId: "), hidden);
    }

    #[test]
    fn a_quoted_word_holds_blanks() {
        let step = step(r"tool --a 'b c\td' ''");
        assert_eq!(step.arguments, ["--a", "b c\td", ""]);
    }
}
