//! Who asked to be left alone: read from the settings, honoured by the client at every hop and by the store.

use plumbline_rules::text::registrable_domain;
use plumbline_store::steering::OptOuts;

use crate::settings::CrawlSettings;

/// Why the list of opt-outs cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum OptOutError {
    /// The file cannot be read.
    #[error("crawl.opt_out_file {path}: {source}")]
    Unreadable {
        /// The file.
        path: String,
        /// What the system said.
        source: std::io::Error,
    },
    /// An entry says nothing that could be honoured. Rather than to call somebody by mistake, nothing is called.
    #[error("crawl.opt_out: `{0}` is none of host:NAME, domain:NAME, name:KEY")]
    Entry(String),
}

/// Reads the opt-outs of the settings and of the file they name.
///
/// # Errors
/// When the file cannot be read or an entry cannot be understood.
pub fn read(settings: &CrawlSettings) -> Result<OptOuts, OptOutError> {
    let mut opt_outs = OptOuts::default();
    settings.opt_out.iter().try_for_each(|entry| note(&mut opt_outs, entry))?;
    let path = &settings.opt_out_file;
    if !path.is_empty() {
        let text =
            std::fs::read_to_string(path).map_err(|source| OptOutError::Unreadable { path: path.clone(), source })?;
        let lines = text.lines().map(|line| line.split('#').next().unwrap_or_default().trim());
        lines.filter(|line| !line.is_empty()).try_for_each(|line| note(&mut opt_outs, line))?;
    }
    Ok(opt_outs)
}

fn note(opt_outs: &mut OptOuts, entry: &str) -> Result<(), OptOutError> {
    let unknown = || OptOutError::Entry(entry.to_owned());
    let (kind, what) = entry.split_once(':').ok_or_else(unknown)?;
    let what = what.trim();
    if what.is_empty() {
        return Err(unknown());
    }
    match kind.trim() {
        "host" => opt_outs.hosts.insert(what.to_ascii_lowercase()),
        "domain" => opt_outs.domains.insert(what.trim_start_matches("*.").to_ascii_lowercase()),
        "name" => opt_outs.names.insert(what.to_owned()),
        _ => return Err(unknown()),
    };
    Ok(())
}

/// The opt-outs as the settings write them, for the page that tells of them.
pub fn entries(opt_outs: &OptOuts) -> Vec<String> {
    let kinds = [("host", &opt_outs.hosts), ("domain", &opt_outs.domains), ("name", &opt_outs.names)];
    kinds.iter().flat_map(|(kind, whom)| whom.iter().map(move |one| format!("{kind}:{one}"))).collect()
}

/// Whether a target of this key, looked at on this host, is to be left alone.
pub fn covers(opt_outs: &OptOuts, key: &str, host: Option<&str>) -> bool {
    let is_host = |host: &str| {
        let bare = host.rsplit_once(':').map_or(host, |(bare, _)| bare);
        let domain = registrable_domain(bare).unwrap_or_else(|| bare.to_owned());
        opt_outs.covers_host(host, &domain)
    };
    opt_outs.names.contains(key) || host.is_some_and(is_host)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(entries: &[&str]) -> CrawlSettings {
        CrawlSettings { opt_out: entries.iter().map(|entry| (*entry).to_owned()).collect(), ..CrawlSettings::default() }
    }

    #[test]
    fn hosts_domains_and_names_are_told_apart() {
        let opt_outs =
            read(&settings(&["host:A.example.org:8443", "domain:*.tides.dev", "name:io.x/y"])).expect("read");
        assert!(covers(&opt_outs, "k", Some("a.example.org:8443")) && !covers(&opt_outs, "k", Some("a.example.org")));
        assert!(covers(&opt_outs, "k", Some("deep.tides.dev")));
        assert!(covers(&opt_outs, "io.x/y", None) && !covers(&opt_outs, "io.x/Y", None));
    }

    #[test]
    fn an_entry_that_cannot_be_understood_is_an_error_and_not_passed_over() {
        for entry in ["tides.dev", "host:", "who:tides.dev"] {
            let error = read(&settings(&[entry])).unwrap_err().to_string();
            assert!(error.contains(entry) && error.contains("domain:NAME"), "{error}");
        }
    }

    #[test]
    fn a_file_may_hold_more() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        std::fs::write(file.path(), "# asked by mail\nhost:a.dev # 2026-11\n\n").expect("written");
        let mut settings = settings(&[]);
        settings.opt_out_file = file.path().to_string_lossy().into_owned();
        assert!(read(&settings).expect("read").hosts.contains("a.dev"));
        settings.opt_out_file = "/nowhere/opt-outs".into();
        assert!(read(&settings).unwrap_err().to_string().contains("/nowhere/opt-outs"));
    }
}
