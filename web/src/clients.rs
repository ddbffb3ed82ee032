//! The fourth answer, made of the findings of a page: which released clients work with a card, and which do not.

use plumbline_alerts::clients::{self, Fired};
use plumbline_store::views::FindingRow;
use plumbline_store::words::FindingState;

pub use plumbline_alerts::clients::ClientAnswer;

/// The client answer for a judged card of this profile with these findings; what is not confirmed does not count. `None` where
/// no client was tested on its kind.
#[must_use]
pub fn answer(profile: &str, findings: &[FindingRow]) -> Option<ClientAnswer> {
    let confirmed = findings.iter().filter(|finding| finding.state != FindingState::Pending);
    let fired: Vec<Fired<'_>> =
        confirmed.map(|finding| Fired { rule: &finding.rule, impact: finding.impact }).collect();
    clients::answer(profile, &fired)
}
