//! `plumbline deploy`: tells a running Plumbline that something was deployed and, with `--wait`, what came of it.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use crate::settings::{Options, Settings};
use crate::wiring;

/// The longest that one request waits, in seconds: shorter than what most proxies put up with.
const ONE_WAIT_S: u64 = 50;
/// How much longer an answer may take than it was to wait.
const MARGIN: Duration = Duration::from_secs(20);
/// Findings written out.
const MOST_LINES: usize = 25;

#[derive(clap::Args)]
#[command(disable_version_flag = true)]
#[command(after_help = "Examples:
  plumbline deploy --target agent.example.com --version 1.4.2 --wait
  plumbline deploy --owner harbour --version 1.4.2 --dedupe-key $PIPELINE_ID --wait 600 --fail-on warning

The token comes from PLUMBLINE_TOKEN (`plumbline token create --scope deploys:write`); at the machine that Plumbline runs
on none is needed.

Exit status: 0 when nothing broke (clean or improved), 1 when something did (regressed or mixed), 2 when nobody answers
there or something went wrong with Plumbline, 3 when it was not settled in time. Without --wait 0 once it is told.")]
pub struct Arguments {
    /// What was deployed: the number, key or address of a target; may be given several times.
    #[arg(long = "target", value_name = "TARGET", required_unless_present_any = ["owner", "host"])]
    targets: Vec<String>,
    /// Everything of an owner.
    #[arg(long, conflicts_with_all = ["targets", "host"])]
    owner: Option<String>,
    /// Everything on a host.
    #[arg(long, conflicts_with = "targets")]
    host: Option<String>,
    /// The new version.
    #[arg(long)]
    version: Option<String>,
    /// When, as RFC 3339; without it now.
    #[arg(long)]
    at: Option<String>,
    /// Where, such as production.
    #[arg(long)]
    environment: Option<String>,
    /// The commit.
    #[arg(long)]
    commit: Option<String>,
    /// Where it is described.
    #[arg(long)]
    url: Option<String>,
    /// The same deploy told again under the same key is the same deploy.
    #[arg(long)]
    dedupe_key: Option<String>,
    /// Look at it at once and wait for what came of it, so many seconds (1200).
    #[arg(long, value_name = "SECONDS", num_args = 0..=1, default_missing_value = "1200")]
    wait: Option<u64>,
    /// What counts as broken: blocked (clients refuse it), error, warning.
    #[arg(long, default_value = "error", value_parser = ["blocked", "error", "warning"])]
    fail_on: String,
    /// The address of the Plumbline to tell; without it that of the settings.
    #[arg(long, env = "PLUMBLINE_SERVER", value_name = "URL")]
    server: Option<String>,
}

pub fn run(options: &Options, arguments: &Arguments) -> Result<ExitCode> {
    let settings = Settings::load(options)?;
    let base = base(&settings, arguments);
    wiring::runtime()?.block_on(async {
        let server = Server::new(base)?;
        let told = server.post("/api/v1/deploys", &body(arguments)).await?;
        let results = results(&told)?;
        println!("Told of {} {}.", results.len(), if results.len() == 1 { "deploy" } else { "deploys" });
        let Some(seconds) = arguments.wait else { return Ok(ExitCode::SUCCESS) };
        let until = Instant::now() + Duration::from_secs(seconds);
        let mut worst = 0;
        for result in &results {
            let found = server.wait(result, &arguments.fail_on, until).await?;
            print(&found);
            worst = worst.max(code(&found));
        }
        Ok(ExitCode::from(worst))
    })
}

/// The address of the server, without a slash at its end.
fn base(settings: &Settings, arguments: &Arguments) -> String {
    let own = || match settings.web.public_url.as_str() {
        "" => format!("http://{}", settings.web.listen),
        url => url.to_owned(),
    };
    arguments.server.clone().unwrap_or_else(own).trim_end_matches('/').to_owned()
}

