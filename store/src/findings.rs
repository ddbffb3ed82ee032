//! Findings: each judgement steps the machine of every finding it touches, and what moved is written with its span and event.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use sqlx::Row;

use crate::dialect::{Table, Writing};
use crate::error::{Error, Result};
use crate::events::{self, News};
use crate::judged::{Fired, Kept};
use crate::machine::{self, Before, Confirm, Flips, Move, Opening, Signal};
use crate::rows::{Bits, DAY_S, shortened, word, word_or_none};
use crate::rulesets::{Catalogue, RuleInfo};
use crate::targets::Counts;
use crate::trends::Trends;
use crate::words::{Cause, EventKind, FindingState, Impact, OpenedAs, Resolution, Severity};

/// Characters kept of a fact's value.
const LONGEST_VALUE: usize = 200;

/// A row of `finding`, as far as stepping it needs.
#[derive(Debug, Clone)]
struct Finding {
    id: i64,
    state: FindingState,
    severity: Severity,
    impact: Option<Impact>,
    security: bool,
    opens: i64,
    confirmations: i64,
    flips: Flips,
    flips_at: i64,
    occ_set: Option<i64>,
    occurrences: i64,
    unjudged_since_s: Option<i64>,
    pending_since_s: Option<i64>,
    clear_since_s: Option<i64>,
    opened_s: Option<i64>,
}

impl Finding {
    fn is_open(&self) -> bool {
        self.state.is_open()
    }

    fn before(&self) -> Before {
        Before { state: Some(self.state), count: self.confirmations, opened_before: self.opens > 0 }
    }
}

/// What a judgement is about, for the findings it touches.
#[derive(Debug)]
pub(crate) struct Occasion<'a> {
    pub(crate) surface: i64,
    pub(crate) target: Option<i64>,
    pub(crate) at_s: i64,
    /// The first complete evaluation of the surface.
    pub(crate) is_first_look: bool,
    /// A rule that was not asked does not apply.
    pub(crate) is_whole: bool,
    /// The document judged.
    pub(crate) document: Option<i64>,
    /// It is another than at the last evaluation.
    pub(crate) document_moved: bool,
    /// Rule → version at the last evaluation; `None`: the same rules as now.
    pub(crate) rules_before: Option<Arc<HashMap<i64, i64>>>,
    /// Rule → version now.
    pub(crate) rules_now: Arc<HashMap<i64, i64>>,
    /// Rules, as they are now, that fire on the document as it was; `None`: nobody judged that.
    pub(crate) fired_on_old: Option<Vec<i64>>,
    /// Rules that were judged when they were last looked at here.
    pub(crate) judged_before: &'a Bits,
    /// When the surface was first and last evaluated.
    pub(crate) evaluated_s: Option<(i64, i64)>,
    /// How many evaluations there were, this one included.
    pub(crate) evaluations: i64,
}

impl Occasion<'_> {
    /// The rule is new since the last evaluation, or its condition changed.
    fn rule_moved(&self, rule: i64) -> bool {
        self.rules_before.as_ref().is_some_and(|before| before.get(&rule) != self.rules_now.get(&rule))
    }

    /// The surface passed this version of the rule at two moments a day or more apart.
    fn has_track_record(&self, rule: &RuleInfo) -> bool {
        let Some((first, last)) = self.evaluated_s else { return false };
        self.judged_before.has(rule.id) && last - first.max(rule.version_s) >= DAY_S
    }
}

/// What became of a surface's findings.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    pub(crate) counts: Counts,
    /// First looks included.
    pub(crate) opened: i64,
    /// Of the opened: at a first look.
    pub(crate) baseline: i64,
    pub(crate) resolved: i64,
    pub(crate) regressed: i64,
}

