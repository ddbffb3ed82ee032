//! The authorization chain of an MCP endpoint: where its metadata lies, and what of it a conversation found.
//!
//! From the challenge to the resource's metadata (RFC 9728), from there to each authorization server's (RFC 8414, OpenID
//! Connect Discovery). The probe asks at these places and the rules compare what stood there.

use serde_json::Value;
use url::Url;

use crate::conversation::{Conversation, MODERN, NEWEST_LEGACY, Turn};
use crate::document::{Document, Type};
use crate::kind::Kind;
use crate::session::Step;
use crate::session_judge::document_of;
use crate::text::challenge::{Challenge, challenges};

/// The well-known place of a protected resource's metadata.
pub const PRM: &str = "/.well-known/oauth-protected-resource";
/// The well-known place of RFC 8414 metadata.
pub const RFC8414: &str = "/.well-known/oauth-authorization-server";
/// The well-known place of an OpenID configuration.
pub const OPENID: &str = "/.well-known/openid-configuration";

crate::words! {
    /// Where protected-resource metadata is looked for.
    pub enum PrmPlace {
        /// Where the challenge says.
        Challenge = "challenge",
        /// The well-known part before the endpoint's path.
        PathInserted = "path-inserted",
        /// The well-known part alone.
        Root = "root",
        /// The well-known part behind the endpoint's path, where no client looks.
        Appended = "appended",
    }
}

crate::words! {
    /// Where an authorization server's metadata is looked for.
    pub enum AsPlace {
        /// RFC 8414: the well-known part before the issuer's path.
        Rfc8414 = "rfc8414",
        /// OpenID: the well-known part before the issuer's path.
        OpenidInserted = "openid-inserted",
        /// OpenID: the well-known part behind the issuer's path.
        OpenidAppended = "openid-appended",
        /// RFC 8414 metadata where only OpenID configurations lie: behind the issuer's path.
        Rfc8414Appended = "rfc8414-appended",
    }
}

impl AsPlace {
    /// The kind of document that lies there.
    pub fn kind(self) -> Kind {
        match self {
            AsPlace::Rfc8414 | AsPlace::Rfc8414Appended => Kind::OauthAuthorizationServer,
            AsPlace::OpenidInserted | AsPlace::OpenidAppended => Kind::OauthOpenidConfiguration,
        }
    }
}

/// Every place of an endpoint's metadata, the challenged one first; each address once.
pub fn prm_places(endpoint: &Url, challenged: Option<&str>) -> Vec<(PrmPlace, Url)> {
    let path = endpoint.path().trim_end_matches('/');
    let mut places = Vec::new();
    places.extend(challenged.and_then(|url| Url::parse(url).ok()).map(|url| (PrmPlace::Challenge, url)));
    if !path.is_empty() {
        places.push((PrmPlace::PathInserted, at(endpoint, &format!("{PRM}{}", endpoint.path()))));
    }
    places.push((PrmPlace::Root, at(endpoint, PRM)));
    if !path.is_empty() {
        places.push((PrmPlace::Appended, at(endpoint, &format!("{path}{PRM}"))));
    }
    each_once(places)
}

/// Every place of an issuer's metadata; each address once.
pub fn as_places(issuer: &Url) -> Vec<(AsPlace, Url)> {
    let path = issuer.path().trim_end_matches('/');
    let mut places = vec![
        (AsPlace::Rfc8414, at(issuer, &format!("{RFC8414}{path}"))),
        (AsPlace::OpenidInserted, at(issuer, &format!("{OPENID}{path}"))),
    ];
    if !path.is_empty() {
        places.push((AsPlace::OpenidAppended, at(issuer, &format!("{path}{OPENID}"))));
        places.push((AsPlace::Rfc8414Appended, at(issuer, &format!("{path}{RFC8414}"))));
    }
    each_once(places)
}

fn at(base: &Url, path: &str) -> Url {
    let mut url = base.clone();
    url.set_path(path);
    url.set_query(None);
    url.set_fragment(None);
    url
}

fn each_once<P>(places: Vec<(P, Url)>) -> Vec<(P, Url)> {
    let mut kept: Vec<(P, Url)> = Vec::with_capacity(places.len());
    for (place, url) in places {
        if !kept.iter().any(|(_, known)| *known == url) {
            kept.push((place, url));
        }
    }
    kept
}

