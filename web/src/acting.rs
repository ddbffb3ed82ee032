//! What pages, their forms and the API do alike: it is judged, done, and noted in the audit, wherever it was asked for.

use plumbline_alerts::desk::{Asked, Made, Refused};
use plumbline_alerts::{quiet, waiving, working};
use plumbline_store::alerting::{Alert, Maintenance, Silence, Waiver};
use plumbline_store::hooks::{Endpoint, Origin};
use plumbline_store::{AlertId, TargetId, taken_on};
use serde_json::{Value, json};

use crate::WebState;
use crate::error::Error;
use crate::operator::Actor;
use crate::pages::webhooks::{host_only, receiver};

/// Keeps a silence.
pub async fn add_silence(state: &WebState, by: &Actor, mut new: Silence) -> Result<Silence, Error> {
    by.must_cover(&new.matcher)?;
    quiet::check_silence(&new)?;
    new.id = state.store.add_silence(&new).await?;
    by.note(state, "silence.add", format!("silence:{}", new.id), (None, Some(json!(new)))).await?;
    Ok(new)
}

/// Ends a silence.
pub async fn end_silence(state: &WebState, by: &Actor, id: i64, now_s: i64) -> Result<(), Error> {
    let kept = state.store.silences(now_s).await?.into_iter().find(|one| one.id == id);
    may_end("silence", id, kept.as_ref().map(|one| (one.matcher.as_str(), one.origin)), by)?;
    gone("silence", id, state.store.end_silence(id, now_s).await?)?;
    by.note(state, "silence.end", format!("silence:{id}"), (Some(json!(kept)), None)).await
}

/// Keeps a waiver, and brings findings to it.
pub async fn add_waiver(state: &WebState, by: &Actor, mut new: Waiver) -> Result<Waiver, Error> {
    by.must_cover(&new.matcher)?;
    quiet::check_waiver(&new)?;
    new.id = state.store.add_waiver(&new).await?;
    by.note(state, "waiver.add", format!("waiver:{}", new.id), (None, Some(json!(new)))).await?;
    brought(waiving::apply(&state.store, new.created_s).await);
    Ok(new)
}

/// Takes a waiver back, and brings findings to that.
pub async fn end_waiver(state: &WebState, by: &Actor, id: i64, now_s: i64) -> Result<(), Error> {
    let kept = state.store.waivers(now_s).await?.into_iter().find(|one| one.id == id);
    may_end("waiver", id, kept.as_ref().map(|one| (one.matcher.as_str(), one.origin)), by)?;
    let was_there = state.store.end_waiver(id, now_s).await?;
    gone("waiver", id, was_there)?;
    by.note(state, "waiver.end", format!("waiver:{id}"), (Some(json!(kept)), None)).await?;
    brought(waiving::apply(&state.store, now_s).await);
    Ok(())
}

/// What is kept is kept; that it is brought to findings and surfaces is tried again within a minute.
fn brought<T>(applied: Result<T, plumbline_store::Error>) {
    if let Err(error) = applied {
        tracing::warn!("what keeps quiet is brought to findings and surfaces later: {error}");
    }
}

/// Keeps a maintenance window.
pub async fn add_maintenance(state: &WebState, by: &Actor, mut new: Maintenance) -> Result<Maintenance, Error> {
    by.must_cover(&new.matcher)?;
    quiet::check_maintenance(&new)?;
    new.id = state.store.add_maintenance(&new).await?;
    by.note(state, "maintenance.add", format!("maintenance:{}", new.id), (None, Some(json!(new)))).await?;
    brought(working::apply(&state.store, new.created_s).await);
    Ok(new)
}

/// Calls a maintenance window off.
pub async fn end_maintenance(state: &WebState, by: &Actor, id: i64, now_s: i64) -> Result<(), Error> {
    let kept = state.store.maintenances(now_s).await?.into_iter().find(|one| one.id == id);
    may_end("maintenance window", id, kept.as_ref().map(|one| (one.matcher.as_str(), one.origin)), by)?;
    let was_there = state.store.end_maintenance(id, now_s).await?;
    gone("maintenance window", id, was_there)?;
    by.note(state, "maintenance.end", format!("maintenance:{id}"), (Some(json!(kept)), None)).await?;
    brought(working::apply(&state.store, now_s).await);
    Ok(())
}

/// Whether something may be ended: it is there, was not made in the settings file, and is the actor's to touch.
fn may_end(what: &'static str, id: i64, kept: Option<(&str, Origin)>, by: &Actor) -> Result<(), Error> {
    let (matcher, origin) = kept.ok_or_else(|| Error::NotFound { what, asked: id.to_string() })?;
    by.must_cover(matcher)?;
    match origin {
        Origin::Ui => Ok(()),
        Origin::File => Err(Error::Conflict(format!("This {what} stands in the settings file and is ended there."))),
    }
}

fn gone(what: &'static str, id: i64, was_there: bool) -> Result<(), Error> {
    if was_there { Ok(()) } else { Err(Error::NotFound { what, asked: id.to_string() }) }
}

/// An acknowledgement as it was asked for, by a form or a program.
#[derive(Debug, Clone, Copy)]
pub struct TakenOn<'a> {
    /// What will be done.
    pub note: &'a str,
    /// Who, in their own words; `None`: the actor.
    pub who: Option<&'a str>,
    /// For so many hours; `None`: until it ends.
    pub hours: Option<i64>,
}

impl TakenOn<'_> {
    fn kept(&self, by: &Actor, now_s: i64) -> taken_on::TakenOn {
        taken_on::TakenOn {
            by: self.who.map_or_else(|| by.name(), str::to_owned),
            note: self.note.to_owned(),
            at_s: now_s,
            until_s: self.hours.map(|hours| now_s + hours * 3_600),
        }
    }
}

