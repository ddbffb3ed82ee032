//! Who there is in the synthetic ecosystem, and what will happen to them: made up at the start, from the seed alone.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, HashSet};

use plumbline_rules::reach::{Outcome, Unreachable};
use plumbline_store::words::{SurfaceKind, TargetKind};

use super::dice::Dice;
use super::documents::{Form, Served};

pub const DAY_S: i64 = 86_400;

/// Where a target is listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Place {
    /// The large registry.
    Registry,
    /// The small one.
    Partner,
    /// The list of domains.
    Domains,
    /// Single addresses.
    Addresses,
}

/// Base addresses of the two registries.
pub const BASES: [(Place, &str, &str); 2] = [
    (Place::Registry, "commons", "https://registry.commons.demo"),
    (Place::Partner, "partners", "https://registry.partners.demo"),
];

/// One target.
#[derive(Debug)]
pub struct Thing {
    pub kind: TargetKind,
    pub key: String,
    pub name: String,
    pub owner: u32,
    pub place: Place,
    /// When it is listed first.
    pub born_s: i64,
    /// When it leaves; `None`: it stays.
    pub gone_s: Option<i64>,
    pub tags: Vec<(String, String)>,
    pub is_own: bool,
    /// Its surfaces, its own document first.
    pub faces: Vec<u32>,
}

/// How a surface answers at present.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Present {
    /// As it should.
    Up,
    /// Not; the looks since then, of which the first few are close together.
    Failing(Outcome, u32),
}

/// One surface.
#[derive(Debug)]
pub struct Face {
    pub form: Form,
    /// The first target that shows it.
    pub thing: u32,
    pub url: String,
    pub host: u32,
    pub endpoint: String,
    /// It wants a token first.
    pub is_gated: bool,
    pub every_s: i64,
    pub took_ms: u16,
    pub faults: u32,
    pub version: [u16; 3],
    pub size: u16,
    pub edition: u32,
    pub present: Present,
    /// Its number in the database, once it is known there.
    pub id: Option<i64>,
    /// The last look, once there was one.
    pub last_s: Option<i64>,
    /// Nothing more is recorded of it.
    pub is_over: bool,
}

/// Something that happens to a surface.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Act {
    /// Another version is served.
    Deploy,
    /// A fault that a deploy brought is mended.
    Mend(u8),
    /// A fault comes, or goes: a surface that serves two versions in turn.
    Flip(u8),
    /// It stops answering, for so many seconds.
    Fail(u8, u32),
    /// A look while it does not answer.
    FailAgain,
    /// It answers again.
    Back,
    /// A look that changes nothing, close behind another.
    Again,
    /// A look that changes nothing, in its turn.
    Look,
    /// The card moves to the newest revision.
    Migrate,
    /// The entry is taken out of its registry.
    Leave,
}

/// Ways of not answering, by number.
pub const FAILURES: [Outcome; 9] = [
    Outcome::Unreachable(Unreachable::ConnectTimeout),
    Outcome::Unreachable(Unreachable::Refused),
    Outcome::Unreachable(Unreachable::Http5xx),
    Outcome::Unreachable(Unreachable::DnsServfail),
    Outcome::Unreachable(Unreachable::TlsExpired),
    Outcome::Unreachable(Unreachable::ReadTimeout),
    Outcome::Unreachable(Unreachable::Reset),
    Outcome::Absent(None),
    Outcome::Throttled,
];
const ABSENT: u8 = 7;
const THROTTLED: u8 = 8;

/// What is to come, the earliest first.
pub type Agenda = BinaryHeap<Reverse<(i64, u32, Act)>>;

/// How large the ecosystem is, and how long it has been watched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Extent {
    pub targets: usize,
    pub seed: u64,
    pub start_s: i64,
    pub end_s: i64,
}

