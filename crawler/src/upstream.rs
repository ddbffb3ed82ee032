//! What stands behind a listing besides its remotes: the repository that it names and the packages that install it. Only
//! where the settings ask for it, and each address at most once a week unless a change is confirmed.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use http::Method;
use plumbline_rules::judge::Settings;
use plumbline_rules::listing::judge_drift;
use plumbline_rules::report::{Outcome, RuleResult};
use plumbline_rules::session::{Exchange, Response, Session, Step};
use plumbline_rules::settings;
use serde_json::{Value, json};
use url::Url;

use crate::net::{Ask, BodyKind, Client, NetError, Way};

settings! {
    /// What is asked for behind a listing. A package is looked up only where the address of its own registry stands here.
    pub struct UpstreamSettings {
        /// Whether the repositories that listings name are asked once a week if they are there.
        pub repositories: bool = false,
        /// The registry for packages of type `npm`, such as `https://packages.example.com`. Empty: they are not looked up.
        pub npm: String = String::new(),
        /// The same for type `pypi`.
        pub pypi: String = String::new(),
        /// The same for type `nuget`.
        pub nuget: String = String::new(),
    }
}

impl UpstreamSettings {
    /// Whether anything is asked for at all.
    #[must_use]
    pub fn is_on(&self) -> bool {
        self.repositories || [&self.npm, &self.pypi, &self.nuget].iter().any(|base| !base.is_empty())
    }
}

/// Seconds for which an answer is good.
pub(crate) const WEEK_S: i64 = 7 * 86_400;
/// Answers that are remembered; beyond them all are asked for again.
const MOST_REMEMBERED: usize = 50_000;
/// How long a host may want to be left alone before a look at it is put off.
const PATIENCE: Duration = Duration::from_secs(10);
/// Packages of one listing that are looked up.
const MOST_PACKAGES: usize = 16;
/// The rules that these looks are for.
const RULES: [&str; 3] =
    ["registry/repository-unreachable", "registry/package-ownership-mismatch", "registry/package-not-found"];

/// Looks behind listings, and what they brought in the last week.
#[derive(Debug, Default)]
pub struct Upstream {
    settings: UpstreamSettings,
    /// When each was looked at, in Unix seconds, and as what it is seen by the rules.
    seen: Mutex<HashMap<Behind, (i64, Value)>>,
}

/// Something behind a listing.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Behind {
    thing: Thing,
    url: Url,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Thing {
    Repository,
    Package {
        /// Its type, as `registryType` names it.
        kind: String,
        identifier: String,
        version: String,
        /// Where its readme is, when that is an address of its own.
        readme: Option<Url>,
        said: Said,
    },
}

/// Where a package says which server it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Said {
    /// In a member of its manifest, which is JSON.
    Manifest,
    /// In its description, a member of JSON.
    Description,
    /// In a readme at an address of its own.
    Readme,
}

impl Upstream {
    /// Looks of this sort.
    #[must_use]
    pub fn new(settings: UpstreamSettings) -> Self {
        Upstream { settings, seen: Mutex::default() }
    }

    /// Whether anything is asked for.
    pub(crate) fn is_on(&self) -> bool {
        self.settings.is_on()
    }

    /// Looks behind a `server.json` and judges what is there. What was asked for within the week is not asked for again,
    /// unless it is to be confirmed. Gives the conversation and the results; pointers lead into the `server.json`.
    ///
    /// # Errors
    /// Only when we failed.
    pub(crate) async fn look(
        &self,
        client: &Client,
        server: &Value,
        settings: &Settings,
        is_verification: bool,
        now_s: i64,
    ) -> Result<(Session, Vec<RuleResult>), NetError> {
        let (mut exchanges, mut looks) = (Vec::new(), Vec::new());
        for behind in all_behind(server, &self.settings) {
            if let Some(look) = self.remembered(&behind, now_s).filter(|_| !is_verification) {
                looks.push(look);
                continue;
            }
            if client.politeness().wait_for(&behind.url) > PATIENCE {
                // Its host wants to be left alone: it is not seen this time.
                looks.push(look_of(&behind.thing, &[]));
                continue;
            }
            let asked = ask(client, &behind).await?;
            let look = look_of(&behind.thing, &asked);
            exchanges.extend(asked.into_iter().flatten());
            self.remember(behind, now_s, look.clone());
            looks.push(look);
        }
        Ok((Session::from(exchanges), judged(server, &looks, settings)))
    }

    fn remembered(&self, behind: &Behind, now_s: i64) -> Option<Value> {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.get(behind).filter(|(at_s, _)| (0..WEEK_S).contains(&(now_s - at_s))).map(|(_, look)| look.clone())
    }

    fn remember(&self, behind: Behind, now_s: i64, look: Value) {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if seen.len() >= MOST_REMEMBERED {
            seen.clear();
        }
        seen.insert(behind, (now_s, look));
    }
}