/// Takes an alert on.
pub async fn acknowledge(
    state: &WebState,
    by: &Actor,
    id: AlertId,
    asked: TakenOn<'_>,
    now_s: i64,
) -> Result<Option<Alert>, Error> {
    let not_open = || Error::NotFound { what: "open alert", asked: id.to_string() };
    let before = state.store.alert(id).await?.filter(|alert| is_theirs(by, alert)).ok_or_else(not_open)?;
    let taken = asked.kept(by, now_s);
    if !state.store.acknowledge(id, &taken).await? {
        return Err(not_open());
    }
    let was = json!({ "by": before.ack_by, "note": before.ack_note, "until_s": before.ack_until_s });
    let was = before.ack_by.is_some().then_some(was);
    let is = taken.told();
    by.note(state, "alert.acknowledge", format!("alert:{id}"), (was, Some(is))).await?;
    Ok(state.store.alert(id).await?)
}

/// Takes findings on, and the alerts about them.
pub async fn take_on(
    state: &WebState,
    by: &Actor,
    findings: &[i64],
    asked: TakenOn<'_>,
    now_s: i64,
) -> Result<(), Error> {
    if let Some(owner) = by.owner()
        && !state.store.not_of_owner(findings, owner).await?.is_empty()
    {
        return Err(Error::NotTheirs(owner.to_owned()));
    }
    let taken = asked.kept(by, now_s);
    for finding in state.store.take_on(findings, &taken).await? {
        by.note(state, "finding.acknowledge", format!("finding:{finding}"), (None, Some(taken.told()))).await?;
    }
    Ok(())
}

/// Whether an alert may be touched: with a token of one owner only those about its targets.
fn is_theirs(by: &Actor, alert: &Alert) -> bool {
    let owners = || alert.facts.0.get("owner");
    by.owner().is_none_or(|owner| owners().is_some_and(|owners| owners.iter().any(|one| one == owner)))
}

/// A receiver as the audit shows it: nothing of it can be used to send anything.
fn shown(asked: &Asked) -> Value {
    let mut shown = json!(asked);
    shown["url"] = host_only(&asked.url).into();
    // What a person wrote into it may be a secret of theirs.
    shown["template"] = json!(format!("{} characters", asked.template.chars().count()));
    shown
}

/// Makes a receiver.
pub async fn add_webhook(state: &WebState, by: &Actor, asked: &Asked) -> Result<Made, Refused> {
    let made = state.desk.create(asked).await?;
    let entity = format!("webhook:{}", made.endpoint.is.slug);
    by.note(state, "webhook.add", entity, (None, Some(shown(asked))))
        .await
        .map_err(|error| Refused::Bad(error.to_string()))?;
    Ok(made)
}

/// Changes a receiver.
pub async fn change_webhook(state: &WebState, by: &Actor, before: &Asked, asked: &Asked) -> Result<Made, Refused> {
    let made = state.desk.change(&before.name, asked).await?;
    let mut is = shown(asked);
    // That it was changed is worth knowing; what it is, nobody is told.
    is["has_new_secret"] = json!(asked.secret.is_some() || asked.token.is_some());
    let entity = format!("webhook:{}", before.name);
    by.note(state, "webhook.change", entity, (Some(shown(before)), Some(is)))
        .await
        .map_err(|error| Refused::Bad(error.to_string()))?;
    Ok(made)
}

/// Whether a kept receiver may be touched.
pub async fn may_touch(state: &WebState, by: &Actor, name: &str) -> Result<Endpoint, Error> {
    let endpoint = receiver(state, name).await?;
    by.must_cover(&endpoint.is.matcher)?;
    Ok(endpoint)
}

/// Takes a receiver away.
pub async fn remove_webhook(state: &WebState, by: &Actor, name: &str) -> Result<(), Error> {
    may_touch(state, by, name).await?;
    let (_, before) = state.desk.changeable(name).await?;
    state.desk.remove(name).await?;
    by.note(state, "webhook.remove", format!("webhook:{name}"), (Some(shown(&before)), None)).await
}

/// Gives a receiver a new secret.
pub async fn rotate_secret(
    state: &WebState,
    by: &Actor,
    name: &str,
    grace_h: i64,
    is_forced: bool,
) -> Result<Made, Error> {
    may_touch(state, by, name).await?;
    let made = state.desk.rotate(name, grace_h, is_forced).await?;
    let how = json!({ "grace_hours": grace_h, "force": is_forced });
    by.note(state, "webhook.rotate", format!("webhook:{name}"), (None, Some(how))).await?;
    Ok(made)
}

/// Stops sending to a receiver, or goes on.
pub async fn pause_webhook(state: &WebState, by: &Actor, name: &str, is_paused: bool) -> Result<Endpoint, Error> {
    let before = may_touch(state, by, name).await?;
    let endpoint = state.desk.pause(name, is_paused, &by.name()).await?;
    let stands = |endpoint: &Endpoint| Some(json!({ "state": endpoint.state, "note": endpoint.state_note }));
    let action = if is_paused { "webhook.pause" } else { "webhook.resume" };
    by.note(state, action, format!("webhook:{name}"), (stands(&before), stands(&endpoint))).await?;
    Ok(endpoint)
}

/// Notes that targets were told to be looked at, paused or looked at again.
pub async fn steered(
    state: &WebState,
    by: &Actor,
    action: &'static str,
    target: Option<TargetId>,
) -> Result<(), Error> {
    let entity = target.map_or_else(|| "crawls".to_owned(), |target| format!("target:{target}"));
    by.note(state, action, entity, (None, None)).await
}