/// What a conversation shows of the chain.
#[derive(Debug)]
pub struct Chain<'c> {
    conversation: &'c Conversation<'c>,
    /// The first refusal for want of credentials.
    pub refusal: Option<&'c Turn<'c>>,
    /// Its challenges, as far as they can be read.
    pub challenges: Vec<Challenge>,
    /// The requests for the resource's metadata, by place.
    pub prm: Vec<(PrmPlace, &'c Turn<'c>)>,
    /// The requests for metadata of each issuer, by place.
    pub servers: Vec<Server<'c>>,
}

/// An authorization server and what was asked about it.
#[derive(Debug)]
pub struct Server<'c> {
    /// As the resource lists it.
    pub issuer: String,
    /// The requests for its metadata.
    pub asked: Vec<(AsPlace, &'c Turn<'c>)>,
    /// Nobody listed it: it is the endpoint's own origin, as the revision 2025-03-26 has it.
    pub is_assumed: bool,
}

/// A document of the chain.
#[derive(Debug)]
pub struct Found<'c> {
    /// The exchange that brought it.
    pub turn: &'c Turn<'c>,
    /// Its kind.
    pub kind: Kind,
    /// For the resource's metadata, where it was found.
    pub found_at: Option<&'static str>,
    /// For an authorization server's metadata, the issuer that led to it.
    pub issuer: Option<String>,
}