/// What the settings want to be asked for behind a `server.json`.
fn all_behind(server: &Value, settings: &UpstreamSettings) -> Vec<Behind> {
    let repository = server.pointer("/repository/url").and_then(Value::as_str).filter(|_| settings.repositories);
    let repository = repository.and_then(|url| Url::parse(url.trim()).ok());
    let repository = repository.filter(|url| matches!(url.scheme(), "http" | "https"));
    let packages = server["packages"].as_array().into_iter().flatten().take(MOST_PACKAGES);
    let packages = packages.filter_map(|package| package_behind(package, settings));
    repository.map(|url| Behind { thing: Thing::Repository, url }).into_iter().chain(packages).collect()
}

fn package_behind(package: &Value, settings: &UpstreamSettings) -> Option<Behind> {
    let text = |member: &str| package[member].as_str().filter(|text| !text.is_empty());
    let (kind, identifier, version) = (text("registryType")?, text("identifier")?, text("version")?);
    let (base, said) = match kind {
        "npm" => (&settings.npm, Said::Manifest),
        "pypi" => (&settings.pypi, Said::Description),
        "nuget" => (&settings.nuget, Said::Readme),
        _ => return None,
    };
    // A package that says it lives elsewhere is none of the registry that the settings name.
    let origin = |url: &str| Url::parse(url).ok().map(|url| url.origin());
    if text("registryBaseUrl").is_some_and(|own| origin(own) != origin(base)) {
        return None;
    }
    let (url, readme) = match said {
        Said::Manifest => (below(base, &[identifier, version])?, None),
        Said::Description => (below(base, &["pypi", identifier, version, "json"])?, None),
        Said::Readme => {
            let (identifier, version) = (identifier.to_lowercase(), version.to_lowercase());
            let place = |file: &str| below(base, &["v3-flatcontainer", &identifier, &version, file]);
            (place(&format!("{identifier}.nuspec"))?, place("readme"))
        }
    };
    let [kind, identifier, version] = [kind, identifier, version].map(str::to_owned);
    Some(Behind { thing: Thing::Package { kind, identifier, version, readme, said }, url })
}

/// An address below another; `None` where the other is none. Whatever the segments say, each stays one.
fn below(base: &str, segments: &[&str]) -> Option<Url> {
    let mut url = Url::parse(base).ok()?;
    // A segment of dots alone would lead elsewhere.
    if segments.iter().any(|segment| segment.chars().all(|c| c == '.')) {
        return None;
    }
    url.path_segments_mut().ok()?.pop_if_empty().extend(segments);
    Some(url)
}

/// Asks for it; of a package with a readme of its own, for that too. Each asking is the exchanges that it took.
async fn ask(client: &Client, behind: &Behind) -> Result<Vec<Vec<Exchange>>, NetError> {
    let fetch = async |url: &Url, method: Method, kind: BodyKind| {
        let ask = Ask {
            step: Some(Step::Document),
            method,
            accept: Some("application/json, */*;q=0.5"),
            // A forge has not listed itself: what it says to robots holds.
            way: if kind == BodyKind::Page { Way::Crawl } else { Way::Listed },
            ..Ask::get(url.as_str(), kind)
        };
        Ok::<_, NetError>(client.fetch(ask).await?.exchanges)
    };
    match &behind.thing {
        Thing::Repository => Ok(vec![fetch(&behind.url, Method::HEAD, BodyKind::Page).await?]),
        Thing::Package { readme, .. } => {
            let mut asked = vec![fetch(&behind.url, Method::GET, BodyKind::Other).await?];
            if let Some(readme) = readme {
                asked.push(fetch(readme, Method::GET, BodyKind::Other).await?);
            }
            Ok(asked)
        }
    }
}

/// A look as the rules see it (kind `registry-drift`).
fn look_of(thing: &Thing, asked: &[Vec<Exchange>]) -> Value {
    let answer = |number: usize| asked.get(number)?.last()?.response.as_ref();
    // Only these say whether it is there.
    let response = answer(0).filter(|response| matches!(response.status, 200 | 404 | 410));
    let response = response.map(|response| json!({ "status": response.status, "body": null }));
    match thing {
        Thing::Repository => json!({ "target": "repository", "response": response }),
        Thing::Package { kind, identifier, version, said, .. } => {
            let mut look = json!({
                "target": "package",
                "registryType": kind,
                "identifier": identifier,
                "version": version,
                "response": response,
            });
            let says = answer(0).filter(|response| response.status == 200 && response.cut.is_none());
            if let Some(package) = says.and_then(|manifest| own_words(*said, manifest, answer(1))) {
                look["package"] = package;
            }
            look
        }
    }
}

