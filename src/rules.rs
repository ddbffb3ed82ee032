//! `plumbline rules [ID]`: the catalogue, or one rule with its reason, fix and examples.

use std::io::Write;
use std::process::ExitCode;

use anyhow::{Result, bail};
use plumbline_rules::catalogue::{self, Entry};
use plumbline_rules::rule::{Axis, Class, Impact, Rule};

#[derive(clap::Args)]
#[command(after_help = "Examples:
  plumbline rules                           every rule, a line each
  plumbline rules a2a/skill-id-duplicate    what it demands, why, and how to mend it
  plumbline rules a2a                       the rules of one family
  plumbline rules --format json             the catalogue for programs")]
pub struct Arguments {
    /// A rule's id, or a family.
    id: Option<String>,
    /// How to print.
    #[arg(long, default_value = "text")]
    format: Format,
}

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum Format {
    Text,
    Json,
    Markdown,
}

pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    let wanted = arguments.id.as_deref();
    if let Some(rule) = wanted.and_then(catalogue::find) {
        write_one(&mut out, rule, arguments.format)?;
    } else {
        let family = |rule: &&Rule| wanted.is_none_or(|wanted| rule.family() == wanted);
        let rules: Vec<&Rule> = catalogue::rules().filter(family).collect();
        if rules.is_empty() {
            bail!("{}", unknown(wanted.unwrap_or_default()));
        }
        write_all(&mut out, &rules, arguments.format)?;
    }
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}

/// Names the rules that are spelled most like the one asked for.
fn unknown(id: &str) -> String {
    let name = id.rsplit('/').next().unwrap_or(id);
    let near: Vec<_> = catalogue::rules()
        .map(|rule| rule.id)
        .filter(|known| name.split('-').filter(|word| word.len() > 2 && known.contains(word)).count() > 0)
        .take(5)
        .collect();
    let way_on = if near.is_empty() {
        "`plumbline rules` lists them all".to_owned()
    } else {
        format!("perhaps {}", near.join(", "))
    };
    format!("no rule or family `{id}`; {way_on}")
}

fn write_all(out: &mut impl Write, rules: &[&Rule], format: Format) -> Result<()> {
    match format {
        Format::Json => {
            let rules: Vec<_> = rules.iter().map(|rule| Entry::from(*rule)).collect();
            let body = serde_json::json!({ "revision": catalogue::revision(), "rules": rules });
            serde_json::to_writer_pretty(&mut *out, &body)?;
            writeln!(out)?;
        }
        Format::Text => {
            let width = rules.iter().map(|rule| rule.id.len()).max().unwrap_or(0);
            for rule in rules {
                writeln!(out, "{:width$}  {:8} {:15} {}", rule.id, grade(rule), impact(rule), rule.title())?;
            }
            writeln!(out, "\n{} rules, revision {}", rules.len(), catalogue::revision())?;
        }
        Format::Markdown => {
            writeln!(out, "| rule | severity | impact | what |\n| --- | --- | --- | --- |")?;
            for rule in rules {
                writeln!(
                    out,
                    "| `{}` | {} | {} | {} |",
                    rule.id,
                    grade(rule),
                    impact(rule),
                    rule.title().replace('|', "\\|")
                )?;
            }
        }
    }
    Ok(())
}

/// Severity, or what stands in its place.
fn grade(rule: &Rule) -> &'static str {
    match (rule.axis, rule.class) {
        (Axis::Conformity, Class::Finding) => rule.severity.as_str(),
        (Axis::Conformity, Class::Fact) => rule.class.as_str(),
        (Axis::Reach | Axis::Detection, _) => rule.axis.as_str(),
    }
}

fn impact(rule: &Rule) -> &'static str {
    rule.impact.map_or("", Impact::as_str)
}

fn write_one(out: &mut impl Write, rule: &Rule, format: Format) -> Result<()> {
    let entry = Entry::from(rule);
    if let Format::Json = format {
        serde_json::to_writer_pretty(&mut *out, &entry)?;
        writeln!(out)?;
        return Ok(());
    }
    let markdown = matches!(format, Format::Markdown);
    let (head, code) = if markdown { ("# ", "`") } else { ("", "") };
    writeln!(out, "{head}{code}{}{code}\n\n{}.", rule.id, rule.title())?;
    for paragraph in rule.why() {
        writeln!(out, "\n{paragraph}")?;
    }
    let security = if rule.security { ", security" } else { "" };
    let list = |name: &str, value: &str| {
        if markdown { format!("- **{name}**: {value}") } else { format!("{name:10} {value}") }
    };
    writeln!(out)?;
    let impact = if impact(rule).is_empty() { String::new() } else { format!(", {}", impact(rule)) };
    writeln!(out, "{}", list("Grade", &format!("{}{impact}{security}", grade(rule))))?;
    writeln!(out, "{}", list("Versions", &rule.versions.join(", ")))?;
    writeln!(out, "{}", list("Where", if rule.place.is_empty() { "the document" } else { rule.place }))?;
    writeln!(out, "{}", list("Fix", rule.fix))?;
    writeln!(out, "{}", list("Asked by", rule.spec))?;
    if !rule.clients.is_empty() {
        writeln!(out, "{}", list("Clients", &rule.clients.join("; ")))?;
    }
    if !rule.seeds.is_empty() {
        writeln!(out, "{}", list("Also known", &rule.seeds.join(", ")))?;
    }
    for example in rule.examples {
        let what =
            if example.fires.is_empty() { "Silent".to_owned() } else { format!("Fires at {}", places(example.fires)) };
        if markdown {
            writeln!(out, "\n{what}:\n\n```json\n{}\n```", example.text)?;
        } else {
            writeln!(out, "\n{what}:\n  {}", example.text)?;
        }
    }
    Ok(())
}

fn places(pointers: &[&str]) -> String {
    let named = |pointer: &&str| if pointer.is_empty() { "the document".to_owned() } else { (*pointer).to_owned() };
    pointers.iter().map(named).collect::<Vec<_>>().join(", ")
}
