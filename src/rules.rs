//! `plumbline rules [ID]`: the catalogue, or one rule with its reason, fix and examples.

use std::io::Write;
use std::process::ExitCode;

use anyhow::{Result, bail};
use plumbline_rules::catalogue::{self, Entry};
use plumbline_rules::coverage::{self, How, Source, Standing};
use plumbline_rules::rule::{Axis, Class, Impact, Rule, Severity};

#[derive(clap::Args)]
#[command(after_help = "Examples:
  plumbline rules                           every rule, a line each
  plumbline rules a2a/skill-id-duplicate    what it demands, why, and how to mend it
  plumbline rules a2a                       the rules of one family
  plumbline rules --severity error --spec-version 1.0   those that apply to a revision
  plumbline rules --seed reader:            those that a published catalogue has as well
  plumbline rules --coverage                what became of the rules of four published catalogues
  plumbline rules --format json             the catalogue for programs")]
pub struct Arguments {
    /// A rule's id, or a family.
    id: Option<String>,
    /// Only of this severity.
    #[arg(long)]
    severity: Option<Severity>,
    /// Only what applies to this specification version.
    #[arg(long, value_name = "VERSION")]
    spec_version: Option<String>,
    /// Only what published catalogues name so: `reader:`, or `gaip:A2A_SKILL_ID_DUPLICATE`.
    #[arg(long, value_name = "CATALOGUE:NAME")]
    seed: Option<String>,
    /// The rules of four published catalogues, each with ours or the reason why there is none.
    #[arg(long, conflicts_with_all = ["id", "severity", "spec_version", "seed"])]
    coverage: bool,
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
    if arguments.coverage {
        write_coverage(&mut out, arguments.format)?;
        out.flush()?;
        return Ok(ExitCode::SUCCESS);
    }
    let wanted = arguments.id.as_deref();
    if let Some(rule) = wanted.and_then(catalogue::find) {
        write_one(&mut out, rule, arguments.format)?;
    } else {
        let family = |rule: &&Rule| wanted.is_none_or(|wanted| rule.family() == wanted);
        if !catalogue::rules().any(|rule| family(&rule)) {
            bail!("{}", unknown(wanted.unwrap_or_default()));
        }
        let rules: Vec<&Rule> = catalogue::rules().filter(family).filter(|rule| arguments.admit(rule)).collect();
        if rules.is_empty() {
            bail!("no rule matches all of these");
        }
        write_all(&mut out, &rules, arguments.format)?;
    }
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}

impl Arguments {
    fn admit(&self, rule: &Rule) -> bool {
        let has_version = |version: &str| rule.versions.iter().any(|own| *own == version || *own == "all");
        self.severity.is_none_or(|severity| rule.severity == severity)
            && self.spec_version.as_deref().is_none_or(has_version)
            && self.seed.as_deref().is_none_or(|seed| rule.seeds.iter().any(|own| own.starts_with(seed)))
    }
}

/// Rows of a table of published catalogues, for programs.
#[derive(serde::Serialize)]
struct Covered {
    seed: String,
    standing: Standing,
    how: How,
    rules: &'static [&'static str],
    why: &'static str,
}

fn write_coverage(out: &mut impl Write, format: Format) -> Result<()> {
    if let Format::Json = format {
        let rows = coverage::rows().iter().map(|row| Covered {
            seed: row.seed(),
            standing: row.standing(),
            how: row.how,
            rules: &row.rules,
            why: row.why(),
        });
        let body = serde_json::json!({ "revision": catalogue::revision(), "rows": rows.collect::<Vec<_>>() });
        serde_json::to_writer_pretty(&mut *out, &body)?;
        writeln!(out)?;
        return Ok(());
    }
    let is_table = matches!(format, Format::Markdown);
    if is_table {
        writeln!(out, "| there | standing | here | why |\n| --- | --- | --- | --- |")?;
    }
    for row in coverage::rows() {
        let (seed, standing, rules, why) = (row.seed(), row.standing(), row.rules.join(" "), row.why());
        if is_table {
            writeln!(out, "| {seed} | {standing} | {rules} | {why} |")?;
        } else {
            let here = [rules.as_str(), why].into_iter().filter(|text| !text.is_empty()).collect::<Vec<_>>().join("; ");
            writeln!(out, "{seed:46}  {standing:14}  {here}")?;
        }
    }
    if !is_table {
        writeln!(out, "\n{} rules of {} published catalogues", coverage::rows().len(), Source::ALL.len())?;
    }
    Ok(())
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
            let body =
                serde_json::json!({ "format": "plumbline-rules-1", "revision": catalogue::revision(), "rules": rules });
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