/// What a package says of the server it is; `None` where that could not be read.
fn own_words(said: Said, manifest: &Response, readme: Option<&Response>) -> Option<Value> {
    let object = || serde_json::from_slice::<Value>(&manifest.body()).ok().filter(Value::is_object);
    match said {
        Said::Manifest => Some(json!({ "mcpName": object()?["mcpName"] })),
        Said::Description => Some(json!({ "readme": mentions(object()?.pointer("/info/description")?.as_str()?) })),
        Said::Readme => {
            let readme = readme?;
            match readme.status {
                200 if readme.cut.is_none() => {
                    Some(json!({ "readme": mentions(&String::from_utf8_lossy(&readme.body())) }))
                }
                // A package without a readme names no server.
                404 => Some(json!({ "readme": "" })),
                _ => None,
            }
        }
    }
}

/// The places of a readme where a server is named, which is all that a rule reads of it: thousands are remembered.
fn mentions(readme: &str) -> String {
    let named = readme.match_indices("mcp-name:").take(50);
    named.map(|(at, _)| readme[at..].chars().take(300).chain(['\n']).collect::<String>()).collect()
}

/// What is said where there is no look: nothing is known of what stands behind the listing.
pub(crate) fn unasked(server: &Value, settings: &Settings) -> Vec<RuleResult> {
    judged(server, &[], settings)
}

/// What the rules say of these looks.
fn judged(server: &Value, looks: &[Value], settings: &Settings) -> Vec<RuleResult> {
    let report = judge_drift(&json!({ "server": server }), looks, settings);
    let mut results: Vec<RuleResult> =
        report.results.into_iter().filter(|result| RULES.contains(&result.rule.id)).collect();
    for result in &mut results {
        let Outcome::Fires(occurrences) = &mut result.outcome else { continue };
        for occurrence in occurrences {
            if let Some(inside) = occurrence.pointer.strip_prefix("/entry/server") {
                occurrence.pointer = inside.to_owned();
            }
            (occurrence.line, occurrence.column) = (None, None);
        }
    }
    results
}

#[cfg(test)]
mod tests {
    use super::*;

    fn everything() -> UpstreamSettings {
        UpstreamSettings {
            repositories: true,
            npm: "https://npm.example".to_owned(),
            pypi: "https://pypi.example/".to_owned(),
            nuget: "https://nuget.example/api".to_owned(),
        }
    }

    fn server() -> Value {
        json!({
            "name": "io.github.tidehouse/tides",
            "version": "1.0.0",
            "repository": { "url": "https://git.example/tides" },
            "packages": [
                { "registryType": "npm", "identifier": "@tidehouse/tides", "version": "1.0.0" },
                { "registryType": "pypi", "identifier": "tides", "version": "1.0.0" },
                { "registryType": "nuget", "identifier": "Tides", "version": "1.0.0-B" },
                { "registryType": "oci", "identifier": "example/tides", "version": "1.0.0" },
                { "registryType": "npm", "identifier": "..", "version": "1.0.0" },
                { "registryType": "npm", "identifier": "tides" },
                { "registryType": "npm", "identifier": "tides", "version": "2.0.0", "registryBaseUrl": "https://own.example" },
            ],
        })
    }

    #[test]
    fn what_the_settings_name_is_asked_for_and_nothing_else() {
        let urls = |settings: &UpstreamSettings| -> Vec<String> {
            all_behind(&server(), settings).into_iter().map(|behind| behind.url.to_string()).collect()
        };
        assert_eq!(
            urls(&everything()),
            [
                "https://git.example/tides",
                "https://npm.example/@tidehouse%2Ftides/1.0.0",
                "https://pypi.example/pypi/tides/1.0.0/json",
                "https://nuget.example/api/v3-flatcontainer/tides/1.0.0-b/tides.nuspec",
            ]
        );
        assert!(urls(&UpstreamSettings::default()).is_empty() && !UpstreamSettings::default().is_on());
    }

    fn answered(status: u16, body: &str) -> Vec<Exchange> {
        let response = json!({ "status": status, "headers": {}, "raw": body });
        let exchange = json!({ "request": { "method": "GET", "url": "https://a.example/" }, "response": response });
        vec![serde_json::from_value(exchange).expect("an exchange")]
    }

    fn fired(thing: &Thing, asked: &[Vec<Exchange>]) -> Vec<String> {
        let results = judged(&server(), &[look_of(thing, asked)], &Settings::default());
        let fires = results.into_iter().filter_map(|result| match result.outcome {
            Outcome::Fires(at) => Some(format!("{} {}", result.rule.id, at[0].pointer)),
            _ => None,
        });
        fires.collect()
    }

    fn package(kind: &str, identifier: &str, said: Said) -> Thing {
        let version = if kind == "nuget" { "1.0.0-B" } else { "1.0.0" }.to_owned();
        Thing::Package { kind: kind.to_owned(), identifier: identifier.to_owned(), version, readme: None, said }
    }