/// Everything there is.
pub struct World {
    pub extent: Extent,
    pub owners: Vec<String>,
    pub hosts: Vec<String>,
    pub things: Vec<Thing>,
    pub faces: Vec<Face>,
    pub agenda: Agenda,
    /// Spans in which our own network was broken.
    pub gaps: Vec<(i64, i64)>,
    /// The things whose entries lead to a surface at present.
    pub shown_by: HashMap<u32, HashSet<u32>>,
}

const FIRST: [&str; 20] = [
    "tide", "harb", "north", "lumen", "quill", "ember", "cobalt", "river", "stone", "cedar", "falcon", "maple",
    "orbit", "pixel", "delta", "sable", "vertex", "willow", "zephyr", "atlas",
];
const SECOND: [&str; 16] = [
    "house", "labs", "works", "desk", "craft", "port", "field", "forge", "line", "gate", "yard", "mark", "wave",
    "base", "loop", "path",
];
const SUBJECTS: [&str; 24] = [
    "tides",
    "berths",
    "invoices",
    "weather",
    "translate",
    "search",
    "routes",
    "tickets",
    "stock",
    "notes",
    "calendar",
    "charts",
    "mail",
    "payroll",
    "maps",
    "recipes",
    "contracts",
    "logs",
    "metrics",
    "payments",
    "orders",
    "images",
    "speech",
    "archive",
];
/// Platforms that host for many owners.
const PLATFORMS: usize = 5;

impl World {
    /// Makes up everybody, and their future.
    pub fn new(extent: Extent) -> World {
        let owner_count = (extent.targets / 4).max(6);
        let owners = (0..owner_count).map(owner_name).collect();
        let hosts: Vec<String> = (1..=PLATFORMS).map(|n| format!("run{n}.harbourcloud.demo")).collect();
        let mut world = World {
            extent,
            owners,
            hosts,
            things: Vec::with_capacity(extent.targets),
            faces: Vec::with_capacity(extent.targets * 2),
            agenda: Agenda::new(),
            gaps: Vec::new(),
            shown_by: HashMap::new(),
        };
        let mut known_hosts = HashMap::new();
        let mut issuers = HashMap::new();
        for n in 0..extent.targets {
            world.add_thing(n, &mut known_hosts, &mut issuers);
        }
        world.plan_hosts();
        world.plan_toolkit();
        world.plan_gaps();
        world
    }

