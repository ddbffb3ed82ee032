//! `plumbline pause` and `plumbline resume`: whether anything, or one target, is looked at.

use std::process::ExitCode;

use anyhow::{Result, bail};
use plumbline_store::words::TargetKind;
use plumbline_store::{Store, TargetId};
use serde_json::Value;

use crate::settings::{Options, Settings};
use crate::wiring;

#[derive(clap::Args)]
#[command(after_help = "Examples:
  plumbline pause                        nothing new is begun, also after a restart; pages stay
  plumbline pause agent.example.com      one target
  plumbline resume                       go on

A service that runs on the same database notices within a second.")]
pub struct Arguments {
    /// The key of one target: a registry name, or the host and path of a card. Without it: everything.
    target: Option<String>,
}

pub fn run(options: &Options, arguments: &Arguments, is_paused: bool) -> Result<ExitCode> {
    let settings = Settings::load(options)?;
    wiring::runtime()?.block_on(async {
        let store = wiring::open(&settings).await?;
        let now_s = chrono::Utc::now().timestamp();
        let word = if is_paused { "paused" } else { "looked at again" };
        match &arguments.target {
            None => {
                store.pause_all(is_paused, now_s).await?;
                let action = if is_paused { "crawls.pause" } else { "crawls.resume" };
                wiring::note(&store, action, "crawls".to_owned(), Value::Null).await?;
                println!("Everything is {word}.");
            }
            Some(key) => {
                let target = target(&store, key).await?;
                store.set_paused(target, is_paused, now_s).await?;
                let action = if is_paused { "target.pause" } else { "target.resume" };
                wiring::note(&store, action, format!("target:{target}"), Value::Null).await?;
                println!("{key} is {word}.");
            }
        }
        store.close().await;
        Ok(ExitCode::SUCCESS)
    })
}

async fn target(store: &Store, key: &str) -> Result<TargetId> {
    for kind in TargetKind::ALL {
        if let Some(id) = store.target_named(*kind, key).await? {
            return Ok(id);
        }
    }
    bail!("no target has the key {key}; it stands on the target's page under \"What it is\"")
}
