//! `plumbline doctor`: is the database true to itself, and what of it can be mended?

use std::io::Write;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use plumbline_store::doctor::{Checked, Diagnosis, Hand};

use crate::settings::{Options, Settings};
use crate::wiring;

#[derive(clap::Args)]
#[command(after_help = "Examples:
  plumbline doctor                        look, change nothing
  plumbline doctor --repair               mend numbers, words and reach, and what dead processes left behind
  plumbline doctor --rebuild              the same, every cohort counted anew, and every day of the trends
  plumbline doctor --json | jq .checks    for programs
  plumbline doctor --database postgres://plumbline@db/plumbline

Everything that is counted is counted again: findings on surfaces, surfaces on targets, targets and findings on the newest
day of the trends; with --rebuild also what the events of every day they are kept of tell of it. Spans, findings and events are history: what is wrong there is told and left to a person. A damaged file
is not written to; restore a copy. It may run beside `plumbline serve`, which waits while numbers are mended.

Exit status: 0 when nothing is wrong or everything was mended, 1 when something wrong is left, 2 when nobody could look.")]
pub struct Arguments {
    /// Mend what is derived.
    #[arg(long)]
    repair: bool,
    /// Mend what is derived, and count every cohort and every day of the trends anew.
    #[arg(long)]
    rebuild: bool,
    /// Print the result for programs.
    #[arg(long)]
    json: bool,
}

pub fn run(options: &Options, arguments: &Arguments) -> Result<ExitCode> {
    let settings = Settings::load(options)?;
    wiring::start_log(&settings.log)?;
    let hand = if arguments.repair || arguments.rebuild { Hand::Mend } else { Hand::Look };
    let diagnosis = wiring::runtime()?.block_on(async {
        let store = wiring::open(&settings).await?;
        let now_s = chrono::Utc::now().timestamp();
        let holder = wiring::holder();
        let mut diagnosis = store.examine(hand, now_s, |other| wiring::is_alive(other, &holder)).await;
        if arguments.rebuild && diagnosis.as_ref().is_ok_and(|diagnosis| !diagnosis.is_damaged) {
            diagnosis = match store.recount_cohorts(now_s).await {
                Ok(checked) => diagnosis.map(|diagnosis| diagnosis.with(checked)),
                Err(error) => Err(error),
            };
        }
        if arguments.rebuild && diagnosis.as_ref().is_ok_and(|diagnosis| !diagnosis.is_damaged) {
            diagnosis = match store.recount_days(hand, now_s, progress()).await {
                Ok(checked) => diagnosis.map(|diagnosis| diagnosis.with(checked)),
                Err(error) => Err(error),
            };
        }
        store.close().await;
        diagnosis.with_context(|| format!("database {}", wiring::shown(&settings.database)))
    })?;
    let mut out = std::io::stdout().lock();
    if arguments.json {
        serde_json::to_writer_pretty(&mut out, &diagnosis)?;
        writeln!(out)?;
    } else {
        write!(out, "{}", told(&diagnosis))?;
    }
    Ok(ExitCode::from(u8::from(diagnosis.left() > 0)))
}

/// How often a long count tells how far it is.
const PROGRESS_EVERY: Duration = Duration::from_secs(2);

/// Tells now and then how many days are counted.
fn progress() -> impl FnMut(usize, usize) {
    let mut told = Instant::now();
    move |done, of| {
        if told.elapsed() >= PROGRESS_EVERY {
            told = Instant::now();
            eprintln!("{done} of {of} days counted");
        }
    }
}

/// One line for each check, below it what is wrong, and the sum.
fn told(diagnosis: &Diagnosis) -> String {
    let mut text: String = diagnosis.checks.iter().map(line).collect();
    let (wrong, left) = (diagnosis.checks.iter().map(|check| check.wrong).sum::<i64>(), diagnosis.left());
    text.push_str(&match (wrong, left) {
        (0, _) => "Nothing is wrong.\n".to_owned(),
        (wrong, left) if wrong == left => format!("Faults: {wrong}. `--repair` mends what is derived.\n"),
        (wrong, left) => format!("Faults: {wrong}, of which {left} are left.\n"),
    });
    text
}

fn line(check: &Checked) -> String {
    let Checked { what, looked_at, wrong, mended, examples } = check;
    let word = if *wrong == 0 {
        "ok"
    } else if wrong == mended {
        "mended"
    } else {
        "wrong"
    };
    let mut text = format!("{word:7} {what} ({looked_at} looked at");
    if *wrong > 0 {
        text.push_str(&format!(", {wrong} wrong, {mended} mended"));
    }
    text.push_str(")\n");
    for example in examples {
        text.push_str(&format!("          {}\n", plain(example)));
    }
    if *wrong > examples.len() as i64 {
        text.push_str(&format!("          and {} more\n", *wrong - examples.len() as i64));
    }
    text
}

/// Names of strangers without what a terminal would obey.
fn plain(text: &str) -> String {
    text.chars().filter(|letter| !letter.is_control()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(wrong: i64, mended: i64) -> Checked {
        let examples = (0..wrong.min(1)).map(|_| "surface 1\u{1b}[2J keeps 2".to_owned()).collect();
        Checked { what: "surfaces", looked_at: 9, wrong, mended, examples }
    }

    #[test]
    fn every_check_is_told_and_nothing_in_it_is_obeyed() {
        let diagnosis = Diagnosis { checks: vec![check(0, 0), check(3, 0)], is_damaged: false };
        assert_eq!(
            told(&diagnosis),
            "ok      surfaces (9 looked at)\n\
             wrong   surfaces (9 looked at, 3 wrong, 0 mended)\n          \
             surface 1[2J keeps 2\n          and 2 more\n\
             Faults: 3. `--repair` mends what is derived.\n"
        );
        assert!(
            told(&Diagnosis { checks: vec![check(2, 2)], is_damaged: false })
                .ends_with("Faults: 2, of which 0 are left.\n")
        );
        assert!(
            told(&Diagnosis { checks: vec![check(2, 1)], is_damaged: false })
                .ends_with("Faults: 2, of which 1 are left.\n")
        );
        assert!(told(&Diagnosis { checks: vec![check(0, 0)], is_damaged: false }).ends_with("Nothing is wrong.\n"));
    }
}