    fn add_thing(&mut self, n: usize, known: &mut HashMap<String, u32>, issuers: &mut HashMap<u32, u32>) {
        let mut dice = Dice::of(self.extent.seed, n as u64);
        // A few own much, most own little.
        let owner = (dice.unit().powi(3) * self.owners.len() as f64) as usize;
        let owner = owner.min(self.owners.len() - 1);
        let (start_s, end_s) = (self.extent.start_s, self.extent.end_s);
        let born_s = match dice.unit() {
            share if share < 0.62 => start_s + dice.within(1800),
            share => start_s + ((share - 0.62) / 0.38 * (end_s - start_s - DAY_S) as f64) as i64,
        };
        let gone_s = dice.chance(0.05).then(|| born_s + 3 * DAY_S + dice.within((end_s - born_s).max(1)));
        let subject = dice.one(&SUBJECTS);
        let slug = format!("{subject}-{n}");
        let owner_name = self.owners[owner].clone();
        let name = format!("{} {}", capital(&owner_name), subject);
        let kind = match dice.unit() {
            share if share < 0.62 => TargetKind::McpServer,
            share if share < 0.90 => TargetKind::A2aAgent,
            share if share < 0.97 => TargetKind::OpenapiService,
            _ => TargetKind::OauthService,
        };
        let place = match kind {
            TargetKind::McpServer if owner % 9 == 4 => Place::Partner,
            TargetKind::McpServer => Place::Registry,
            TargetKind::A2aAgent => Place::Domains,
            _ => Place::Addresses,
        };
        let platform = dice.chance(0.3).then(|| dice.below(PLATFORMS) as u32);
        let mut tags = Vec::new();
        if dice.chance(0.08) {
            tags.push(("tier".to_owned(), (1 + dice.below(3)).to_string()));
        }
        if owner.is_multiple_of(7) {
            tags.push(("region".to_owned(), ["north", "south", "east"][owner % 3].to_owned()));
        }
        let id = self.things.len() as u32;
        let mut thing = Thing {
            kind,
            key: String::new(),
            name,
            owner: owner as u32,
            place,
            born_s,
            gone_s: gone_s.filter(|gone_s| *gone_s < end_s - DAY_S),
            tags,
            is_own: owner == 1,
            faces: Vec::new(),
        };
        match kind {
            TargetKind::McpServer => {
                thing.key = format!("demo.{owner_name}/{slug}");
                self.add_server(&mut thing, id, &slug, platform, known, issuers, &mut dice);
            }
            TargetKind::A2aAgent => {
                let host = format!("{slug}.{}", self.home(&owner_name, platform, "agents"));
                thing.key.clone_from(&host);
                let form = if dice.chance(self.share(born_s, 0.7, 0.35)) { Form::OldCard } else { Form::Card };
                let url = format!("https://{host}/.well-known/agent-card.json");
                let host = self.host(platform.map_or(host, |p| self.hosts[p as usize].clone()), known);
                let face = self.add_face(form, id, url, host, String::new(), &mut dice);
                thing.faces.push(face);
                if form == Form::OldCard && dice.chance(0.35) {
                    let at_s = born_s + 10 * DAY_S + dice.within((end_s - born_s).max(1));
                    self.agenda.push(Reverse((at_s, face, Act::Migrate)));
                }
            }
            _ => {
                let form = if kind == TargetKind::OpenapiService { Form::Openapi } else { Form::Resource };
                let host = format!("{slug}.{}", self.home(&owner_name, platform, "api"));
                let path =
                    if form == Form::Openapi { "/openapi.json" } else { "/.well-known/oauth-protected-resource" };
                let url = format!("https://{host}{path}");
                let endpoint = format!("https://{host}/");
                thing.key.clone_from(&url);
                let host = self.host(host, known);
                thing.faces.push(self.add_face(form, id, url, host, endpoint, &mut dice));
            }
        }
        self.plan_thing(&thing, &mut dice);
        self.things.push(thing);
    }

    #[expect(clippy::too_many_arguments, reason = "each is one of the things a server is made of")]
    fn add_server(
        &mut self,
        thing: &mut Thing,
        id: u32,
        slug: &str,
        platform: Option<u32>,
        known: &mut HashMap<String, u32>,
        issuers: &mut HashMap<u32, u32>,
        dice: &mut Dice,
    ) {
        let owner_name = self.owners[thing.owner as usize].clone();
        let base = BASES.iter().find(|(place, ..)| *place == thing.place).map_or("", |(_, _, base)| base);
        let url = format!("{base}/v0.1/servers/{}/versions/latest", thing.key.replace('/', "%2F"));
        let host_name = self.home(&owner_name, platform, "mcp");
        let host = self.host(host_name.clone(), known);
        let has_endpoint = dice.chance(0.72);
        let endpoint = if has_endpoint { format!("https://{host_name}/{slug}/mcp") } else { String::new() };
        let entry = self.add_face(Form::ServerJson, id, url, host, endpoint.clone(), dice);
        thing.faces.push(entry);
        if !has_endpoint {
            return;
        }
        let face = self.add_face(Form::Endpoint, id, endpoint.clone(), host, endpoint.clone(), dice);
        thing.faces.push(face);
        if !dice.chance(0.3) {
            return;
        }
        self.faces[face as usize].is_gated = true;
        let url = format!("https://{host_name}/.well-known/oauth-protected-resource/{slug}/mcp");
        thing.faces.push(self.add_face(Form::Resource, id, url, host, endpoint, dice));
        let issuer = match issuers.get(&thing.owner) {
            Some(face) => *face,
            None => {
                let login = format!("login.{owner_name}.demo");
                let url = format!("https://{login}/.well-known/oauth-authorization-server");
                let host = self.host(login, known);
                let face = self.add_face(Form::Issuer, id, url, host, String::new(), dice);
                issuers.insert(thing.owner, face);
                face
            }
        };
        thing.faces.push(issuer);
    }

