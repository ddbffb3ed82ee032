//! SIGHUP: the settings are read again and take effect without losing anything.
//!
//! Everything that can be wrong is found out before anything is changed; then what is watched is brought to the new
//! settings, and a new crawler takes the place of the old one. It goes on with the same name, clock, witnesses, budget and
//! manners (as long as `[net]` did not change). A round that runs takes nothing more and ends; the next one is under the new
//! settings. Walks go on, except over registries that were changed or are no longer named: those stop after their page.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result};
use plumbline_crawler::Crawler;
use plumbline_crawler::walk::RegistrySource;
use plumbline_store::SourceId;
use plumbline_store::audit::Noted;
use plumbline_store::housekeeping::Retention;
use plumbline_web::SiteSettings;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::sample::Sample;
use crate::settings::{Options, Settings};
use crate::{serve, telling, wiring};

/// How long a walk may take to store its page and stop.
const WALK_STOPS: Duration = Duration::from_secs(60);

/// What the service works with now.
pub struct Now {
    pub settings: Settings,
    pub crawler: Arc<Crawler>,
}

/// What the service works with, and is told when that is replaced.
pub type Present = watch::Receiver<Arc<Now>>;

/// Where settings come from besides their file.
pub struct Origin {
    pub options: Options,
    pub listen: Option<SocketAddr>,
    pub sample: Option<Sample>,
}

impl Origin {
    /// The settings as they are now.
    pub fn read(&self) -> Result<Settings> {
        let mut settings = Settings::load(&self.options)?;
        if let Some(listen) = self.listen {
            settings.web.listen = listen.to_string();
        }
        if let Some(sample) = &self.sample {
            serve::use_sample(&mut settings, &self.options, sample);
        }
        Ok(settings)
    }
}

/// The walks at work, each with the token that stops it.
#[derive(Clone, Default)]
pub struct Walks(Arc<Mutex<HashMap<SourceId, CancellationToken>>>);

/// A registry is this walk's alone until it is dropped.
pub struct Walk {
    walks: Walks,
    source: SourceId,
    /// Stops it after its page.
    pub stop: CancellationToken,
}

impl Drop for Walk {
    fn drop(&mut self) {
        self.walks.at_work().remove(&self.source);
    }
}

impl Walks {
    fn at_work(&self) -> MutexGuard<'_, HashMap<SourceId, CancellationToken>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins a walk; `None` when that registry is being walked already.
    pub fn begin(&self, source: SourceId, stop: &CancellationToken) -> Option<Walk> {
        let mut at_work = self.at_work();
        if at_work.contains_key(&source) {
            return None;
        }
        let stop = stop.child_token();
        at_work.insert(source, stop.clone());
        Some(Walk { walks: self.clone(), source, stop })
    }

    /// Stops the walk of a registry, if there is one, and keeps others from beginning for as long as the result is held.
    async fn hold(&self, source: SourceId) -> Result<Walk> {
        let free = async {
            loop {
                if let Some(walk) = self.begin(source, &CancellationToken::new()) {
                    return walk;
                }
                if let Some(stop) = self.at_work().get(&source) {
                    stop.cancel();
                }
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        };
        tokio::time::timeout(WALK_STOPS, free).await.context("its walk does not stop")
    }
}

/// What is replaced by a change of settings.
pub struct Reload {
    pub origin: Origin,
    pub now: watch::Sender<Arc<Now>>,
    pub site: watch::Sender<Arc<SiteSettings>>,
    pub retention: watch::Sender<Retention>,
    pub walks: Walks,
}

impl Reload {
    /// Reads the settings again at every SIGHUP.
    pub async fn at_every_hangup(self, stop: CancellationToken) {
        let mut hangup = match signal(SignalKind::hangup()) {
            Ok(hangup) => hangup,
            Err(error) => return tracing::warn!("SIGHUP is not heard: {error}"),
        };
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                heard = hangup.recv() => if heard.is_none() { return },
            }
            match self.once().await {
                Ok(()) => tracing::info!("the settings were read again and are in force"),
                Err(error) => tracing::error!("the settings stay as they were: {error:#}"),
            }
        }
    }

    async fn once(&self) -> Result<()> {
        let before = self.now.borrow().clone();
        let mut settings = self.origin.read()?;
        for key in keep_until_restart(&before.settings, &mut settings) {
            tracing::warn!("{key} takes effect at the next start");
        }
        telling::given(&settings)?;
        let prepared = wiring::prepare(&settings, Some((&before.settings, &before.crawler)))?;
        let mut held = Vec::new();
        for registry in before.crawler.registries.iter().filter(|registry| !is_still_named(registry, &settings)) {
            let walk = self.walks.hold(registry.id).await;
            held.push(walk.with_context(|| format!("registry {}", registry.settings.name))?);
        }
        let crawler = wiring::again(prepared, &before.crawler).await?;
        if settings.alerts.enabled {
            telling::apply(&settings, &crawler.store, crawler.now_s()).await?;
        }
        let noted = Noted {
            actor: "settings file".to_owned(),
            action: "settings.reload",
            entity: "settings".to_owned(),
            after: Some(serde_json::json!({ "changed": changed(&before.settings, &settings)? })),
            ..Noted::default()
        };
        crawler.store.note(&noted, crawler.now_s()).await?;
        let is_sample = self.origin.sample.is_some();
        self.site.send_replace(Arc::new(serve::site(&settings, &crawler, is_sample)));
        self.retention.send_replace(settings.retention.clone());
        self.now.send_replace(Arc::new(Now { settings, crawler }));
        Ok(())
    }
}