/// Steps all findings of a surface with what was judged.
pub(crate) async fn step_all(
    w: &mut Writing,
    trends: &mut Trends,
    catalogue: &Catalogue,
    occasion: &Occasion<'_>,
    kept: &Kept,
) -> Result<Outcome> {
    let mut known = load(w, occasion.surface).await?;
    let mut outcome = Outcome::default();
    let mut left = Vec::new();
    for fired in kept.fired.iter().filter(|fired| fired.rule.accuses()) {
        let before = known.remove(&fired.rule.id);
        let stepped = fires(w, trends, occasion, fired, before, &mut outcome).await?;
        left.extend(stepped.map(|finding| (fired.rule.clone(), finding)));
    }
    for (rule_id, before) in known {
        let rule = catalogue.numbered(rule_id).ok_or_else(|| Error::corrupt("finding", format!("rule {rule_id}")))?;
        let signal = signal(occasion, kept, rule_id);
        let stepped = does_not_fire(w, trends, occasion, &rule, before, signal, &mut outcome).await?;
        left.extend(stepped.map(|finding| (rule, finding)));
    }
    outcome.counts = counts(&left);
    Ok(outcome)
}

/// What a judgement says of a rule that does not fire.
fn signal(occasion: &Occasion<'_>, kept: &Kept, rule: i64) -> Signal {
    if kept.passed.contains(&rule) {
        Signal::Clear
    } else if !occasion.rules_now.contains_key(&rule) {
        Signal::RuleWithdrawn
    } else if kept.unjudged.contains(&rule) {
        Signal::Unjudged
    } else if occasion.is_whole {
        Signal::Clear
    } else {
        Signal::Unjudged
    }
}

fn counts(findings: &[(Arc<RuleInfo>, Finding)]) -> Counts {
    let mut counts = Counts::default();
    for (rule, finding) in findings.iter().filter(|(_, finding)| finding.is_open()) {
        counts.security += i64::from(finding.security);
        if rule.guess {
            continue;
        }
        counts.blocking += i64::from(finding.impact == Some(Impact::BreaksClients));
        match finding.severity {
            Severity::Error => counts.error += 1,
            Severity::Warning => counts.warn += 1,
            Severity::Info => counts.info += 1,
        }
    }
    counts
}

async fn load(w: &mut Writing, surface: i64) -> Result<BTreeMap<i64, Finding>> {
    let rows = sqlx::query(
        "SELECT rule_id, id, state, severity, impact, security, opens, confirmations, flips, observed, flips_at,
                occ_set_id, occurrences, unjudged_since_s, pending_since_s, clear_since_s, opened_s
         FROM finding
         WHERE surface_id = $1 AND instance = ''",
    )
    .bind(surface)
    .fetch_all(w.on())
    .await?;
    let mut findings = BTreeMap::new();
    for row in rows {
        let bits: i64 = row.try_get(8)?;
        let observed: i64 = row.try_get(9)?;
        let finding = Finding {
            id: row.try_get(1)?,
            state: word("finding", row.try_get(2)?)?,
            severity: word("finding", row.try_get(3)?)?,
            impact: word_or_none("finding", row.try_get(4)?)?,
            security: row.try_get::<i64, _>(5)? != 0,
            opens: row.try_get(6)?,
            confirmations: row.try_get(7)?,
            flips: Flips {
                bits: u32::try_from(bits).map_err(|error| Error::corrupt("finding", error))?,
                observed: u32::try_from(observed).map_err(|error| Error::corrupt("finding", error))?,
            },
            flips_at: row.try_get(10)?,
            occ_set: row.try_get(11)?,
            occurrences: row.try_get(12)?,
            unjudged_since_s: row.try_get(13)?,
            pending_since_s: row.try_get(14)?,
            clear_since_s: row.try_get(15)?,
            opened_s: row.try_get(16)?,
        };
        findings.insert(row.try_get(0)?, finding);
    }
    Ok(findings)
}