    /// The host an owner serves from, or the platform that does it for many.
    fn home(&self, owner: &str, platform: Option<u32>, service: &str) -> String {
        platform.map_or_else(|| format!("{service}.{owner}.demo"), |n| self.hosts[n as usize].clone())
    }

    fn host(&mut self, name: String, known: &mut HashMap<String, u32>) -> u32 {
        if let Some(n) = self.hosts[..PLATFORMS].iter().position(|host| *host == name) {
            return n as u32;
        }
        let next = self.hosts.len() as u32;
        let host = *known.entry(name.clone()).or_insert(next);
        if host == next {
            self.hosts.push(name);
        }
        host
    }

    /// A share that moves evenly from the first value to the last over a year.
    pub fn share(&self, at_s: i64, first: f64, last: f64) -> f64 {
        let years = (at_s - self.extent.start_s) as f64 / (365 * DAY_S) as f64;
        (first + (last - first) * years).clamp(0.0, 1.0)
    }

    fn add_face(&mut self, form: Form, thing: u32, url: String, host: u32, endpoint: String, dice: &mut Dice) -> u32 {
        let id = self.faces.len() as u32;
        let faults = form
            .faults()
            .iter()
            .enumerate()
            .fold(0, |faults, (bit, fault)| faults | if dice.chance(fault.at_first) { 1 << bit } else { 0 });
        self.faces.push(Face {
            form,
            thing,
            url,
            host,
            endpoint,
            is_gated: false,
            every_s: 3600,
            took_ms: dice.magnitude(35.0, 900.0) as u16,
            faults,
            version: [dice.below(3) as u16, dice.below(9) as u16, dice.below(20) as u16],
            size: (2 + dice.below(7)) as u16,
            edition: 0,
            present: Present::Up,
            id: None,
            last_s: None,
            is_over: false,
        });
        id
    }

    /// Deploys of a target, and its end.
    fn plan_thing(&mut self, thing: &Thing, dice: &mut Dice) {
        let days = (self.extent.end_s - thing.born_s) as f64 / DAY_S as f64;
        let a_year = match dice.unit() {
            share if share < 0.45 => 0.2,
            share if share < 0.80 => dice.magnitude(1.0, 4.0),
            share if share < 0.96 => dice.magnitude(4.0, 14.0),
            _ => dice.magnitude(14.0, 45.0),
        };
        let mut at_s = thing.born_s + DAY_S;
        loop {
            at_s += (-(1.0 - dice.unit()).ln() * 365.0 / a_year * DAY_S as f64) as i64 + 1;
            if (at_s - thing.born_s) as f64 > days * DAY_S as f64 {
                break;
            }
            for (n, face) in thing.faces.iter().enumerate() {
                if dice.chance([0.85, 0.7, 0.05, 0.02][n.min(3)]) {
                    self.agenda.push(Reverse((at_s + dice.within(900), *face, Act::Deploy)));
                }
            }
        }
        if let Some(gone_s) = thing.gone_s {
            self.agenda.push(Reverse((gone_s, thing.faces[0], Act::Leave)));
        }
        let span_s = (self.extent.end_s - thing.born_s).max(1);
        if dice.chance(0.008) && thing.kind != TargetKind::McpServer {
            let face = thing.faces[0];
            let bit = dice.below(6) as u8;
            let mut flip_s = thing.born_s + 2 * DAY_S + dice.within(span_s);
            for _ in 0..26 {
                self.agenda.push(Reverse((flip_s, face, Act::Flip(bit))));
                flip_s += 3600 + dice.within(5400);
            }
        }
        if dice.chance(0.02) && thing.kind == TargetKind::A2aAgent {
            let long_s = dice.magnitude(0.5, 90.0) * DAY_S as f64;
            let at_s = thing.born_s + 2 * DAY_S + dice.within(span_s);
            self.agenda.push(Reverse((at_s, thing.faces[0], Act::Fail(ABSENT, long_s as u32))));
        }
    }

