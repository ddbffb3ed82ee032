//! `plumbline config`: the effective settings as a commented file; `plumbline config check FILE`: is that file right?

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::Subcommand;

use crate::settings::{self, Options, Settings};

#[derive(clap::Args)]
#[command(after_help = "Examples:
  plumbline config                              what is in force
  plumbline config > plumbline.toml             a file to start from
  plumbline config check plumbline.toml         is it right? names key, file and line where not
  plumbline config --set crawl.workers=8        what would be in force")]
pub struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Subcommand)]
enum Command {
    /// Check a settings file and say what it watches.
    Check {
        /// The file.
        file: PathBuf,
    },
}

pub fn run(options: &Options, arguments: &Arguments) -> Result<ExitCode> {
    let mut out = std::io::stdout().lock();
    match &arguments.command {
        None => out.write_all(settings::print(&Settings::load(options)?)?.as_bytes())?,
        Some(Command::Check { file }) => {
            let settings = Settings::load(&Options { config: Some(file.clone()), ..options.clone() })?;
            let targets = settings.targets();
            let domains = plumbline_crawler::sources::domains::read_all(&targets.domains)?;
            for problem in &domains.problems {
                eprintln!("{problem}");
            }
            writeln!(
                out,
                "{}: right. Watches {} registries, {} agent cards, {} single addresses, {} files, {} commands.",
                file.display(),
                targets.registries.len(),
                domains.cards.len(),
                targets.urls.len(),
                targets.files.len(),
                targets.commands.len()
            )?;
            if !domains.problems.is_empty() {
                return Ok(ExitCode::from(1));
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}
