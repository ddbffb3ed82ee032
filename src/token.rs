//! `plumbline token`: what programs show to be let in. The text of a token is printed once and kept as a hash.

use std::io::Write;
use std::process::ExitCode;

use anyhow::{Result, bail};
use chrono::DateTime;
use plumbline_store::Store;
use plumbline_store::tokens::{NewToken, Scope, TokenRow, text_of};
use serde_json::{Value, json};

use crate::settings::{Options, Settings};
use crate::wiring;

/// The longest that a token may hold, in days.
const LONGEST_DAYS: u32 = 3650;

#[derive(clap::Args)]
#[command(after_help = "Examples:
  plumbline token create --scope deploys:write --owner harbour --title \"harbour's pipeline\"
  plumbline token list
  plumbline token revoke 3")]
pub struct Arguments {
    #[command(subcommand)]
    what: What,
}

#[derive(clap::Subcommand)]
enum What {
    /// Make a token and print it, this once.
    Create(Create),
    /// List all tokens, without their text.
    List {
        /// For programs.
        #[arg(long)]
        json: bool,
    },
    /// End a token.
    Revoke {
        /// Its number, as the list shows it.
        id: i64,
    },
}

#[derive(clap::Args)]
struct Create {
    /// What it allows: read, deploys:write, alerts:write, admin; may be given several times.
    #[arg(long = "scope", required = true, value_name = "SCOPE")]
    scopes: Vec<Scope>,
    /// Limit it to the targets of one owner.
    #[arg(long, value_name = "SLUG")]
    owner: Option<String>,
    /// What it is for.
    #[arg(long, default_value = "")]
    title: String,
    /// Days until it ends; without it, it holds until it is revoked.
    #[arg(long, value_name = "DAYS", value_parser = clap::value_parser!(u32).range(1..=i64::from(LONGEST_DAYS)))]
    expires: Option<u32>,
}

pub fn run(options: &Options, arguments: &Arguments) -> Result<ExitCode> {
    let settings = Settings::load(options)?;
    wiring::runtime()?.block_on(async {
        let store = wiring::open(&settings).await?;
        let now_s = chrono::Utc::now().timestamp();
        let done = match &arguments.what {
            What::Create(asked) => create(&store, asked, now_s).await,
            What::List { json } => list(&store, *json, now_s).await,
            What::Revoke { id } => revoke(&store, *id, now_s).await,
        };
        store.close().await;
        done.map(|()| ExitCode::SUCCESS)
    })
}

async fn create(store: &Store, asked: &Create, now_s: i64) -> Result<()> {
    let text = text_of(rand::random());
    let token = NewToken {
        title: asked.title.clone(),
        scopes: asked.scopes.clone(),
        owner: asked.owner.clone(),
        created_by: std::env::var("USER").unwrap_or_else(|_| "command line".to_owned()),
        expires_s: asked.expires.map(|days| now_s + i64::from(days) * 86_400),
    };
    let made = store.create_token(&text, &token, now_s).await?;
    let after = json!({ "title": made.title, "scopes": made.scopes, "owner": made.owner, "expires_s": made.expires_s });
    wiring::note(store, "token.add", format!("token:{}", made.id), after).await?;
    // The text alone on standard output, so that it can be taken from there.
    eprintln!("Token {} for {}. It is shown this once:", made.id, scopes(&made));
    println!("{text}");
    Ok(())
}

async fn list(store: &Store, json: bool, now_s: i64) -> Result<()> {
    let tokens = store.tokens().await?;
    let mut out = std::io::stdout().lock();
    if json {
        serde_json::to_writer_pretty(&mut out, &tokens)?;
        writeln!(out)?;
        return Ok(());
    }
    if tokens.is_empty() {
        writeln!(out, "There are no tokens.")?;
    }
    for token in &tokens {
        let owner = token.owner.as_ref().map_or(String::new(), |owner| format!(", only {owner}"));
        writeln!(
            out,
            "{:>4}  {}…  {}{owner}  {}  {}",
            token.id,
            token.prefix,
            scopes(token),
            standing(token, now_s),
            token.title
        )?;
    }
    Ok(())
}

async fn revoke(store: &Store, id: i64, now_s: i64) -> Result<()> {
    if !store.revoke_token(id, now_s).await? {
        bail!("no token of number {id} holds");
    }
    wiring::note(store, "token.revoke", format!("token:{id}"), Value::Null).await?;
    println!("Token {id} holds no more.");
    Ok(())
}

fn scopes(token: &TokenRow) -> String {
    token.scopes.iter().map(|scope| scope.as_str()).collect::<Vec<_>>().join(" ")
}

/// Whether it holds, and when it was used.
fn standing(token: &TokenRow, now_s: i64) -> String {
    let day = |s: i64| DateTime::from_timestamp(s, 0).map_or_else(String::new, |at| at.format("%Y-%m-%d").to_string());
    if let Some(revoked_s) = token.revoked_s {
        return format!("revoked {}", day(revoked_s));
    }
    if let Some(expires_s) = token.expires_s.filter(|expires_s| *expires_s <= now_s) {
        return format!("ended {}", day(expires_s));
    }
    token.last_used_s.map_or_else(|| "never used".to_owned(), |used_s| format!("used {}", day(used_s)))
}