    /// Outages and other troubles of hosts, which all their surfaces share.
    fn plan_hosts(&mut self) {
        let mut on: Vec<Vec<u32>> = vec![Vec::new(); self.hosts.len()];
        for (id, face) in self.faces.iter().enumerate().filter(|(_, face)| face.form != Form::ServerJson) {
            on[face.host as usize].push(id as u32);
        }
        let span_s = self.extent.end_s - self.extent.start_s;
        for (host, faces) in on.iter().enumerate() {
            let mut dice = Dice::of(self.extent.seed, 0x4057_0000_0000 + host as u64);
            let a_year = match dice.unit() {
                _ if host < PLATFORMS => 2.5,
                share if share < 0.5 => 0.15,
                share if share < 0.95 => dice.magnitude(0.6, 3.0),
                _ => dice.magnitude(6.0, 20.0),
            };
            let mut at_s = self.extent.start_s + DAY_S;
            loop {
                at_s += (-(1.0 - dice.unit()).ln() * 365.0 / a_year * DAY_S as f64) as i64 + 7200;
                if at_s >= self.extent.start_s + span_s {
                    break;
                }
                let how = match dice.unit() {
                    share if share < 0.04 => THROTTLED,
                    share if share < 0.12 => 4,
                    _ => [0, 1, 2, 2, 3, 5, 6][dice.below(7)],
                };
                let long_s = if dice.chance(0.35) { 30.0 } else { dice.magnitude(0.3, 60.0) * 3600.0 };
                let forever = host >= PLATFORMS && dice.chance(0.03);
                let long_s = if forever { u32::MAX } else { long_s as u32 };
                for face in faces {
                    self.agenda.push(Reverse((at_s + dice.within(300), *face, Act::Fail(how, long_s))));
                }
            }
        }
    }

    /// A release of the toolkit that a quarter of all cards are made with drops the tags of skills; most mend it within
    /// days.
    fn plan_toolkit(&mut self) {
        let mut dice = Dice::of(self.extent.seed, 0x7001_0000_0000);
        let release_s = self.extent.start_s + self.world_share(0.7);
        for n in 0..self.faces.len() {
            let face = &self.faces[n];
            if !matches!(face.form, Form::Card | Form::OldCard) || face.faults & 1 != 0 || !dice.chance(0.25) {
                continue;
            }
            let at_s = release_s + dice.within(10 * 3600);
            self.agenda.push(Reverse((at_s, n as u32, Act::Flip(0))));
            if dice.chance(0.8) {
                let after_s = (dice.magnitude(0.5, 20.0) * DAY_S as f64) as i64;
                self.agenda.push(Reverse((at_s + after_s, n as u32, Act::Mend(0))));
            }
        }
    }

    /// So much of the time that is told.
    fn world_share(&self, share: f64) -> i64 {
        ((self.extent.end_s - self.extent.start_s) as f64 * share) as i64
    }

    fn plan_gaps(&mut self) {
        let mut dice = Dice::of(self.extent.seed, 0x6a70_0000_0000);
        let mut at_s = self.extent.start_s + 9 * DAY_S;
        while at_s < self.extent.end_s - 2 * DAY_S {
            self.gaps.push((at_s, at_s + 1800 + dice.within(3 * 3600)));
            at_s += 20 * DAY_S + dice.within(50 * DAY_S);
        }
    }

