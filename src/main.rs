//! `plumbline`: reads the command line, runs one subcommand, prints what went wrong as one sentence from outside in.

mod alerts;
mod backup;
mod check;
mod checker;
mod config;
mod crawl;
mod demo;
mod deploy;
mod doctor;
mod housekeeping;
mod listing;
mod numbers;
mod pause;
mod ping;
mod recheck;
mod reload;
mod rules;
mod sample;
mod serve;
mod settings;
mod snapshot;
mod telling;
mod token;
mod webhooks;
mod wiring;

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
struct CommandLine {
    #[command(flatten)]
    options: Options,
    #[command(flatten)]
    serve: serve::Arguments,
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Subcommand)]
enum Command {
    /// Crawl, keep history and show the dashboard, all in one process (the default).
    Serve(serve::Arguments),
    /// Crawl everything once, print a summary and end.
    Crawl(crawl::Arguments),
    /// Stop looking at everything, or at one target, until told to go on.
    Pause(pause::Arguments),
    /// Go on after `pause`.
    Resume(pause::Arguments),
    /// Judge documents and print what is wrong with them.
    Check(Box<check::Arguments>),
    /// List the rules, or explain one.
    Rules(rules::Arguments),
    /// Compare what a registry lists of a server with what answers.
    Listing(listing::Arguments),
    /// Print the effective settings as a commented file, or check a file.
    Config(config::Arguments),
    /// Tell a running Plumbline of a deploy, and wait for what comes of it.
    Deploy(deploy::Arguments),
    /// Make, list and end the tokens of programs.
    Token(token::Arguments),
    /// Fill a database with a synthetic ecosystem, so that every page can be seen in a minute.
    Demo(demo::Arguments),
    /// Check whether the database is true to itself, and mend what can be mended.
    Doctor(doctor::Arguments),
    /// Alerts: what holds and why it was told or not; acknowledge, silence, waive, plan maintenance.
    Alerts(alerts::Arguments),
    /// Receivers of messages: list, test, replay, and print what arrives.
    Webhooks(webhooks::Arguments),
    /// Judge what is stored again by the present rules, without a network.
    Recheck(recheck::Arguments),
    /// Let go of what is old, or tell how much that is.
    Housekeeping(housekeeping::Arguments),
    /// Make a copy of the database that is known to be good, while others work on it.
    Backup(backup::BackupArguments),
    /// Put such a copy in the place of the database.
    Restore(backup::RestoreArguments),
    /// Write what is public of one month into a folder: tables, their schema, their checksums.
    Snapshot(snapshot::Arguments),
    /// Bring the database to this version's schema and end.
    Migrate,
}

fn main() -> ExitCode {
    let arguments = CommandLine::parse();
    match run(arguments) {
        Ok(code) => code,
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("plumbline: {error:#}");
            ExitCode::from(2)
        }
    }
}

fn run(arguments: CommandLine) -> Result<ExitCode> {
    let options = &arguments.options;
    match arguments.command.unwrap_or(Command::Serve(arguments.serve)) {
        Command::Serve(arguments) => serve::run(options, arguments),
        Command::Crawl(arguments) => crawl::run(options, &arguments),
        Command::Pause(arguments) => pause::run(options, &arguments, true),
        Command::Resume(arguments) => pause::run(options, &arguments, false),
        Command::Check(arguments) => check::run(options, &arguments),
        Command::Rules(arguments) => rules::run(&arguments),
        Command::Listing(arguments) => listing::run(options, &arguments),
        Command::Config(arguments) => config::run(options, &arguments),
        Command::Deploy(arguments) => deploy::run(options, &arguments),
        Command::Token(arguments) => token::run(options, &arguments),
        Command::Demo(arguments) => demo::run(options, &arguments),
        Command::Doctor(arguments) => doctor::run(options, &arguments),
        Command::Alerts(arguments) => alerts::run(options, &arguments),
        Command::Webhooks(arguments) => webhooks::run(options, &arguments),
        Command::Recheck(arguments) => recheck::run(options, &arguments),
        Command::Housekeeping(arguments) => housekeeping::run(options, &arguments),
        Command::Backup(arguments) => backup::back_up(options, &arguments),
        Command::Restore(arguments) => backup::restore(options, &arguments),
        Command::Snapshot(arguments) => snapshot::run(options, &arguments),
        Command::Migrate => wiring::migrate(options),
    }
}

/// `plumbline rules | head` is no failure.
fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let of_io =
        |cause: &(dyn std::error::Error + 'static)| cause.downcast_ref::<std::io::Error>().map(std::io::Error::kind);
    let of_json =
        |cause: &(dyn std::error::Error + 'static)| cause.downcast_ref::<serde_json::Error>()?.io_error_kind();
    error.chain().any(|cause| of_io(cause).or_else(|| of_json(cause)) == Some(std::io::ErrorKind::BrokenPipe))
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    #[test]
    fn every_command_line_can_be_read() {
        super::CommandLine::command().debug_assert();
    }
}
