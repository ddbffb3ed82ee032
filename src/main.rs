//! `plumbline`: reads the command line, runs one subcommand, prints what went wrong as one sentence from outside in.

mod check;
mod config;
mod rules;
mod settings;

use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};

use settings::Options;

/// Holds AI agents and tool servers against the written line of their specifications, and shows what moved.
#[derive(Parser)]
#[command(
    version,
    propagate_version = true,
    after_help = "Examples:
  plumbline                                  crawl the official MCP registry and known A2A domains, dashboard on http://127.0.0.1:8080
  plumbline serve --sample                   the same on a small sample ecosystem, without a network
  plumbline check card.json --kind a2a-card  judge one document
  plumbline rules a2a/skill-id-duplicate     what a rule demands, and why
  plumbline config > plumbline.toml          every setting with its meaning, as a file to start from"
)]
struct Arguments {
    #[command(flatten)]
    options: Options,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Judge documents and print what is wrong with them.
    Check(check::Arguments),
    /// List the rules, or explain one.
    Rules(rules::Arguments),
    /// Print the effective settings as a commented file, or check a file.
    Config(config::Arguments),
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    match run(arguments) {
        Ok(code) => code,
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("plumbline: {error:#}");
            ExitCode::from(2)
        }
    }
}

fn run(arguments: Arguments) -> Result<ExitCode> {
    let options = &arguments.options;
    match arguments.command {
        Command::Check(arguments) => check::run(options, &arguments),
        Command::Rules(arguments) => rules::run(&arguments),
        Command::Config(arguments) => config::run(options, &arguments),
    }
}

/// `plumbline rules | head` is no failure.
fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| {
        cause.downcast_ref::<std::io::Error>().is_some_and(|io| io.kind() == std::io::ErrorKind::BrokenPipe)
    })
}
