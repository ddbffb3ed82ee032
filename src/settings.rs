//! The one settings struct: a TOML file over built-in defaults, `--set` and the command line over both.
//!
//! Looked for at `--config`, `PLUMBLINE_CONFIG`, `./plumbline.toml` (decisions 19). Unknown keys are refused by name, file
//! and line. Secrets never stand in it: settings name the environment variable or the file that holds them.

use std::collections::HashSet;
use std::fmt::Write as _;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail};
use plumbline_alerts::quiet::{MaintenanceSetting, SilenceSetting, WaiverSetting};
use plumbline_alerts::settings::{AlertSettings, RouteSetting, WebhookSetting};
use plumbline_crawler::net::{ByteLimits, Manners, NetSettings, TimeLimits};
use plumbline_crawler::probe::mcp::ProbeSettings;
use plumbline_crawler::probe::stdio::StdioSettings;
use plumbline_crawler::settings::{CommandTarget, CrawlSettings, Domains, FileTarget, Registry, SingleUrl, Targets};
use plumbline_crawler::upstream::UpstreamSettings;
use plumbline_rules::judge;
use plumbline_rules::rule_settings::RuleSetting;
use plumbline_rules::settings::Described;
use plumbline_store::housekeeping::Retention;
use toml::{Table, Value};

plumbline_rules::settings! {
    /// Everything Plumbline can be told.
    pub struct Settings {
        /// Where history is kept: a file for SQLite, or a postgres:// address. PLUMBLINE_DATABASE overrides it.
        pub database: String = "plumbline.db".to_owned(),
        /// A file that holds the database address, for addresses with a password. Empty: `database` is used.
        pub database_file: String = String::new(),
        /// What is logged.
        pub log: LogSettings = LogSettings::default(),
        /// The dashboard.
        pub web: WebSettings = WebSettings::default(),
        /// Rounds, intervals and leases.
        pub crawl: CrawlSettings = CrawlSettings::default(),
        /// MCP endpoints: what they are asked, and how long is waited.
        pub probe: ProbeSettings = ProbeSettings::default(),
        /// Commands that speak MCP over their standard streams: how long is waited, and what they may cost.
        pub stdio: StdioSettings = StdioSettings::default(),
        /// What is asked for behind a listing: its repository and its packages.
        pub upstream: UpstreamSettings = UpstreamSettings::default(),
        /// How long things are kept.
        pub retention: Retention = Retention::default(),
        /// Who watches the watcher.
        pub watch: WatchSettings = WatchSettings::default(),
        /// The wire: who we say we are, which addresses may be reached, limits and pace.
        pub net: NetSettings = NetSettings::default(),
        /// How much is read and said of one document.
        pub limits: judge::LimitSettings = judge::LimitSettings::default(),
        /// Judging agent cards.
        pub a2a: judge::A2aSettings = judge::A2aSettings::default(),
        /// Judging what registries list.
        pub registry: judge::RegistrySettings = judge::RegistrySettings::default(),
        /// Rules that are judged otherwise here than by their specification: of several about one rule the last counts.
        pub rules: Vec<RuleSetting> = Vec::new(),
        /// MCP registries to walk. Naming any target at all replaces the built-in ones.
        pub registries: Vec<Registry> = Vec::new(),
        /// Groups of A2A agents, by host or card address.
        pub domains: Vec<Domains> = Vec::new(),
        /// Single addresses of a stated kind.
        pub urls: Vec<SingleUrl> = Vec::new(),
        /// Documents on disk.
        pub files: Vec<FileTarget> = Vec::new(),
        /// MCP servers that are commands of your own. Nothing else is ever started.
        pub commands: Vec<CommandTarget> = Vec::new(),
        /// Telling people and programs.
        pub alerts: AlertSettings = AlertSettings::default(),
        /// Receivers of messages (docs/webhooks.md).
        pub webhooks: Vec<WebhookSetting> = Vec::new(),
        /// Which alerts go to which receivers of groups. A receiver of groups that no route names has one of its own.
        pub routes: Vec<RouteSetting> = Vec::new(),
        /// For a while nobody wants to hear of what matches.
        pub silences: Vec<SilenceSetting> = Vec::new(),
        /// Accepted deviations: shown on their findings and counted apart.
        pub waivers: Vec<WaiverSetting> = Vec::new(),
        /// Planned work, once or again and again: alerts are held until somebody has looked after its end.
        pub maintenance: Vec<MaintenanceSetting> = Vec::new(),
    }
}