fn is_still_named(registry: &RegistrySource, settings: &Settings) -> bool {
    settings.targets().registries.contains(&registry.settings)
}

/// The groups of settings that differ, by name: what they hold may be secret.
fn changed(before: &Settings, after: &Settings) -> Result<Vec<String>> {
    let (before, after) = (serde_json::to_value(before)?, serde_json::to_value(after)?);
    let groups = after.as_object().into_iter().flatten();
    Ok(groups.filter(|(name, group)| before[name.as_str()] != **group).map(|(name, _)| name.clone()).collect())
}

/// Puts back what cannot change while the process runs, and names it.
fn keep_until_restart(before: &Settings, after: &mut Settings) -> Vec<&'static str> {
    let mut kept = Vec::new();
    if after.web.listen != before.web.listen {
        after.web.listen.clone_from(&before.web.listen);
        kept.push("web.listen");
    }
    if after.database != before.database {
        after.database.clone_from(&before.database);
        kept.push("database");
    }
    if after.alerts != before.alerts {
        after.alerts = before.alerts.clone();
        kept.push("alerts");
    }
    if after.log != before.log {
        after.log = before.log.clone();
        kept.push("log");
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_needs_a_restart_is_named_and_stays() {
        let before = Settings::default();
        let mut after = Settings { database: "other.db".to_owned(), ..Settings::default() };
        after.web.listen = "127.0.0.1:1".to_owned();
        after.crawl.workers = 3;
        assert_eq!(keep_until_restart(&before, &mut after), ["web.listen", "database"]);
        assert_eq!((&after.database, &after.web.listen), (&before.database, &before.web.listen));
        assert_eq!(after.crawl.workers, 3, "the rest is as it was asked for");
    }

    #[test]
    fn a_change_of_settings_is_noted_by_the_names_of_its_groups() {
        let before = Settings::default();
        let mut after = Settings::default();
        after.crawl.workers = 3;
        after.web.name = "Harbour".to_owned();
        let mut names = changed(&before, &after).expect("settings can be written");
        names.sort_unstable();
        assert_eq!(names, ["crawl", "web"]);
        assert!(changed(&before, &before).expect("settings can be written").is_empty());
    }

    #[tokio::test]
    async fn a_registry_is_walked_once_at_a_time_and_its_walk_can_be_stopped() {
        let (walks, stop) = (Walks::default(), CancellationToken::new());
        let walk = walks.begin(SourceId(1), &stop).expect("nobody walks it");
        assert!(walks.begin(SourceId(1), &stop).is_none());
        assert!(walks.begin(SourceId(2), &stop).is_some(), "another is another");
        tokio::spawn(async move {
            walk.stop.cancelled().await;
            drop(walk);
        });
        let held = walks.hold(SourceId(1)).await.expect("it stops");
        assert!(walks.begin(SourceId(1), &stop).is_none(), "nobody else begins meanwhile");
        drop(held);
        assert!(walks.begin(SourceId(1), &stop).is_some());
        assert!(!stop.is_cancelled());
    }
}
