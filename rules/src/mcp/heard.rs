//! The turns of a conversation that rules of this family look at.

use crate::conversation::{Conversation, Turn};
use crate::judge::Occurrences;
use crate::kind::Kind;
use crate::report::NotEvaluated;
use crate::session::Step;

/// What these rules look at.
pub(super) const ON: &[Kind] = &[Kind::McpEndpoint];

/// The turns of these steps, in the revisions of the running rule, whose answers can be judged; where there are none it
/// is said why. A step that was refused for want of credentials or payment, throttled, or at which the server failed, says
/// nothing about anything else.
pub(super) fn heard<'c, 's>(
    conversation: &'c Conversation<'s>,
    steps: &[Step],
    out: &mut Occurrences,
) -> Vec<&'c Turn<'s>> {
    chosen(conversation, steps, out, Turn::unsaid)
}

/// The same, with the steps that were refused: to refuse is a right answer to an odd request.
pub(super) fn answered<'c, 's>(
    conversation: &'c Conversation<'s>,
    steps: &[Step],
    out: &mut Occurrences,
) -> Vec<&'c Turn<'s>> {
    chosen(conversation, steps, out, |turn| {
        turn.unsaid().filter(|reason| !matches!(reason, NotEvaluated::Auth) || turn.status() != Some(403))
    })
}

/// The turns of these steps with those that the server failed at, for the few rules that are about just that.
pub(super) fn answered_or_failed<'c, 's>(
    conversation: &'c Conversation<'s>,
    steps: &[Step],
    out: &mut Occurrences,
) -> Vec<&'c Turn<'s>> {
    chosen(conversation, steps, out, |turn| turn.unsaid().filter(|_| !turn.has_failed() || turn.gate().is_some()))
}

fn chosen<'c, 's>(
    conversation: &'c Conversation<'s>,
    steps: &[Step],
    out: &mut Occurrences,
    unsaid: impl Fn(&Turn<'s>) -> Option<NotEvaluated>,
) -> Vec<&'c Turn<'s>> {
    let versions = out.rule().versions;
    let of_steps = |turn: &&Turn<'s>| {
        turn.step.is_some_and(|step| steps.contains(&step)) && !turn.is_led_on && versions.contains(&turn.revision)
    };
    // Where there is no such method, each odd way of asking for it is refused for that reason.
    let hidden = |turn: &Turn<'s>| is_odd_discover(conversation, turn).then_some(NotEvaluated::Parent);
    let (mut said, mut why) = (Vec::new(), None);
    for turn in conversation.turns.iter().filter(of_steps) {
        match unsaid(turn).or_else(|| hidden(turn)) {
            None => said.push(turn),
            Some(reason) => why = Some(reason),
        }
    }
    if said.is_empty() {
        out.not_evaluated(why.unwrap_or(NotEvaluated::NotAsked));
    }
    said
}

/// Whether a turn asks in an odd way for `server/discover`, which this server does not have.
fn is_odd_discover(conversation: &Conversation<'_>, turn: &Turn<'_>) -> bool {
    turn.step != Some(Step::Discover)
        && turn.method() == Some("server/discover")
        && turn.error_code() == Some(-32601)
        && conversation.of(Step::Discover).any(|discover| discover.error_code() == Some(-32601))
}

/// Every turn with the endpoint in the revisions of the running rule, the last of its redirects.
pub(super) fn all<'c, 's>(
    conversation: &'c Conversation<'s>,
    out: &Occurrences,
) -> impl Iterator<Item = &'c Turn<'s>> + use<'c, 's> {
    let versions = out.rule().versions;
    conversation
        .turns
        .iter()
        .filter(move |turn| turn.is_about_endpoint() && !turn.is_led_on && versions.contains(&turn.revision))
        .filter(|turn| !turn.is_astray)
}

/// Whether a request was refused: an error, or a status that says so.
pub(super) fn is_refused(turn: &Turn<'_>) -> bool {
    turn.error().is_some() || (turn.status().is_some_and(|status| status >= 400) && !turn.is_served())
}