plumbline_rules::settings! {
    /// What is logged.
    pub struct LogSettings {
        /// Which lines: error, warn, info, debug, or a filter such as `info,plumbline_crawler=debug`.
        pub filter: String = "info,tokio_cron_scheduler=warn".to_owned(),
        /// `text` for people, `json` for machines.
        pub format: LogFormat = LogFormat::Text,
    }
}

plumbline_rules::words! {
    /// How log lines look.
    pub enum LogFormat {
        /// For people.
        Text = "text",
        /// One JSON object a line.
        Json = "json",
    }
}

plumbline_rules::settings! {
    /// The dashboard.
    pub struct WebSettings {
        /// The address and port it listens on.
        pub listen: String = "127.0.0.1:8080".to_owned(),
        /// The name of this instance, shown on every page.
        pub name: String = "Plumbline".to_owned(),
        /// The address people reach it at, for links in messages. Empty: made from `listen`.
        pub public_url: String = String::new(),
        /// The folder of monthly snapshots; what is in it is handed out at /snapshots. Empty: nothing is.
        pub snapshots: String = String::new(),
        /// Whether `serve` takes them by itself: of the month that ended last, as soon as it has ended, where there is a folder.
        pub take_snapshots: bool = true,
    }
}

plumbline_rules::settings! {
    /// Who watches the watcher.
    pub struct WatchSettings {
        /// An address that is called (GET) after each good pass, at most once a minute. Empty: none.
        pub ping_url: String = String::new(),
    }
}

/// What the command line says about settings.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct Options {
    /// Settings file [default: ./plumbline.toml if there is one].
    #[arg(long, global = true, value_name = "FILE", env = "PLUMBLINE_CONFIG")]
    pub config: Option<PathBuf>,
    /// SQLite file or postgres:// address.
    #[arg(long, global = true, value_name = "URL", env = "PLUMBLINE_DATABASE", hide_env_values = true)]
    pub database: Option<String>,
    /// Overrides one setting; may be given several times.
    #[arg(long, global = true, value_name = "KEY=VALUE")]
    pub set: Vec<String>,
}

impl Settings {
    /// Reads the effective settings.
    ///
    /// # Errors
    /// When the file cannot be read, a key is unknown, a value does not fit, or two targets are the same.
    pub fn load(options: &Options) -> Result<Settings> {
        let path =
            options.config.clone().or_else(|| Path::new("plumbline.toml").is_file().then(|| "plumbline.toml".into()));
        let mut table = match &path {
            Some(path) => read(path)?,
            None => Table::new(),
        };
        for pair in &options.set {
            set(&mut table, pair)?;
        }
        let mut settings: Settings =
            table.try_into().map_err(|error| anyhow!("--set {}: {}", options.set.join(" --set "), one_line(&error)))?;
        if let Some(database) = &options.database {
            settings.database.clone_from(database);
        } else if !settings.database_file.is_empty() {
            let held = std::fs::read_to_string(&settings.database_file);
            settings.database =
                held.with_context(|| format!("database_file {}", settings.database_file))?.trim().to_owned();
        }
        settings.checked().with_context(|| path.map_or("settings".to_owned(), |path| path.display().to_string()))
    }

    /// What is watched: what the settings name, or the built-in targets when they name none.
    pub fn targets(&self) -> Targets {
        let named = Targets {
            registries: self.registries.clone(),
            domains: self.domains.clone(),
            urls: self.urls.clone(),
            files: self.files.clone(),
            commands: self.commands.clone(),
        };
        if named == Targets::default() { Targets::builtin() } else { named }
    }

    /// What the rules are told.
    pub fn judging(&self) -> judge::Settings {
        judge::Settings {
            a2a: self.a2a.clone(),
            registry: self.registry.clone(),
            rules: self.rules.clone(),
            limits: self.limits.clone(),
        }
    }

    /// The address the dashboard listens on.
    ///
    /// # Errors
    /// When `web.listen` is no address with a port.
    pub fn listen(&self) -> Result<SocketAddr> {
        let listen = &self.web.listen;
        listen.parse().map_err(|_| anyhow!("web.listen: `{listen}` is no address with a port, such as 127.0.0.1:8080"))
    }