    /// The document of a surface as it is now.
    pub fn served<'a>(&'a self, face: &'a Face, version: &'a str) -> Served<'a> {
        let thing = &self.things[face.thing as usize];
        Served {
            form: face.form,
            name: &thing.name,
            key: &thing.key,
            owner: &self.owners[thing.owner as usize],
            host: face.url.split('/').nth(2).unwrap_or_default(),
            url: &face.url,
            endpoint: &face.endpoint,
            version,
            faults: face.faults,
            size: usize::from(face.size),
            edition: face.edition,
        }
    }

    /// A surface is due: it is new, an entry that another version came for, or back after nobody showed it for a while.
    /// Nobody looked while it was away, so what comes back is looked at as if it was new.
    pub fn take_on(&mut self, face: u32, look_s: i64) {
        let known = &mut self.faces[face as usize];
        if known.form != Form::ServerJson {
            (known.last_s, known.present, known.is_over) = (None, Present::Up, false);
        }
        let is_entry_again = known.last_s.is_some();
        self.agenda.push(Reverse((look_s, face, Act::Look)));
        if is_entry_again {
            self.agenda.push(Reverse((look_s + 60, face, Act::Again)));
        }
    }

    /// An entry is read: what it leads to is shown by its thing.
    pub fn show(&mut self, thing: u32) {
        for face in &self.things[thing as usize].faces[1..] {
            self.shown_by.entry(*face).or_default().insert(thing);
        }
    }

    /// A thing has left: what nobody else shows is over with it, until somebody shows it again.
    pub fn leave(&mut self, thing: u32) {
        for face in self.things[thing as usize].faces.clone() {
            let others = self.shown_by.get_mut(&face).is_some_and(|things| {
                things.remove(&thing);
                !things.is_empty()
            });
            self.faces[face as usize].is_over |= !others;
        }
    }

    /// Surfaces by kind and address.
    pub fn by_address(&self) -> HashMap<(SurfaceKind, String), u32> {
        (0..).zip(&self.faces).map(|(id, face)| ((face.form.surface(), face.url.clone()), id)).collect()
    }
}

impl Face {
    /// What it calls its version.
    pub fn version(&self) -> String {
        let [major, minor, patch] = self.version;
        format!("{major}.{minor}.{patch}")
    }

    /// It serves another version: with a fault more, one less, or neither. Gives the fault that came.
    pub fn deploy(&mut self, at_s: i64, year: f64, seed: u64) -> Option<u8> {
        let mut dice = Dice::of(seed ^ at_s as u64, self.url.len() as u64 ^ u64::from(self.edition) << 8);
        self.bump(&mut dice);
        let faults = self.form.faults();
        for (bit, fault) in
            faults.iter().enumerate().filter(|(bit, _)| self.faults & (1 << bit) != 0).collect::<Vec<_>>()
        {
            let mends = 0.12 + (1.0 - fault.after_a_year).max(0.0) * 0.4 * (0.5 + year);
            if dice.chance(mends) {
                self.faults &= !(1 << bit);
            }
        }
        if !dice.chance(0.15) {
            self.size = (2 + dice.below(7)) as u16;
            return None;
        }
        let weight: u32 = faults.iter().map(|fault| fault.breaks).sum();
        let mut drawn = dice.below(weight as usize) as u32;
        let bit = faults.iter().position(|fault| {
            let is_it = drawn < fault.breaks;
            drawn = drawn.saturating_sub(fault.breaks);
            is_it
        })?;
        let is_new = self.faults & (1 << bit) == 0;
        self.faults |= 1 << bit;
        is_new.then_some(bit as u8)
    }

    fn bump(&mut self, dice: &mut Dice) {
        self.edition += 1;
        match dice.unit() {
            share if share < 0.1 => {}
            share if share < 0.65 => self.version[2] += 1,
            share if share < 0.95 => self.version = [self.version[0], self.version[1] + 1, 0],
            _ => self.version = [self.version[0] + 1, 0, 0],
        }
    }

    /// One fault is mended, in a version made for it.
    pub fn mend(&mut self, bit: u8) {
        self.faults &= !(1 << bit);
        self.version[2] += 1;
        self.edition += 1;
    }
}

fn owner_name(n: usize) -> String {
    let (first, second) = (FIRST[n % FIRST.len()], SECOND[n / FIRST.len() % SECOND.len()]);
    let round = n / (FIRST.len() * SECOND.len());
    if round == 0 { format!("{first}{second}") } else { format!("{first}{second}{round}") }
}