    #[test]
    fn what_is_gone_and_what_names_another_server_is_found() {
        let nothing: [String; 0] = [];
        let npm = || package("npm", "@tidehouse/tides", Said::Manifest);
        assert_eq!(fired(&npm(), &[answered(404, "")]), ["registry/package-not-found /packages/0/version"]);
        let ownership = "registry/package-ownership-mismatch /packages/";
        assert_eq!(fired(&npm(), &[answered(200, r#"{"name": "x"}"#)]), [format!("{ownership}0/identifier")]);
        assert_eq!(fired(&npm(), &[answered(200, r#"{"mcpName": "io.github.tidehouse/tides"}"#)]), nothing);
        let pypi = || package("pypi", "tides", Said::Description);
        assert_eq!(
            fired(&pypi(), &[answered(200, r#"{"info": {"description": "mcp-name: a/b"}}"#)]),
            [format!("{ownership}1/identifier")]
        );
        let nuget = || package("nuget", "Tides", Said::Readme);
        assert_eq!(fired(&nuget(), &[answered(200, ""), answered(404, "")]), [format!("{ownership}2/identifier")]);
        let named = answered(200, "<!-- mcp-name: io.github.tidehouse/tides -->");
        assert_eq!(fired(&nuget(), &[answered(200, ""), named]), nothing);
        assert_eq!(
            fired(&Thing::Repository, &[answered(410, "")]),
            ["registry/repository-unreachable /repository/url"]
        );
    }

    #[test]
    fn of_what_did_not_answer_as_it_should_nothing_is_said() {
        let nothing: [String; 0] = [];
        for status in [401, 402, 403, 429, 500, 503] {
            assert_eq!(fired(&Thing::Repository, &[answered(status, "")]), nothing, "{status}");
            assert_eq!(
                fired(&package("pypi", "tides", Said::Description), &[answered(status, "")]),
                nothing,
                "{status}"
            );
        }
        assert_eq!(fired(&Thing::Repository, &[Vec::new()]), nothing);
        assert_eq!(fired(&package("pypi", "tides", Said::Description), &[answered(200, "<html>")]), nothing);
        assert_eq!(fired(&package("nuget", "Tides", Said::Readme), &[answered(200, ""), answered(503, "")]), nothing);
    }

    /// One name in two registries: what one of them says is said of its package alone, and what one does not say is not said
    /// by the other.
    #[test]
    fn a_package_is_known_by_its_registry_too() {
        let listed = |kind: &str| json!({ "registryType": kind, "identifier": "tides", "version": "1.0.0" });
        let server = json!({ "name": "a/tides", "packages": [listed("npm"), listed("pypi")] });
        let look = |kind: &str, said: Said, asked: Vec<Exchange>| look_of(&package(kind, "tides", said), &[asked]);
        let outcomes = |npm: Vec<Exchange>| {
            let named = answered(200, r#"{"info": {"description": "mcp-name: a/tides"}}"#);
            let looks = [look("npm", Said::Manifest, npm), look("pypi", Said::Description, named)];
            let results = judged(&server, &looks, &Settings::default());
            let of = |id: &str| match &results.iter().find(|result| result.rule.id == id).expect("it ran").outcome {
                Outcome::Fires(at) => at[0].pointer.clone(),
                Outcome::Passes => "passes".to_owned(),
                _ => "not evaluated".to_owned(),
            };
            [of("registry/package-ownership-mismatch"), of("registry/package-not-found")]
        };
        assert_eq!(outcomes(answered(200, r#"{"mcpName": "a/tides"}"#)), ["passes", "passes"]);
        assert_eq!(outcomes(answered(404, ""))[1], "/packages/0/version");
        assert_eq!(outcomes(answered(503, "")), ["not evaluated", "not evaluated"]);
    }

    #[test]
    fn of_a_readme_only_what_names_a_server_is_kept() {
        let long = format!("{} mcp-name: a/b {}", "x".repeat(1 << 20), "é".repeat(1 << 20));
        let kept = mentions(&long);
        assert!(kept.starts_with("mcp-name: a/b ") && kept.len() < 1_000, "{}", kept.len());
    }

    #[test]
    fn an_answer_is_good_for_a_week_and_not_when_the_clock_went_back() {
        let upstream = Upstream::new(everything());
        let behind = all_behind(&server(), &everything()).remove(0);
        upstream.remember(behind.clone(), 1_000, json!(1));
        assert!(upstream.remembered(&behind, 1_000 + WEEK_S - 1).is_some());
        assert!(upstream.remembered(&behind, 1_000 + WEEK_S).is_none());
        assert!(upstream.remembered(&behind, 999).is_none());
    }
}