    fn checked(self) -> Result<Settings> {
        self.listen()?;
        for setting in &self.rules {
            if !setting.names_something() {
                bail!("rules.rule: `{}` is neither a rule nor a family such as openapi/*", setting.rule);
            }
        }
        if !self.watch.ping_url.is_empty() {
            absolute("watch.ping_url", &self.watch.ping_url)?;
        }
        let mut seen = HashSet::new();
        for registry in &self.registries {
            absolute("registries.base", &registry.base)?;
            let fresh =
                seen.insert(registry.name.clone()) && seen.insert(registry.base.trim_end_matches('/').to_owned());
            if !fresh {
                bail!("registries: `{}` ({}) stands twice", registry.name, registry.base);
            }
        }
        for address in self.domains.iter().flat_map(|group| &group.list) {
            plumbline_crawler::sources::domains::card_address(address).map_err(|why| anyhow!("domains.list: {why}"))?;
            if !seen.insert(format!("card {address}")) {
                bail!("domains.list: `{address}` stands twice");
            }
        }
        for single in &self.urls {
            absolute("urls.url", &single.url)?;
            if !seen.insert(format!("{} {}", single.kind, single.url)) {
                bail!("urls: `{}` of kind {} stands twice", single.url, single.kind);
            }
        }
        for webhook in &self.webhooks {
            if !seen.insert(format!("webhook {}", webhook.name)) {
                bail!("webhooks: `{}` stands twice", webhook.name);
            }
        }
        for route in &self.routes {
            route.route()?;
            if !seen.insert(format!("route {}", route.name)) {
                bail!("routes: `{}` stands twice", route.name);
            }
            if let Some(unknown) =
                route.webhooks.iter().find(|name| !self.webhooks.iter().any(|one| one.name == **name))
            {
                bail!("routes: `{}` names the webhook `{unknown}`, which the settings do not", route.name);
            }
        }
        let now_s = chrono::Utc::now().timestamp();
        let quiet = self.silences.iter().map(|one| ("silence", &one.name, one.silence(now_s).map(|_| ())));
        let quiet = quiet.chain(self.waivers.iter().map(|one| ("waiver", &one.name, one.waiver(now_s).map(|_| ()))));
        let windows = self.maintenance.iter().map(|one| ("maintenance", &one.name, one.maintenance(now_s).map(|_| ())));
        for (what, name, checked) in quiet.chain(windows) {
            checked.map_err(|why| why.of(what, name))?;
            if !seen.insert(format!("{what} {name}")) {
                bail!("{what}: `{name}` stands twice");
            }
        }
        for file in &self.files {
            if !seen.insert(format!("file {}", file.path)) {
                bail!("files: `{}` stands twice", file.path);
            }
        }
        for command in &self.commands {
            if command.command.first().is_none_or(String::is_empty) {
                bail!("commands.command: `{}` names no program", command.name);
            }
            if !seen.insert(format!("command {}", command.name)) {
                bail!("commands: `{}` stands twice", command.name);
            }
        }
        Ok(self)
    }
}

fn absolute(key: &str, address: &str) -> Result<()> {
    let url =
        url::Url::parse(address).map_err(|error| anyhow!("{key}: `{address}` is no absolute address ({error})"))?;
    if !matches!(url.scheme(), "http" | "https") || url.host().is_none() {
        bail!("{key}: `{address}` is no http or https address");
    }
    Ok(())
}

fn read(path: &Path) -> Result<Table> {
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    // Read into the struct first: only there an error knows its line.
    toml::from_str::<Settings>(&text)
        .map_err(|error| anyhow!("{}: {}", path.display(), error.to_string().trim_end()))?;
    toml::from_str(&text).with_context(|| path.display().to_string())
}

fn set(table: &mut Table, pair: &str) -> Result<()> {
    let Some((key, text)) = pair.split_once('=') else {
        bail!("--set {pair}: KEY=VALUE was expected, such as --set web.name=Fleet")
    };
    let value = toml::from_str::<Table>(&format!("v = {text}")).ok().and_then(|mut t| t.remove("v"));
    let mut place = table;
    let mut path = key.trim().split('.').peekable();
    while let Some(segment) = path.next() {
        if path.peek().is_none() {
            place.insert(segment.to_owned(), value.unwrap_or_else(|| Value::String(text.to_owned())));
            return Ok(());
        }
        let below = place.entry(segment).or_insert_with(|| Value::Table(Table::new()));
        place = below.as_table_mut().ok_or_else(|| anyhow!("--set {pair}: `{segment}` is no table"))?;
    }
    Ok(())
}

