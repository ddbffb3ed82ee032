//! Asking one surface, and what came of it.

pub mod a2a;
pub mod document;
pub mod mcp;
pub mod stdio;

use bytes::Bytes;
use plumbline_rules::reach::Outcome;
use plumbline_rules::session::{Cut, Exchange, Session, Step};

/// What one probe brought home.
#[derive(Debug, Clone)]
pub struct Observed {
    /// What was said to get at the surface: what rules judge.
    pub session: Session,
    /// What was said about robots.txt on the way: kept, and nobody's document.
    pub robots: Vec<Exchange>,
    /// How far we came.
    pub outcome: Outcome,
    /// The document of record, when one arrived.
    pub body: Body,
}

/// The document of record.
#[derive(Debug, Clone, PartialEq)]
pub enum Body {
    /// Nothing that could be judged.
    None,
    /// The same as last time: the server said so (304).
    Unchanged,
    /// The body of this exchange of the session.
    Answer(usize),
    /// The content of a file.
    File(Bytes),
}

impl Observed {
    /// Status of the answer that brought the document or, where none did, of the last one about the surface itself.
    pub fn status(&self) -> Option<u16> {
        let status = |exchange: &Exchange| exchange.response.as_ref().map(|response| response.status);
        match self.body {
            Body::Answer(number) => self.session.exchanges.get(number).and_then(status),
            Body::Unchanged => Some(304),
            Body::None | Body::File(_) => {
                let own = self.session.exchanges.iter().filter(|exchange| !exchange.step.is_some_and(Step::is_beside));
                own.rev().find_map(status)
            }
        }
    }

    /// Everything said on the wire, for the record: places that rules name count from its beginning.
    pub fn recorded(&self) -> Session {
        let exchanges = self.session.exchanges.iter().chain(&self.robots).cloned().collect();
        Session { exchanges, stdio: self.session.stdio.clone() }
    }

    /// How long the asking took, in milliseconds; what a card leads to apart.
    pub fn took_ms(&self) -> u64 {
        let own = self.session.exchanges.iter().filter(|exchange| !exchange.step.is_some_and(Step::is_beside));
        own.map(|exchange| exchange.took_ms).sum()
    }
}

/// The conversation about the surface, and that about robots.txt beside it.
fn apart(exchanges: Vec<Exchange>) -> (Session, Vec<Exchange>) {
    let (robots, exchanges) = exchanges.into_iter().partition(|exchange| exchange.step == Some(Step::Robots));
    (Session::from(exchanges), robots)
}

/// The answer that is the document of record, as long as its body came whole or was stopped at its limit; of a body that
/// broke off nothing is judged.
fn served(session: &Session, of_record: Option<usize>) -> Body {
    let whole = |number: &usize| {
        let response = session.exchanges.get(*number).and_then(|exchange| exchange.response.as_ref());
        response.is_some_and(|response| matches!(response.cut, None | Some(Cut::Limit)))
    };
    of_record.filter(whole).map_or(Body::None, Body::Answer)
}

/// Whether nobody answered because of us or the way there, so that a further path would fail alike.
fn came_to_nothing(exchanges: &[Exchange]) -> bool {
    exchanges.last().is_none_or(|exchange| exchange.response.is_none())
}