fn capital(word: &str) -> String {
    let mut letters = word.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().collect::<String>() + letters.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn world(seed: u64) -> World {
        World::new(Extent { targets: 400, seed, start_s: 1_700_000_000, end_s: 1_700_000_000 + 90 * DAY_S })
    }

    #[test]
    fn the_same_seed_makes_the_same_world() {
        let told = |world: &World| {
            let faces: Vec<_> = world.faces.iter().map(|f| (f.url.clone(), f.faults, f.version, f.took_ms)).collect();
            let mut agenda: Vec<_> = world.agenda.iter().map(|Reverse(entry)| *entry).collect();
            agenda.sort_unstable();
            (faces, agenda)
        };
        assert_eq!(told(&world(3)), told(&world(3)));
        assert_ne!(told(&world(3)), told(&world(4)));
    }

    #[test]
    fn addresses_are_one_of_a_kind_and_belong_to_nobody() {
        let world = world(1);
        assert_eq!(world.by_address().len(), world.faces.len());
        for face in &world.faces {
            let host = face.url.split('/').nth(2).unwrap();
            assert!(host.ends_with(".demo"), "{host}");
        }
        let keys: std::collections::HashSet<_> = world.things.iter().map(|thing| (&thing.kind, &thing.key)).collect();
        assert_eq!(keys.len(), world.things.len());
    }

    #[test]
    fn a_login_is_over_with_the_last_thing_that_shows_it_and_begins_anew_with_the_next() {
        let mut world = world(2);
        let things_of = |login: u32| -> Vec<u32> {
            (0..).zip(&world.things).filter(|(_, thing)| thing.faces.contains(&login)).map(|(n, _)| n).collect()
        };
        let logins = (0_u32..).zip(&world.faces).filter(|(_, face)| face.form == Form::Issuer);
        let (login, things) =
            logins.map(|(login, _)| (login, things_of(login))).find(|(_, things)| things.len() > 1).unwrap();
        for thing in &things {
            assert!(!world.faces[login as usize].is_over);
            world.show(*thing);
        }
        for thing in &things {
            assert!(!world.faces[login as usize].is_over, "somebody shows it");
            world.leave(*thing);
        }
        assert!(world.faces[login as usize].is_over);
        world.take_on(login, 1000);
        assert!(!world.faces[login as usize].is_over);
    }

    #[test]
    fn what_comes_back_has_no_quiet_time_behind_it() {
        let mut world = world(2);
        world.agenda.clear();
        let of = |form| (0_u32..).zip(&world.faces).find(|(_, face)| face.form == form).unwrap().0;
        let (login, entry) = (of(Form::Issuer), of(Form::ServerJson));
        for face in [login, entry] {
            let face = &mut world.faces[face as usize];
            (face.last_s, face.present) = (Some(7), Present::Failing(FAILURES[0], 99));
        }
        world.take_on(login, 1000);
        world.take_on(entry, 1000);
        assert_eq!((world.faces[login as usize].last_s, world.faces[login as usize].present), (None, Present::Up));
        assert_eq!(world.faces[entry as usize].last_s, Some(7), "an entry is looked at for its new version only");
        let mut agenda: Vec<_> = world.agenda.iter().map(|Reverse(act)| *act).collect();
        agenda.sort_unstable();
        let mut expected = vec![(1000, login, Act::Look), (1000, entry, Act::Look), (1060, entry, Act::Again)];
        expected.sort_unstable();
        assert_eq!(agenda, expected);
    }

    #[test]
    fn a_deploy_can_break_and_mend() {
        let mut world = world(2);
        let (mut came, mut went) = (0, 0);
        for face in &mut world.faces {
            for n in 0..10 {
                let before = face.faults;
                came += usize::from(face.deploy(n * DAY_S, 0.5, 9).is_some());
                went += usize::from((before & !face.faults) != 0);
            }
        }
        assert!(came > 100 && went > 100, "{came} {went}");
    }
}