fn body(arguments: &Arguments) -> Value {
    let mut body = json!({ "crawl": arguments.wait.is_some() });
    let fields = [
        ("owner", &arguments.owner),
        ("host", &arguments.host),
        ("version", &arguments.version),
        ("at", &arguments.at),
        ("environment", &arguments.environment),
        ("commit", &arguments.commit),
        ("url", &arguments.url),
        ("dedupe_key", &arguments.dedupe_key),
    ];
    for (name, value) in fields {
        if let Some(value) = value {
            body[name] = json!(value);
        }
    }
    if !arguments.targets.is_empty() {
        body["targets"] = json!(arguments.targets);
    }
    body
}

/// The addresses of the results.
fn results(told: &Value) -> Result<Vec<String>> {
    let deploys = told["deploys"].as_array().context("the answer names no deploys")?;
    let url = |deploy: &Value| deploy["result_url"].as_str().map(str::to_owned);
    deploys.iter().map(url).collect::<Option<_>>().context("a deploy of the answer has no result")
}

/// What a pipeline is told (see the help of the command).
fn code(result: &Value) -> u8 {
    match result["outcome"].as_str() {
        Some("clean" | "improved") => 0,
        Some("regressed" | "mixed") => 1,
        Some(_) => 2,
        None => 3,
    }
}

fn print(result: &Value) {
    let outcome = result["outcome"].as_str().unwrap_or("not settled yet");
    println!("Deploy {}: {outcome}", result["id"]);
    for (sign, list) in [("+", "opened"), ("-", "resolved")] {
        let findings = result[list].as_array().map_or(&[][..], Vec::as_slice);
        for finding in findings.iter().take(MOST_LINES) {
            let text = |key: &str| finding[key].as_str().unwrap_or_default().to_owned();
            println!("  {sign} {:8} {}  {}", text("severity"), text("rule"), text("title"));
        }
        if findings.len() > MOST_LINES {
            println!("  {sign} and {} more", findings.len() - MOST_LINES);
        }
    }
}

/// A running Plumbline.
struct Server {
    base: String,
    client: reqwest::Client,
    token: Option<String>,
}

impl Server {
    fn new(base: String) -> Result<Server> {
        // A provider that is there already does as well.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = reqwest::Client::builder().build().context("the HTTP client")?;
        let token = std::env::var("PLUMBLINE_TOKEN").ok().filter(|token| !token.is_empty());
        Ok(Server { base, client, token })
    }

    async fn post(&self, path: &str, body: &Value) -> Result<Value> {
        let request = self.client.post(format!("{}{path}", self.base)).header("content-type", "application/json");
        self.answer(request.body(body.to_string()).timeout(MARGIN)).await
    }

    /// Asks until it is settled or the time is up.
    async fn wait(&self, path: &str, fail_on: &str, until: Instant) -> Result<Value> {
        loop {
            let wait_s = until.saturating_duration_since(Instant::now()).as_secs().min(ONE_WAIT_S);
            let url = format!("{}{path}?wait={wait_s}&fail_on={fail_on}", self.base);
            let request = self.client.get(url).timeout(Duration::from_secs(wait_s) + MARGIN);
            let result = self.answer(request).await?;
            if result["status"] == "settled" || wait_s == 0 {
                return Ok(result);
            }
        }
    }

    async fn answer(&self, request: reqwest::RequestBuilder) -> Result<Value> {
        let request = match &self.token {
            Some(token) => request.bearer_auth(token),
            None => request,
        };
        let answer = request.header("accept", "application/json").send().await;
        let answer = answer.with_context(|| format!("asking {}", self.base))?;
        let status = answer.status();
        let text = answer.text().await.context("reading the answer")?;
        let value: Value = serde_json::from_str(&text).unwrap_or(Value::Null);
        if !status.is_success() {
            let why = value["detail"].as_str().or(value["title"].as_str()).unwrap_or("no reason given");
            bail!("{} answered {status}: {why}", self.base);
        }
        Ok(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pipeline_is_told_by_the_exit_status() {
        let told = |outcome: Value| code(&json!({ "outcome": outcome }));
        let outcomes = ["clean", "improved", "regressed", "mixed", "unreachable"].map(|outcome| told(json!(outcome)));
        assert_eq!(outcomes, [0, 0, 1, 1, 2]);
        assert_eq!(told(Value::Null), 3);
    }
}
