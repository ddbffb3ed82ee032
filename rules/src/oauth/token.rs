//! What a token endpoint answered to the operator's own client.

use super::SINCE_2025_03;
use crate::document::Node;
use crate::judge::{Context, Occurrences};
use crate::kind::Kind;
use crate::rule::{Check, Impact, Mode, Rule, Severity, fires, silent};

pub(super) const RULES: &[&Rule] = &[&TOKEN_LONG_LIVED];

/// Seconds that an access token may live: a day.
const LONGEST: f64 = 86_400.0;

crate::rule! {
    /// Access tokens live for a day at most.
    ///
    /// A stolen token is good until it expires; where `expires_in` is missing, nobody knows until when.
    static TOKEN_LONG_LIVED = {
        id: "oauth/token-long-lived",
        severity: Severity::Warning,
        impact: Some(Impact::Cosmetic),
        security: true,
        versions: SINCE_2025_03,
        mode: Mode::Active,
        on: &[Kind::OauthTokenResponse],
        place: "/expires_in",
        spec: "2026-07-28 authorization security, Token Theft",
        fix: "Issue short-lived tokens.",
        seeds: &["validator:1.5.2.4"],
        examples: &[
            fires(&["/expires_in"], r#"{"expires_in": 2592000}"#),
            fires(&["/expires_in"], r#"{"expires_in": null}"#),
            silent(r#"{"expires_in": 86400}"#),
        ],
        check: Check::Document(token_long_lived),
    }
}

fn token_long_lived(response: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    let Some(lifetime) = response.given("expires_in") else {
        out.add_missing(response, "expires_in", "there is no `expires_in`");
        return;
    };
    // Some servers write the number as a string, and clients read it so.
    let seconds = lifetime.number().or_else(|| lifetime.text()?.trim().parse().ok());
    match seconds {
        Some(seconds) if seconds <= LONGEST => {}
        Some(seconds) => {
            out.add(lifetime, format!("the token lives for {seconds} seconds, over a day"));
        }
        None => {
            out.add(lifetime, "`expires_in` is no number");
        }
    }
}
