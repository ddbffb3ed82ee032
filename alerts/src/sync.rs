//! Brings receivers and routes in the database to what the settings name. What was made elsewhere stays.

use std::collections::BTreeSet;

use plumbline_store::hooks::{Endpoint, Mode, NewEndpoint, Origin, SealedSecret, SecretRole};
use plumbline_store::{EndpointId, Error, Store};

use crate::quiet::{MaintenanceSetting, SilenceSetting, WaiverSetting};
use crate::settings::{BadSetting, RouteSetting};
use crate::signature::{BadSecret, Key};
use crate::vault::{Vault, VaultError};
use crate::waiving;

/// The scheme under which a receiver's own token is kept; it signs nothing.
pub const TOKEN: &str = "token";

/// A receiver of the settings with its secrets read.
#[derive(Debug, Clone)]
pub struct Given {
    /// The receiver.
    pub endpoint: NewEndpoint,
    /// What signs, the newest first: current, then previous.
    pub secrets: Vec<Key>,
    /// The receiver's own token.
    pub token: Option<String>,
    /// It is signed with a key pair as well.
    pub ed25519: bool,
}

/// What can go wrong.
#[derive(Debug, thiserror::Error)]
pub enum SyncError {
    /// The database failed.
    #[error(transparent)]
    Store(#[from] Error),
    /// The key of the installation.
    #[error(transparent)]
    Vault(#[from] VaultError),
    /// A new key.
    #[error(transparent)]
    Key(#[from] BadSecret),
    /// A route names a receiver that is none.
    #[error("route {route}: there is no webhook `{webhook}`")]
    NoWebhook {
        /// The route.
        route: String,
        /// What it names.
        webhook: String,
    },
    /// A route cannot be used.
    #[error(transparent)]
    Bad(#[from] crate::settings::BadSetting),
}

/// Makes the database say what the settings say.
///
/// # Errors
/// When the database fails or the settings contradict each other.
pub async fn sync(
    store: &Store,
    vault: &Vault,
    given: &[Given],
    routes: &[RouteSetting],
    now_s: i64,
) -> Result<(), SyncError> {
    for (endpoint, name) in renamed(&store.endpoints().await?, given) {
        tracing::info!("webhook {} is called {name} now", endpoint.is.slug);
        let has_own_route = !routes.iter().any(|route| route.name == endpoint.is.slug || route.name == name);
        store.rename_endpoint(endpoint.id, &endpoint.is.slug, name, has_own_route).await?;
    }
    for one in given {
        let id = store.put_endpoint(&one.endpoint, Origin::File, now_s).await?;
        put_secrets(store, vault, id, one, now_s).await?;
    }
    let named: BTreeSet<&str> = given.iter().map(|one| one.endpoint.slug.as_str()).collect();
    let mut ids = Vec::new();
    for endpoint in store.endpoints().await? {
        if endpoint.origin == Origin::File && !named.contains(endpoint.is.slug.as_str()) {
            tracing::info!("webhook {} is no longer in the settings; what waits for it is cancelled", endpoint.is.slug);
            store.remove_endpoint(endpoint.id, now_s).await?;
        } else {
            ids.push((endpoint.is.slug.clone(), endpoint.id));
        }
    }
    let routed: BTreeSet<&String> = routes.iter().flat_map(|route| &route.webhooks).collect();
    let implied = given
        .iter()
        .filter(|one| one.endpoint.mode == Mode::Groups && !routed.contains(&one.endpoint.slug))
        .map(|one| RouteSetting::of(&one.endpoint));
    let wanted: Vec<RouteSetting> = routes.iter().cloned().chain(implied).collect();
    for route in &wanted {
        let to: Result<Vec<EndpointId>, SyncError> = route
            .webhooks
            .iter()
            .map(|slug| {
                let found = ids.iter().find(|(known, _)| known == slug).map(|(_, id)| *id);
                found.ok_or_else(|| SyncError::NoWebhook { route: route.name.clone(), webhook: slug.clone() })
            })
            .collect();
        store.put_route(&route.route()?, &to?, Origin::File, now_s).await?;
    }
    for route in store.routes().await? {
        if route.origin == Origin::File && !wanted.iter().any(|one| one.name == route.is.slug) {
            store.remove_route(route.id, now_s).await?;
        }
    }
    Ok(())
}

/// Receivers that have only another name in the settings than they had: one that is no longer named and a new one that is sent the
/// same at the same address, and no second pair like it. What they were told goes on.
fn renamed<'a>(known: &'a [Endpoint], given: &'a [Given]) -> Vec<(&'a Endpoint, &'a str)> {
    let is_alike = |a: &NewEndpoint, b: &NewEndpoint| a.url == b.url && a.format == b.format && a.mode == b.mode;
    let is_named = |slug: &str| given.iter().any(|one| one.endpoint.slug == slug);
    let is_known = |slug: &str| known.iter().any(|one| one.is.slug == slug);
    let gone: Vec<&Endpoint> =
        known.iter().filter(|one| one.origin == Origin::File && !is_named(&one.is.slug)).collect();
    let new: Vec<&NewEndpoint> = given.iter().map(|one| &one.endpoint).filter(|one| !is_known(&one.slug)).collect();
    let mut pairs = Vec::new();
    for old in &gone {
        let mut heirs = new.iter().filter(|one| is_alike(one, &old.is));
        let is_alone = gone.iter().filter(|other| is_alike(&other.is, &old.is)).count() == 1;
        if let (Some(heir), None, true) = (heirs.next(), heirs.next(), is_alone) {
            pairs.push((*old, heir.slug.as_str()));
        }
    }
    pairs
}

/// Makes silences, waivers and maintenance windows of the settings be what the settings say, and brings findings to the
/// waivers at once.
///
/// # Errors
/// When the database fails or one of them cannot be kept.
pub async fn quiet(
    store: &Store,
    silences: &[SilenceSetting],
    waivers: &[WaiverSetting],
    maintenance: &[MaintenanceSetting],
    now_s: i64,
) -> Result<(), SyncError> {
    let silences: Result<Vec<_>, BadSetting> = silences
        .iter()
        .map(|one| {
            one.silence(now_s).map(|silence| (one.name.clone(), silence)).map_err(|why| why.of("silence", &one.name))
        })
        .collect();
    let waivers: Result<Vec<_>, BadSetting> = waivers
        .iter()
        .map(|one| {
            one.waiver(now_s).map(|waiver| (one.name.clone(), waiver)).map_err(|why| why.of("waiver", &one.name))
        })
        .collect();
    let windows: Result<Vec<_>, BadSetting> = maintenance
        .iter()
        .map(|one| {
            let window = one.maintenance(now_s).map_err(|why| why.of("maintenance", &one.name));
            window.map(|window| (one.name.clone(), window))
        })
        .collect();
    store.file_quiet(&silences?, &waivers?, &windows?, now_s).await?;
    waiving::apply(store, now_s).await?;
    Ok(())
}

/// Keeps a receiver's secrets, those that have changed only, so that it is known since when each signs.
async fn put_secrets(store: &Store, vault: &Vault, id: EndpointId, one: &Given, now_s: i64) -> Result<(), SyncError> {
    let known = store.secrets(id, now_s).await?;
    let is_kept = |role: SecretRole, scheme: &str, bytes: &[u8]| {
        known.iter().any(|sealed| {
            let is_same = sealed.role == role && sealed.scheme == scheme;
            is_same && vault.unseal(&sealed.sealed).is_ok_and(|opened| opened == bytes)
        })
    };
    let roles = [SecretRole::Current, SecretRole::Previous];
    for (key, role) in one.secrets.iter().zip(roles) {
        if !is_kept(role, key.scheme(), key.bytes()) {
            put(store, vault, id, role, key.scheme(), key.bytes(), now_s).await?;
        }
    }
    if one.secrets.len() < 2 {
        store.drop_previous_secret(id).await?;
    }
    if let Some(token) = &one.token
        && !is_kept(SecretRole::Current, TOKEN, token.as_bytes())
    {
        put(store, vault, id, SecretRole::Current, TOKEN, token.as_bytes(), now_s).await?;
    }
    if one.ed25519 && !known.iter().any(|sealed| sealed.scheme == "v1a") {
        let key = Key::new_own()?;
        put(store, vault, id, SecretRole::Current, key.scheme(), key.bytes(), now_s).await?;
    }
    Ok(())
}

/// Seals a secret and keeps it.
///
/// # Errors
/// When it cannot be sealed or the database fails.
pub async fn put(
    store: &Store,
    vault: &Vault,
    id: EndpointId,
    role: SecretRole,
    scheme: &str,
    bytes: &[u8],
    now_s: i64,
) -> Result<(), SyncError> {
    let sealed = SealedSecret {
        role,
        scheme: scheme.to_owned(),
        sealed: vault.seal(bytes)?,
        created_s: now_s,
        expires_s: None,
        last_used_s: None,
    };
    store.put_secret(id, &sealed).await?;
    Ok(())
}
