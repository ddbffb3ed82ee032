//! What the command line names: files, folders with all that is in them, standard input, addresses.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use plumbline_rules::kind::Kind;

/// Folders that hold other people's files, or built ones.
const PASSED_OVER: &[&str] = &["node_modules", "target", "vendor", "__pycache__"];

/// The hidden folder that is looked into: documents are served from it.
const WELL_KNOWN: &str = ".well-known";

/// One thing to check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Input {
    /// How it is called in what is printed: the path as it was given, `-`, or the address.
    pub name: String,
    /// What it is.
    pub place: Place,
}

/// Where an input comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// Standard input.
    Standard,
    /// A file that was named.
    File(PathBuf),
    /// A file that was found in a named folder: it may be anything. With the kind that its name promises.
    Found(PathBuf, Option<Kind>),
    /// An address to ask.
    Address,
}

/// Everything that the arguments name, folders opened up.
///
/// # Errors
/// When a folder cannot be read, or an address stands there while the network is forbidden.
pub fn inputs(arguments: &[String], is_offline: bool) -> Result<Vec<Input>> {
    let mut inputs = Vec::new();
    for name in arguments {
        let path = Path::new(name);
        if name == "-" {
            inputs.push(Input { name: name.clone(), place: Place::Standard });
        } else if is_address(name) {
            if is_offline {
                bail!("{name}: --offline, and this is an address");
            }
            inputs.push(Input { name: name.clone(), place: Place::Address });
        } else if path.is_dir() {
            walk(path, &mut inputs)?;
        } else {
            inputs.push(Input { name: shown(path), place: Place::File(path.to_owned()) });
        }
    }
    Ok(inputs)
}

pub fn is_address(name: &str) -> bool {
    name.starts_with("http://") || name.starts_with("https://")
}

/// In the order of their names. Links are not followed: what they lead to is either in the folder or not meant.
fn walk(folder: &Path, inputs: &mut Vec<Input>) -> Result<()> {
    let cannot = || format!("cannot read {}", folder.display());
    let mut entries =
        std::fs::read_dir(folder).with_context(cannot)?.collect::<Result<Vec<_>, _>>().with_context(cannot)?;
    entries.sort_by_key(std::fs::DirEntry::file_name);
    for entry in entries {
        let kind = entry.file_type().with_context(cannot)?;
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if kind.is_dir() {
            let is_hidden = name.starts_with('.') && name != WELL_KNOWN;
            if !is_hidden && !PASSED_OVER.contains(&&*name) {
                walk(&entry.path(), inputs)?;
            }
        } else if kind.is_file() && is_candidate(&name) {
            let path = entry.path();
            inputs.push(Input { name: shown(&path), place: Place::Found(path.clone(), promised(&path)) });
        }
    }
    Ok(())
}

fn is_candidate(name: &str) -> bool {
    let ending = Path::new(name).extension().map(std::ffi::OsStr::to_ascii_lowercase);
    ending.is_some_and(|ending| ending == "json" || ending == "yaml" || ending == "yml")
}

/// The kind that a file's name alone promises, as the specifications name them.
fn promised(path: &Path) -> Option<Kind> {
    let name = path.file_name()?.to_str()?;
    let is_well_known = path.parent().and_then(Path::file_name).is_some_and(|folder| folder == WELL_KNOWN);
    match name {
        "agent-card.json" => Some(Kind::AgentCard),
        "agent.json" if is_well_known => Some(Kind::AgentCard),
        "openapi.json" | "swagger.json" => Some(Kind::Openapi),
        _ => None,
    }
}

/// Below the current folder a path is told from there, so that it is the same on every machine.
fn shown(path: &Path) -> String {
    let here = std::env::current_dir().ok();
    let below = here.as_deref().and_then(|here| path.strip_prefix(here).ok()).unwrap_or(path);
    let below = below.strip_prefix(".").unwrap_or(below);
    below.display().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_gives_its_documents_in_order_without_what_is_not_ours() {
        let folder = tempfile::tempdir().expect("a folder");
        let put = |path: &str| {
            let path = folder.path().join(path);
            std::fs::create_dir_all(path.parent().expect("it is below")).expect("a folder");
            std::fs::write(path, "{}").expect("a file");
        };
        ["b/x.json", "a.yaml", "read.me", ".git/y.json", "node_modules/z.json", ".well-known/agent.json", "agent.json"]
            .into_iter()
            .for_each(put);
        let found = inputs(&[folder.path().display().to_string()], true).expect("it is readable");
        let names: Vec<_> = found
            .iter()
            .map(|input| match &input.place {
                Place::Found(path, kind) => (path.strip_prefix(folder.path()).expect("below").to_owned(), *kind),
                _ => panic!("all were found: {input:?}"),
            })
            .collect();
        assert_eq!(
            names,
            [
                (".well-known/agent.json".into(), Some(Kind::AgentCard)),
                ("a.yaml".into(), None),
                ("agent.json".into(), None),
                ("b/x.json".into(), None),
            ]
        );
    }

    #[test]
    fn an_address_is_refused_without_a_network() {
        assert!(inputs(&["https://tides.dev".to_owned()], true).is_err());
        assert_eq!(inputs(&["https://tides.dev".to_owned()], false).map(|all| all.len()).ok(), Some(1));
    }
}