/// A rule fires.
async fn fires(
    w: &mut Writing,
    trends: &mut Trends,
    occasion: &Occasion<'_>,
    fired: &Fired,
    known: Option<Finding>,
    outcome: &mut Outcome,
) -> Result<Option<Finding>> {
    let was = known.as_ref().map(Finding::before).unwrap_or(Before { state: None, count: 0, opened_before: false });
    let moved = machine::step(was, Signal::Fires, Confirm::AT_ONCE, occasion.is_first_look);
    let Some(mut finding) = known else {
        return Ok(Some(open_new(w, trends, occasion, fired, moved, outcome).await?));
    };
    let places_moved = finding.occ_set != Some(fired.occ_set);
    if moved == Move::Stay && !places_moved && finding.unjudged_since_s.is_none() {
        return Ok(Some(finding));
    }
    let was_open = finding.is_open();
    note_observation(&mut finding, occasion, Some(true));
    let (opened_as, cause) = if moved == Move::Open {
        let was_fixed = finding.opens > 0 && was_fixed_before(w, finding.id).await?;
        classify(occasion, &fired.rule, was_fixed)
    } else {
        (OpenedAs::First, Cause::Unknown)
    };
    move_to(&mut finding, moved, occasion.at_s);
    finding.severity = fired.severity;
    finding.impact = fired.impact;
    let places_before = if was_open { finding.occurrences } else { 0 };
    finding.occ_set = Some(fired.occ_set);
    finding.occurrences = fired.occurrences;
    finding.unjudged_since_s = None;
    let is_other = moved != Move::Stay || places_moved;
    write_fired(w, occasion, fired, &finding, is_other).await?;
    if moved == Move::Open {
        sqlx::query(
            "UPDATE finding
             SET opened_as = $2, cause = $3, resolution = NULL, opened_s = $4, closed_s = NULL, opens = $5
             WHERE id = $1",
        )
        .bind(finding.id)
        .bind(opened_as.as_str())
        .bind(cause.as_str())
        .bind(finding.opened_s)
        .bind(finding.opens)
        .execute(w.on())
        .await?;
        tell_opened(w, trends, occasion, fired, &finding, opened_as, cause, outcome).await?;
    } else if places_moved && finding.is_open() {
        sqlx::query("UPDATE finding_span SET occ_set_id = $2 WHERE finding_id = $1 AND to_s IS NULL")
            .bind(finding.id)
            .bind(fired.occ_set)
            .execute(w.on())
            .await?;
    }
    count_places(trends, fired.rule.id, places_before, &finding);
    Ok(Some(finding))
}

async fn open_new(
    w: &mut Writing,
    trends: &mut Trends,
    occasion: &Occasion<'_>,
    fired: &Fired,
    moved: Move,
    outcome: &mut Outcome,
) -> Result<Finding> {
    let mut finding = Finding {
        id: w.next_id(Table::Finding).await?,
        state: FindingState::Pending,
        severity: fired.severity,
        impact: fired.impact,
        security: fired.rule.security,
        opens: 0,
        confirmations: 0,
        flips: Flips::default(),
        flips_at: occasion.evaluations,
        occ_set: Some(fired.occ_set),
        occurrences: fired.occurrences,
        unjudged_since_s: None,
        pending_since_s: Some(occasion.at_s),
        clear_since_s: None,
        opened_s: None,
    };
    finding.flips = finding.flips.with(true, 1);
    move_to(&mut finding, moved, occasion.at_s);
    let is_opening = moved == Move::Open;
    let (opened_as, cause) = classify(occasion, &fired.rule, false);
    sqlx::query(
        "INSERT INTO finding (id, surface_id, rule_id, state, opened_as, cause, severity, impact, security,
                              first_seen_s, opened_s, last_fired_s, changed_s, pending_since_s, confirmations, opens,
                              flips, observed, flips_at, occ_set_id, occurrences, rule_version)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $10, $10, $12, $13, $14, $15, $16, $17, $18, $19, $20)",
    )
    .bind(finding.id)
    .bind(occasion.surface)
    .bind(fired.rule.id)
    .bind(finding.state.as_str())
    .bind(is_opening.then(|| opened_as.as_str()))
    .bind(is_opening.then(|| cause.as_str()))
    .bind(finding.severity.as_str())
    .bind(finding.impact.map(Impact::as_str))
    .bind(i64::from(finding.security))
    .bind(occasion.at_s)
    .bind(finding.opened_s)
    .bind(finding.pending_since_s)
    .bind(finding.confirmations)
    .bind(finding.opens)
    .bind(i64::from(finding.flips.bits))
    .bind(i64::from(finding.flips.observed))
    .bind(finding.flips_at)
    .bind(fired.occ_set)
    .bind(fired.occurrences)
    .bind(fired.rule.version)
    .execute(w.on())
    .await?;
    if is_opening {
        tell_opened(w, trends, occasion, fired, &finding, opened_as, cause, outcome).await?;
        count_places(trends, fired.rule.id, 0, &finding);
    }
    Ok(finding)
}