fn one_line(error: &toml::de::Error) -> String {
    error.to_string().split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The settings as a commented TOML file.
pub fn print(settings: &Settings) -> Result<String> {
    let table = Table::try_from(settings).context("settings can be written")?;
    let mut out = String::from(
        "# Plumbline's settings. Every key is shown with its value; what is left out of a file keeps its default.\n",
    );
    let docs = sections();
    let fields = |section: &str| docs.iter().find(|(name, _)| *name == section).map_or(&[][..], |(_, fields)| fields);
    for (key, about) in Settings::FIELDS {
        match &table[*key] {
            Value::Table(section) => {
                let _ = write!(out, "\n{}[{key}]\n", comment(about));
                write_section(&mut out, key, section, fields(key), &docs);
            }
            Value::Array(entries) if entries.iter().all(Value::is_table) => write_groups(&mut out, key, about, entries),
            Value::String(address) if *key == "database" => {
                let _ = write!(out, "\n{}{key} = {}\n", comment(about), Value::String(without_password(address)));
            }
            value => {
                let _ = write!(out, "\n{}{key} = {value}\n", comment(about));
            }
        }
    }
    Ok(out)
}

type Fields = &'static [(&'static str, &'static str)];

fn sections() -> Vec<(&'static str, Fields)> {
    vec![
        ("log", LogSettings::FIELDS),
        ("web", WebSettings::FIELDS),
        ("crawl", CrawlSettings::FIELDS),
        ("probe", ProbeSettings::FIELDS),
        ("stdio", StdioSettings::FIELDS),
        ("upstream", UpstreamSettings::FIELDS),
        ("retention", Retention::FIELDS),
        ("watch", WatchSettings::FIELDS),
        ("limits", judge::LimitSettings::FIELDS),
        ("a2a", judge::A2aSettings::FIELDS),
        ("registry", judge::RegistrySettings::FIELDS),
        ("alerts", AlertSettings::FIELDS),
        ("net", NetSettings::FIELDS),
        ("net.manners", Manners::FIELDS),
        ("net.bytes", ByteLimits::FIELDS),
        ("net.time", TimeLimits::FIELDS),
    ]
}

fn write_section(out: &mut String, path: &str, section: &Table, fields: Fields, docs: &[(&'static str, Fields)]) {
    let mut nested = Vec::new();
    for (key, about) in fields {
        match &section[*key] {
            Value::Table(table) => nested.push((*key, *about, table)),
            value => {
                let _ = write!(out, "{}{key} = {value}\n\n", comment(about));
            }
        }
    }
    for (key, about, table) in nested {
        let path = format!("{path}.{key}");
        let _ = writeln!(out, "{}[{path}]", comment(about));
        let fields = docs.iter().find(|(name, _)| *name == path).map_or(&[][..], |(_, fields)| fields);
        write_section(out, &path, table, fields, docs);
    }
    while out.ends_with("\n\n") {
        out.pop();
    }
}

fn write_groups(out: &mut String, key: &str, about: &str, entries: &[Value]) {
    let _ = write!(out, "\n{}", comment(about));
    for line in example_of(key).lines() {
        let _ = writeln!(out, "# {line}");
    }
    for entry in entries {
        // Written as a list of one, so that tables within it are named by their whole path.
        let group = Table::from_iter([(key.to_owned(), Value::Array(vec![entry.clone()]))]);
        let _ = write!(out, "{}", toml::to_string(&group).unwrap_or_default());
    }
}

fn example_of(key: &str) -> &'static str {
    match key {
        "rules" => {
            "[[rules]]\nrule = \"common/secret-high-entropy\"   # or a family: \"openapi/*\"\n\
             say = \"off\"                            # off, info, warning or error\n\
             tag = \"tier=2\"                         # only targets with this tag; left out: all\n\
             own = true                             # only your own targets; left out: all"
        }
        "registries" => {
            "[[registries]]\nname = \"official\"\nbase = \"https://registry.modelcontextprotocol.io\"\npace_ms = 1000\n\
             key_env = \"REGISTRY_KEY\"   # or key_file = \"/run/secrets/registry\""
        }
        "domains" => {
            "[[domains]]\nbuiltin = true            # the list that comes with Plumbline\n\
             [[domains]]\nlist = [\"agent.example.com\", \"https://example.com/agents/tides/agent-card.json\"]\n\
             # or file = \"domains.txt\"\nowner = \"harbour\"\ntags = [\"tier=1\"]\nown = true\n\
             headers_env = { authorization = \"AGENT_TOKEN\" }"
        }
        "urls" => {
            "[[urls]]\nurl = \"https://example.com/openapi.json\"\nkind = \"openapi\"\ntags = [\"tier=2\"]\n\
             [[urls]]\nurl = \"https://tides.example.com/mcp\"\nkind = \"mcp-endpoint\"\nown = true\n\
             [urls.active]             # only for what is yours (docs/probing.md)\n\
             tools = [{ name = \"tide_table\", arguments = { harbour = \"Bergen\" } }]"
        }
        "commands" => {
            "[[commands]]\nname = \"tides\"\ncommand = [\"npx\", \"-y\", \"@example/tides-mcp\"]\n\
             env = [\"PATH\", \"HOME\"]     # names of variables; nothing else is passed on\n\
             tools = [{ name = \"tide_table\", arguments = { harbour = \"Bergen\" } }]   # only these are called"
        }
        "webhooks" => {
            "[[webhooks]]\nname = \"machine\"\nurl = \"https://hooks.example.com/plumbline\"\n\
             secret_file = \"webhook.secret\"\ntypes = [\"finding.*\", \"target.*\"]\n\
             [[webhooks]]\nname = \"team\"\nformat = \"slack\"\nurl_file = \"slack.url\"\ndigest = \"daily\"\n\
             digest_zone = \"Europe/Berlin\""
        }
        "routes" => {
            "[[routes]]\nname = \"on-call\"\nmatch = \"tag:tier=1 severity:error\"\nwebhooks = [\"team\"]\n\
             quiet_hours = { zone = \"Europe/Berlin\", from = \"22:00\", to = \"07:00\" }"
        }
        "silences" => {
            "[[silences]]\nname = \"pier\"\nmatch = \"owner:harbour\"\nreason = \"moving the pier\"\nauthor = \"Ada\"\n\
             until = \"2026-12-24T12:00:00+01:00\""
        }
        "waivers" => {
            "[[waivers]]\nname = \"old-clients\"\nrule = \"a2a/*\"\nmatch = \"target:agent.example.com\"\n\
             reason = \"old client, gone in spring\"\nauthor = \"Ada\"\nuntil = \"2027-03-31T00:00:00Z\""
        }
        "maintenance" => {
            "[[maintenance]]\nname = \"backups\"\nmatch = \"host:example.com\"\nauthor = \"Ada\"\n\
             zone = \"Europe/Berlin\"\ncron = \"0 3 * * 0\"\nminutes = 60"
        }
        "files" => "[[files]]\npath = \"cards/tides.json\"\nkind = \"a2a-card\"\nown = true",
        _ => "",
    }
}

fn comment(about: &str) -> String {
    about.lines().map(|line| format!("# {}\n", line.trim())).collect()
}

pub fn without_password(address: &str) -> String {
    match url::Url::parse(address) {
        Ok(mut url) if url.password().is_some() => {
            let masked = url.set_password(Some("***"));
            if masked.is_ok() { url.to_string() } else { "***".to_owned() }
        }
        _ => address.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(text: &str, set: &[&str]) -> Result<Settings, String> {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("plumbline.toml");
        std::fs::write(&path, text).expect("it can be written");
        let options =
            Options { config: Some(path), database: None, set: set.iter().map(ToString::to_string).collect() };
        Settings::load(&options).map_err(|error| format!("{error:#}"))
    }

    #[test]
    fn what_the_page_for_newcomers_shows_is_read() {
        let settings = load(plumbline_web::SAMPLE_SETTINGS, &[]).expect("it is read");
        assert_eq!((settings.registries.len(), settings.domains.len()), (1, 1));
    }

    #[test]
    fn a_wrong_key_is_named_with_its_file_and_line() {
        let error = load("[web]\n\nlisten = \"127.0.0.1:1\"\nlistne = 1\n", &[]).unwrap_err();
        assert!(error.contains("plumbline.toml") && error.contains("line 4") && error.contains("listne"), "{error}");
        let error = load("[crawl]\nworkers = \"many\"\n", &[]).unwrap_err();
        assert!(error.contains("line 2") && error.contains("workers"), "{error}");
    }

    #[test]
    fn what_stands_twice_is_refused() {
        let twice = "[[domains]]\nlist = [\"a.example\", \"a.example\"]\n";
        assert!(load(twice, &[]).unwrap_err().contains("`a.example` stands twice"));
        let registry = "[[registries]]\nname = \"a\"\nbase = \"https://r.example\"\n";
        assert!(load(&format!("{registry}{registry}"), &[]).unwrap_err().contains("stands twice"));
    }

    #[test]
    fn addresses_are_checked_where_they_are_read() {
        assert!(
            load("[[registries]]\nname = \"a\"\nbase = \"r.example\"\n", &[]).unwrap_err().contains("registries.base")
        );
        assert!(
            load("[[urls]]\nurl = \"ftp://x.example\"\nkind = \"openapi\"\n", &[]).unwrap_err().contains("no http")
        );
        assert!(
            load("[[urls]]\nurl = \"https://x.example\"\nkind = \"opnapi\"\n", &[]).unwrap_err().contains("`opnapi`")
        );
        assert!(load("[web]\nlisten = \"8080\"\n", &[]).unwrap_err().contains("web.listen"));
    }

    #[test]
    fn a_rule_that_does_not_exist_cannot_be_settled() {
        let about = |rule: &str| format!("[[rules]]\nrule = \"{rule}\"\nsay = \"info\"\n");
        assert!(load(&about("a2a/*"), &[]).expect("it loads").judging().rules[0].names_something());
        assert!(load(&about("a2a/no-such"), &[]).unwrap_err().contains("rules.rule: `a2a/no-such`"));
        assert!(load("[[rules]]\nrule = \"a2a/*\"\nsay = \"loud\"\n", &[]).unwrap_err().contains("loud"));
    }

    #[test]
    fn set_overrides_one_key_and_names_a_wrong_one() {
        let settings = load("[web]\nname = \"A\"\n", &["web.name=Our fleet", "crawl.workers=3"]).expect("it loads");
        assert_eq!((settings.web.name.as_str(), settings.crawl.workers), ("Our fleet", 3));
        assert!(load("", &["web.nam=x"]).unwrap_err().contains("--set web.nam=x"));
        assert!(load("", &["web"]).unwrap_err().contains("KEY=VALUE"));
    }

    #[test]
    fn naming_a_target_replaces_the_builtin_ones() {
        assert_eq!(load("", &[]).expect("it loads").targets(), Targets::builtin());
        let own = load("[[domains]]\nlist = [\"a.example\"]\n", &[]).expect("it loads").targets();
        assert!(own.registries.is_empty() && own.domains.len() == 1);
    }

    #[test]
    fn the_example_file_is_what_config_prints() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("config/plumbline.toml");
        let printed = print(&Settings::default()).expect("it prints");
        if std::env::var_os("PLUMBLINE_BLESS").is_some() {
            std::fs::write(&path, &printed).expect("it can be written");
        }
        let kept = std::fs::read_to_string(&path).expect("config/plumbline.toml is there");
        assert_eq!(kept, printed, "run the tests once with PLUMBLINE_BLESS=1");
        let read_back: Settings = toml::from_str(&printed).expect("what is printed can be read");
        assert_eq!(read_back, Settings::default());
    }

    #[test]
    fn every_group_is_shown_by_an_example_of_itself_that_can_be_read() {
        let table = Table::try_from(Settings::default()).expect("settings can be written");
        let groups = table.iter().filter(|(_, value)| value.as_array().is_some_and(Vec::is_empty));
        for (key, _) in groups {
            let example = example_of(key);
            assert!(example.starts_with(&format!("[[{key}]]\n")), "{key}: {example}");
            let text: String =
                example.lines().filter(|line| !line.starts_with('#')).map(|line| format!("{line}\n")).collect();
            toml::from_str::<Settings>(&text).expect(key);
        }
    }

    #[test]
    fn a_password_is_not_printed() {
        let settings = Settings { database: "postgres://p:hunter2@db/x".to_owned(), ..Settings::default() };
        let printed = print(&settings).expect("it prints");
        assert!(printed.contains("postgres://p:***@db/x") && !printed.contains("hunter2"), "{printed}");
    }
}