impl<'c> Chain<'c> {
    /// Reads the chain from a conversation.
    pub fn of(conversation: &'c Conversation<'c>) -> Chain<'c> {
        // Who asks for a key in words alone names no way to one that could be judged.
        let asks = |turn: &Turn<'_>| turn.is_challenged() || (turn.challenge().is_some() && turn.is_auth_refusal());
        let refused = |turn: &&Turn<'_>| turn.is_about_endpoint() && asks(turn) && !is_wall(turn);
        let refusal = conversation.turns.iter().find(|turn| refused(turn) && turn.challenge().is_some());
        let refusal = refusal.or_else(|| conversation.turns.iter().find(refused));
        let read = refusal.and_then(Turn::challenge).map(challenges);
        let challenges = read.map(|read| read.unwrap_or_else(|(_, before)| before)).unwrap_or_default();
        let mut chain = Chain { conversation, refusal, challenges, prm: Vec::new(), servers: Vec::new() };
        chain.prm = chain.requests_for_prm();
        chain.servers = chain.requests_for_servers();
        chain
    }

    /// The challenge that asks for a token.
    pub fn token_challenge(&self) -> Option<&Challenge> {
        self.challenges.iter().find(|challenge| challenge.wants_token())
    }

    /// Where the challenge says that the metadata lies.
    pub fn challenged(&self) -> Option<&str> {
        self.token_challenge()?.parameter("resource_metadata")
    }

    /// The scope that the challenge asks for.
    pub fn scope(&self) -> Option<String> {
        self.token_challenge()?.parameter("scope").map(str::to_owned)
    }

    /// The revision that the chain is judged by: that which was spoken or, where nothing was, the one that both official
    /// clients fall back to.
    pub fn revision(&self) -> &'static str {
        if let Some(stated) = self.conversation.stated {
            return stated;
        }
        match (self.conversation.newest(), self.refusal) {
            (Some(newest), _) => newest,
            (None, Some(turn)) if turn.revision != MODERN => turn.revision,
            (None, _) => NEWEST_LEGACY,
        }
    }

    /// The resource's metadata that counts: the first that was found, in the order in which clients look.
    pub fn document(&self) -> Option<(PrmPlace, &'c Turn<'c>)> {
        let places = [PrmPlace::Challenge, PrmPlace::PathInserted, PrmPlace::Root];
        places
            .into_iter()
            .find_map(|place| self.prm.iter().find(|(p, turn)| *p == place && self.is_prm(place, turn)).copied())
    }

    /// Whether that answer is protected-resource metadata, well made or not.
    pub fn is_prm(&self, place: PrmPlace, turn: &Turn<'_>) -> bool {
        let Some(document) = json_of(turn) else { return false };
        let is_named = document
            .root()
            .is_some_and(|root| root.get("resource").is_some() || root.get("authorization_servers").is_some());
        is_named || (self.refusal.is_some() && (place == PrmPlace::Challenge || is_labelled_json(turn)))
    }

    /// Every document of the chain.
    pub fn documents(&self) -> Vec<Found<'c>> {
        let prm = self.prm.iter().filter(|(place, turn)| *place != PrmPlace::Appended && self.is_prm(*place, turn));
        let mut found: Vec<Found<'c>> = prm
            .map(|(place, turn)| Found {
                turn,
                kind: Kind::OauthProtectedResource,
                found_at: Some(place.as_str()),
                issuer: None,
            })
            .collect();
        for server in &self.servers {
            let places = server.asked.iter().filter(|(place, _)| *place != AsPlace::Rfc8414Appended);
            // JSON that is no object was meant as metadata where somebody was led to it.
            let is_meant = |turn: &Turn<'_>| {
                let root = |document: &Document| document.root().is_some_and(|root| root.kind() != Type::Object);
                !server.is_assumed && is_labelled_json(turn) && json_of(turn).as_ref().is_some_and(root)
            };
            let found_at = places.filter(|(_, turn)| is_server_metadata(turn) || is_meant(turn));
            found.extend(found_at.map(|(place, turn)| Found {
                turn,
                kind: place.kind(),
                found_at: None,
                issuer: (!server.is_assumed).then(|| server.issuer.clone()),
            }));
        }
        found
    }

    /// The issuers that the found metadata lists, in order and each once.
    pub fn issuers(&self) -> Vec<String> {
        let mut issuers: Vec<String> = Vec::new();
        for (_, turn) in self.prm.iter().filter(|(place, turn)| self.is_prm(*place, turn)) {
            let Some(document) = json_of(turn) else { continue };
            let listed = document.root().and_then(|root| root.get("authorization_servers"));
            for issuer in
                listed.into_iter().flat_map(super::document::Node::items).filter_map(super::document::Node::text)
            {
                if !issuers.iter().any(|known| known == issuer) {
                    issuers.push(issuer.to_owned());
                }
            }
        }
        issuers
    }

    /// Every place of the resource's metadata: those of the address that was asked for, then those of the one that it
    /// led to; each address once.
    pub fn places(&self) -> Vec<(PrmPlace, Url)> {
        let addresses = self.conversation.addresses().into_iter().filter_map(|address| Url::parse(address).ok());
        each_once(addresses.flat_map(|address| prm_places(&address, self.challenged())).collect())
    }

    /// The origins of the endpoint, each of which is its authorization server as the revision 2025-03-26 has it.
    pub fn origins(&self) -> Vec<String> {
        let addresses = self.conversation.addresses().into_iter().filter_map(|address| Url::parse(address).ok());
        let mut origins: Vec<String> = addresses.map(|address| address.origin().ascii_serialization()).collect();
        origins.dedup();
        origins
    }

    fn requests_for_prm(&self) -> Vec<(PrmPlace, &'c Turn<'c>)> {
        let places = self.places();
        self.conversation
            .of(Step::Prm)
            .filter_map(|turn| {
                let asked = Url::parse(asked_first(self.conversation, turn)).ok()?;
                let place = places.iter().find(|(_, url)| *url == asked).map(|(place, _)| *place)?;
                Some((place, turn))
            })
            .collect()
    }

    fn requests_for_servers(&self) -> Vec<Server<'c>> {
        let mut issuers: Vec<(String, bool)> = self.issuers().into_iter().map(|issuer| (issuer, false)).collect();
        if issuers.is_empty() {
            issuers.extend(self.origins().into_iter().map(|origin| (origin, true)));
        }
        let servers = issuers.into_iter().map(|(issuer, is_assumed)| {
            let places = Url::parse(&issuer).map(|url| as_places(&url)).unwrap_or_default();
            let asked = self.conversation.of(Step::AuthorizationServer).filter_map(|turn| {
                let asked = Url::parse(asked_first(self.conversation, turn)).ok()?;
                places.iter().find(|(_, url)| *url == asked).map(|(place, _)| (*place, turn))
            });
            Server { asked: asked.collect(), issuer, is_assumed }
        });
        servers.filter(|server| !server.asked.is_empty()).collect()
    }
}