/// A rule with a finding does not fire: it passed, or was not looked at, or is no more.
async fn does_not_fire(
    w: &mut Writing,
    trends: &mut Trends,
    occasion: &Occasion<'_>,
    rule: &RuleInfo,
    mut finding: Finding,
    signal: Signal,
    outcome: &mut Outcome,
) -> Result<Option<Finding>> {
    let moved = machine::step(finding.before(), signal, Confirm::AT_ONCE, false);
    let is_judged = signal == Signal::Clear;
    let became_unjudged = signal == Signal::Unjudged && finding.unjudged_since_s.is_none() && finding.is_open();
    let became_judged = is_judged && finding.unjudged_since_s.is_some();
    if moved == Move::Stay && !became_unjudged && !became_judged {
        return Ok(Some(finding));
    }
    let was_open = finding.is_open();
    note_observation(&mut finding, occasion, is_judged.then_some(false));
    if is_judged {
        finding.unjudged_since_s = None;
    } else if became_unjudged {
        finding.unjudged_since_s = Some(occasion.at_s);
    }
    if moved == Move::Forget {
        sqlx::query("DELETE FROM finding WHERE id = $1").bind(finding.id).execute(w.on()).await?;
        return Ok(None);
    }
    let since = finding.clear_since_s.unwrap_or(occasion.at_s);
    move_to(&mut finding, moved, occasion.at_s);
    let resolution = match moved {
        Move::Resolve(Resolution::Fixed) if occasion.rule_moved(rule.id) && !occasion.document_moved => {
            Some(Resolution::RuleChanged)
        }
        Move::Resolve(resolution) | Move::Retire(resolution) => Some(resolution),
        _ => None,
    };
    write_quiet(w, occasion, &finding, moved != Move::Stay).await?;
    if let (true, Some(resolution)) = (was_open, resolution) {
        let closing = Closing { at_s: occasion.at_s, since_s: since, document: occasion.document, resolution };
        close(w, occasion.surface, occasion.target, rule.id, finding.id, &closing).await?;
        outcome.resolved += 1;
        let delta = trends.rule(rule.id);
        delta.failing -= 1;
        delta.occurrences -= finding.occurrences;
        delta.resolved += 1;
    }
    Ok(Some(finding))
}

/// Brings the history of raw results up to this observation: those since the last change said what that change said, and
/// this one says `now` (`None`: it was not judged).
fn note_observation(finding: &mut Finding, occasion: &Occasion<'_>, now: Option<bool>) {
    let said_last = finding.flips.bits & 1 == 1;
    if finding.unjudged_since_s.is_none() {
        finding.flips = finding.flips.with(said_last, occasion.evaluations - 1 - finding.flips_at);
    }
    if let Some(fired) = now {
        finding.flips = finding.flips.with(fired, 1);
    }
    finding.flips_at = occasion.evaluations;
}

/// The state and its counters after a move.
fn move_to(finding: &mut Finding, moved: Move, at_s: i64) {
    if let Some(state) = moved.leads_to(Some(finding.state)) {
        finding.state = state;
    }
    match moved {
        Move::Stay | Move::Forget => {}
        Move::Suspect => {
            finding.pending_since_s = Some(at_s);
            finding.confirmations = 1;
        }
        Move::Doubt => {
            finding.clear_since_s = Some(at_s);
            finding.confirmations = 1;
        }
        Move::Count(n) => finding.confirmations = n,
        Move::Open => {
            finding.opened_s = Some(finding.pending_since_s.unwrap_or(at_s));
            finding.opens += 1;
            settle(finding);
        }
        Move::Refute | Move::Reassure | Move::Resolve(_) | Move::Retire(_) => settle(finding),
    }
}

fn settle(finding: &mut Finding) {
    finding.pending_since_s = None;
    finding.clear_since_s = None;
    finding.confirmations = 0;
}

fn classify(occasion: &Occasion<'_>, rule: &RuleInfo, was_fixed: bool) -> (OpenedAs, Cause) {
    machine::classify(&Opening {
        first_look: occasion.is_first_look,
        rule_moved: occasion.rule_moved(rule.id),
        document_moved: occasion.document_moved,
        fired_on_old: occasion.fired_on_old.as_ref().map(|fired| fired.contains(&rule.id)),
        evidence: rule.evidence,
        was_fixed,
        track_record: occasion.has_track_record(rule),
    })
}

async fn was_fixed_before(w: &mut Writing, finding: i64) -> Result<bool> {
    let n: i64 = sqlx::query_scalar("SELECT COUNT(*) FROM finding_span WHERE finding_id = $1 AND resolution = 'fixed'")
        .bind(finding)
        .fetch_one(w.on())
        .await?;
    Ok(n > 0)
}

async fn write_fired(
    w: &mut Writing,
    occasion: &Occasion<'_>,
    fired: &Fired,
    finding: &Finding,
    is_other: bool,
) -> Result<()> {
    sqlx::query(
        "UPDATE finding
         SET state = $2, severity = $3, impact = $4, last_fired_s = $5, unjudged_since_s = NULL,
             changed_s = CASE WHEN $6 = 1 THEN $5 ELSE changed_s END, revision = revision + $6,
             pending_since_s = $7, clear_since_s = $8, confirmations = $9, flips = $10, observed = $11, flips_at = $12,
             occ_set_id = $13, occurrences = $14, rule_version = $15
         WHERE id = $1",
    )
    .bind(finding.id)
    .bind(finding.state.as_str())
    .bind(finding.severity.as_str())
    .bind(finding.impact.map(Impact::as_str))
    .bind(occasion.at_s)
    .bind(i64::from(is_other))
    .bind(finding.pending_since_s)
    .bind(finding.clear_since_s)
    .bind(finding.confirmations)
    .bind(i64::from(finding.flips.bits))
    .bind(i64::from(finding.flips.observed))
    .bind(finding.flips_at)
    .bind(fired.occ_set)
    .bind(fired.occurrences)
    .bind(fired.rule.version)
    .execute(w.on())
    .await?;
    Ok(())
}

async fn write_quiet(w: &mut Writing, occasion: &Occasion<'_>, finding: &Finding, is_other: bool) -> Result<()> {
    sqlx::query(
        "UPDATE finding
         SET state = $2, unjudged_since_s = $3, changed_s = CASE WHEN $4 = 1 THEN $5 ELSE changed_s END,
             revision = revision + $4, pending_since_s = $6, clear_since_s = $7, confirmations = $8,
             flips = $9, observed = $10, flips_at = $11
         WHERE id = $1",
    )
    .bind(finding.id)
    .bind(finding.state.as_str())
    .bind(finding.unjudged_since_s)
    .bind(i64::from(is_other))
    .bind(occasion.at_s)
    .bind(finding.pending_since_s)
    .bind(finding.clear_since_s)
    .bind(finding.confirmations)
    .bind(i64::from(finding.flips.bits))
    .bind(i64::from(finding.flips.observed))
    .bind(finding.flips_at)
    .execute(w.on())
    .await?;
    Ok(())
}

/// The span and the event of an opening, and its part in the numbers of the day.
#[expect(clippy::too_many_arguments, reason = "each is one of the things an opening is made of")]
async fn tell_opened(
    w: &mut Writing,
    trends: &mut Trends,
    occasion: &Occasion<'_>,
    fired: &Fired,
    finding: &Finding,
    opened_as: OpenedAs,
    cause: Cause,
    outcome: &mut Outcome,
) -> Result<()> {
    sqlx::query(
        "INSERT INTO finding_span (finding_id, from_s, opened_as, cause, open_doc, occ_set_id)
         VALUES ($1, $2, $3, $4, $5, $6)
         ON CONFLICT (finding_id, from_s) DO UPDATE SET
             to_s = NULL, resolution = NULL, close_doc = NULL, occ_set_id = excluded.occ_set_id",
    )
    .bind(finding.id)
    .bind(finding.opened_s)
    .bind(opened_as.as_str())
    .bind(cause.as_str())
    .bind(occasion.document)
    .bind(fired.occ_set)
    .execute(w.on())
    .await?;
    let is_regression = machine::is_regression(opened_as, cause);
    let kind = if is_regression { EventKind::FindingRegressed } else { EventKind::FindingOpened };
    let news = News {
        target: occasion.target,
        surface: Some(occasion.surface),
        rule: Some(fired.rule.id),
        subject: Some(finding.id),
        a: (opened_as == OpenedAs::Baseline).then_some(1),
        note: Some(format!("{opened_as} {cause}")),
        ..News::of(kind)
    };
    events::append(w, occasion.at_s, news).await?;
    outcome.opened += 1;
    outcome.regressed += i64::from(is_regression);
    let delta = trends.rule(fired.rule.id);
    delta.failing += 1;
    if opened_as == OpenedAs::Baseline {
        outcome.baseline += 1;
        delta.baseline += 1;
    } else {
        delta.opened += 1;
    }
    delta.regressed += i64::from(is_regression);
    Ok(())
}