impl Server<'_> {
    /// The answer at a place, when metadata stands there.
    pub fn found(&self, place: AsPlace) -> Option<&Turn<'_>> {
        self.asked.iter().find(|(p, turn)| *p == place && is_server_metadata(turn)).map(|(_, turn)| *turn)
    }

    /// The OpenID configuration, wherever it was found.
    pub fn openid(&self) -> Option<&Turn<'_>> {
        self.found(AsPlace::OpenidInserted).or_else(|| self.found(AsPlace::OpenidAppended))
    }
}

/// A page that asks people to log in and says nothing to clients: what lies behind it nobody knows.
fn is_wall(turn: &Turn<'_>) -> bool {
    let is_page =
        turn.response().and_then(super::session::Response::media_type).is_some_and(|media_type| media_type.is_html());
    is_page && turn.challenge().is_none()
}

/// The address that was asked for before redirects.
fn asked_first<'c>(conversation: &'c Conversation<'_>, turn: &'c Turn<'_>) -> &'c str {
    let mut first = turn;
    while let Some(before) = first.number.checked_sub(1).and_then(|number| conversation.turns.get(number))
        && before.is_led_on
    {
        first = before;
    }
    &first.exchange.request.url
}

/// The document of a whole answer with 200 that is JSON and no page.
pub fn json_of(turn: &Turn<'_>) -> Option<Document> {
    let response = turn.response().filter(|response| response.status == 200 && response.cut.is_none())?;
    if response.media_type().is_some_and(|media_type| media_type.is_html()) {
        return None;
    }
    Some(document_of(response)).filter(|document| document.root().is_some())
}

fn is_labelled_json(turn: &Turn<'_>) -> bool {
    turn.response().and_then(super::session::Response::media_type).is_some_and(|media_type| media_type.is_json())
}

/// Whether an answer is an authorization server's metadata, well made or not: an object with an issuer or an endpoint.
pub fn is_server_metadata(turn: &Turn<'_>) -> bool {
    json_of(turn).is_some_and(|document| {
        document.root().is_some_and(|root| {
            root.kind() == Type::Object
                && (root.get("issuer").is_some() || root.members().any(|(key, _)| key.ends_with("_endpoint")))
        })
    })
}

/// A member of the metadata in an answer.
pub fn member(turn: &Turn<'_>, name: &str) -> Option<Value> {
    json_of(turn)?.root()?.get(name).map(super::document::Node::to_value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> Url {
        Url::parse(text).expect("it is a URL")
    }

    #[test]
    fn metadata_of_a_resource_lies_at_four_places() {
        let places = |endpoint: &str, challenged| -> Vec<String> {
            prm_places(&url(endpoint), challenged).iter().map(|(place, url)| format!("{place} {url}")).collect()
        };
        assert_eq!(
            places("https://a.example/mcp?x=1", None),
            [
                "path-inserted https://a.example/.well-known/oauth-protected-resource/mcp",
                "root https://a.example/.well-known/oauth-protected-resource",
                "appended https://a.example/mcp/.well-known/oauth-protected-resource",
            ]
        );
        assert_eq!(places("https://a.example", None), ["root https://a.example/.well-known/oauth-protected-resource"]);
        let challenged = Some("https://a.example/.well-known/oauth-protected-resource/mcp");
        assert_eq!(places("https://a.example/mcp", challenged).len(), 3);
    }

    #[test]
    fn metadata_of_an_issuer_lies_where_each_standard_says() {
        let places =
            |issuer: &str| -> Vec<String> { as_places(&url(issuer)).into_iter().map(|(_, url)| url.into()).collect() };
        assert_eq!(
            places("https://id.example/t/1/"),
            [
                "https://id.example/.well-known/oauth-authorization-server/t/1",
                "https://id.example/.well-known/openid-configuration/t/1",
                "https://id.example/t/1/.well-known/openid-configuration",
                "https://id.example/t/1/.well-known/oauth-authorization-server",
            ]
        );
        assert_eq!(places("https://id.example").len(), 2);
    }
}