/// Occurrences count while the finding is open.
fn count_places(trends: &mut Trends, rule: i64, before: i64, finding: &Finding) {
    let now = if finding.is_open() { finding.occurrences } else { 0 };
    trends.rule(rule).occurrences += now - before;
}

/// How a finding ends.
struct Closing {
    at_s: i64,
    /// The first observation that did not show it.
    since_s: i64,
    document: Option<i64>,
    resolution: Resolution,
}

async fn close(
    w: &mut Writing,
    surface: i64,
    target: Option<i64>,
    rule: i64,
    finding: i64,
    closing: &Closing,
) -> Result<()> {
    sqlx::query("UPDATE finding SET resolution = $2, closed_s = $3 WHERE id = $1")
        .bind(finding)
        .bind(closing.resolution.as_str())
        .bind(closing.since_s)
        .execute(w.on())
        .await?;
    sqlx::query(
        "UPDATE finding_span SET to_s = $2, resolution = $3, close_doc = $4 WHERE finding_id = $1 AND to_s IS NULL",
    )
    .bind(finding)
    .bind(closing.since_s)
    .bind(closing.resolution.as_str())
    .bind(closing.document)
    .execute(w.on())
    .await?;
    let news = News {
        target,
        surface: Some(surface),
        rule: Some(rule),
        subject: Some(finding),
        note: Some(closing.resolution.to_string()),
        ..News::of(EventKind::FindingResolved)
    };
    events::append(w, closing.at_s, news).await
}

/// Closes or puts away every finding of a surface for a reason that is not a judgement. Gives how many were open.
pub(crate) async fn end_all(
    w: &mut Writing,
    trends: &mut Trends,
    surface: i64,
    target: Option<i64>,
    signal: Signal,
    at_s: i64,
) -> Result<i64> {
    let mut ended = 0;
    for (rule, mut finding) in load(w, surface).await? {
        let was_open = finding.is_open();
        let moved = machine::step(finding.before(), signal, Confirm::AT_ONCE, false);
        let (Move::Resolve(resolution) | Move::Retire(resolution)) = moved else { continue };
        move_to(&mut finding, moved, at_s);
        sqlx::query(
            "UPDATE finding
             SET state = $2, changed_s = $3, revision = revision + 1, pending_since_s = NULL, clear_since_s = NULL,
                 confirmations = 0
             WHERE id = $1",
        )
        .bind(finding.id)
        .bind(finding.state.as_str())
        .bind(at_s)
        .execute(w.on())
        .await?;
        if was_open {
            let closing = Closing { at_s, since_s: at_s, document: None, resolution };
            close(w, surface, target, rule, finding.id, &closing).await?;
            let delta = trends.rule(rule);
            delta.failing -= 1;
            delta.occurrences -= finding.occurrences;
            delta.resolved += 1;
            ended += 1;
        }
    }
    Ok(ended)
}

/// Nobody shows the surface any more: its findings are retired, its facts end, it is no longer counted or scheduled.
pub(crate) async fn retire_surface(w: &mut Writing, trends: &mut Trends, surface: i64, now_s: i64) -> Result<()> {
    end_all(w, trends, surface, None, Signal::TargetRetired, now_s).await?;
    let facts = sqlx::query("SELECT rule_id FROM fact_span WHERE surface_id = $1 AND to_s IS NULL")
        .bind(surface)
        .fetch_all(w.on())
        .await?;
    for fact in facts {
        end_fact(w, trends, surface, fact.try_get(0)?, now_s).await?;
    }
    let judged: Option<Option<Vec<u8>>> =
        sqlx::query_scalar("SELECT judged FROM surface WHERE id = $1").bind(surface).fetch_optional(w.on()).await?;
    for rule in Bits::from_bytes(&judged.flatten().unwrap_or_default()).iter() {
        trends.rule(rule).evaluated -= 1;
    }
    sqlx::query("UPDATE reach_span SET to_s = $2 WHERE surface_id = $1 AND to_s IS NULL")
        .bind(surface)
        .bind(now_s)
        .execute(w.on())
        .await?;
    sqlx::query("UPDATE doc_span SET to_s = $2 WHERE surface_id = $1 AND to_s IS NULL")
        .bind(surface)
        .bind(now_s)
        .execute(w.on())
        .await?;
    sqlx::query("DELETE FROM lease WHERE kind = 'surface' AND subject_id = $1").bind(surface).execute(w.on()).await?;
    sqlx::query(
        "UPDATE surface
         SET retired_s = $2, next_due_s = NULL, judged = NULL, evaluations = 0, first_evaluated_s = NULL,
             eval_id = NULL, document_id = NULL, etag = NULL, last_modified = NULL, reach = 'retired',
             n_blocking = 0, n_error = 0, n_warn = 0, n_info = 0, n_security = 0
         WHERE id = $1",
    )
    .bind(surface)
    .bind(now_s)
    .execute(w.on())
    .await?;
    Ok(())
}

/// Sets and ends the facts of a surface. A fact that was not looked at stays what it was.
pub(crate) async fn step_facts(
    w: &mut Writing,
    trends: &mut Trends,
    catalogue: &Catalogue,
    occasion: &Occasion<'_>,
    kept: &Kept,
) -> Result<()> {
    let rows = sqlx::query("SELECT rule_id, value, pointer FROM fact_span WHERE surface_id = $1 AND to_s IS NULL")
        .bind(occasion.surface)
        .fetch_all(w.on())
        .await?;
    let mut known: BTreeMap<i64, (String, String)> = BTreeMap::new();
    for row in rows {
        known.insert(row.try_get(0)?, (row.try_get(1)?, row.try_get(2)?));
    }
    for fired in kept.fired.iter().filter(|fired| fired.rule.describes()) {
        let now = (shortened(&fired.first.0, LONGEST_VALUE), shortened(&fired.first.1, LONGEST_VALUE));
        match known.remove(&fired.rule.id) {
            Some(before) if before == now => continue,
            Some(_) => end_fact(w, trends, occasion.surface, fired.rule.id, occasion.at_s).await?,
            None => {}
        }
        sqlx::query(
            "INSERT INTO fact_span (surface_id, rule_id, from_s, value, pointer) VALUES ($1, $2, $3, $4, $5)
             ON CONFLICT (surface_id, rule_id, from_s) DO UPDATE SET
                 to_s = NULL, value = excluded.value, pointer = excluded.pointer",
        )
        .bind(occasion.surface)
        .bind(fired.rule.id)
        .bind(occasion.at_s)
        .bind(now.0)
        .bind(now.1)
        .execute(w.on())
        .await?;
        trends.rule(fired.rule.id).failing += 1;
    }
    for rule in known.into_keys() {
        let is_fact = catalogue.numbered(rule).is_some_and(|rule| rule.describes());
        if !is_fact || matches!(signal(occasion, kept, rule), Signal::Clear | Signal::RuleWithdrawn) {
            end_fact(w, trends, occasion.surface, rule, occasion.at_s).await?;
        }
    }
    Ok(())
}

async fn end_fact(w: &mut Writing, trends: &mut Trends, surface: i64, rule: i64, at_s: i64) -> Result<()> {
    sqlx::query("UPDATE fact_span SET to_s = $3 WHERE surface_id = $1 AND rule_id = $2 AND to_s IS NULL")
        .bind(surface)
        .bind(rule)
        .bind(at_s)
        .execute(w.on())
        .await?;
    trends.rule(rule).failing -= 1;
    Ok(())
}
