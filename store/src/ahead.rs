//! What a batch reads ahead and writes behind, many rows with one statement.
//!
//! A statement for every surface costs more than what it does. So a batch asks at its beginning for the rows of all the
//! surfaces it is about, keeps them as they move, and asks again only where others than the surface itself may have moved
//! them. Packed days and months are written at its end, each once however many looks fell on it.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use sqlx::{AssertSqlSafe, Row};

use crate::dialect::Writing;
use crate::error::{Error, Result};
use crate::findings::{self, Findings};
use crate::ids::SurfaceId;
use crate::probes::month_of;
use crate::record::{self, Before};
use crate::rows::{DAY_S, in_statements, places};
use crate::targets::{self, Face, TargetRow};
use crate::words::Role;

/// Rows as they are at this point of a transaction.
#[derive(Default)]
pub(crate) struct Ahead {
    surfaces: HashMap<i64, Before>,
    /// The targets that show a surface, and as what.
    ties: HashMap<i64, Vec<(i64, Role)>>,
    targets: HashMap<i64, TargetRow>,
    /// What the surfaces of a target give to it, each with its number.
    faces: HashMap<i64, Vec<(i64, Face)>>,
    findings: HashMap<i64, Findings>,
}

impl Ahead {
    /// Reads everything about these surfaces.
    pub(crate) async fn read(&mut self, w: &mut Writing, surfaces: &[i64]) -> Result<()> {
        self.surfaces.extend(record::load(w, surfaces).await?);
        self.read_ties(w, surfaces).await?;
        self.read_findings(w, surfaces).await?;
        let of_many = self.targets.values().filter(|target| target.n_surfaces > 1).map(|target| target.id);
        let of_many: BTreeSet<i64> = of_many.collect();
        self.read_faces(w, &of_many.into_iter().collect::<Vec<_>>()).await
    }

    async fn read_ties(&mut self, w: &mut Writing, surfaces: &[i64]) -> Result<()> {
        surfaces.iter().for_each(|surface| drop(self.ties.insert(*surface, Vec::new())));
        for (surface, target) in targets::showing(w, surfaces).await? {
            self.ties.entry(surface).or_default().push((target.id, target.role));
            self.targets.insert(target.id, target);
        }
        Ok(())
    }

    async fn read_findings(&mut self, w: &mut Writing, surfaces: &[i64]) -> Result<()> {
        surfaces.iter().for_each(|surface| drop(self.findings.insert(*surface, Findings::new())));
        for (surface, rule, finding) in findings::load(w, surfaces).await? {
            self.findings.entry(surface).or_default().insert(rule, finding);
        }
        Ok(())
    }

    async fn read_faces(&mut self, w: &mut Writing, targets: &[i64]) -> Result<()> {
        targets.iter().for_each(|target| drop(self.faces.insert(*target, Vec::new())));
        for (target, surface, face) in targets::faces(w, targets).await? {
            self.faces.entry(target).or_default().push((surface, face));
        }
        Ok(())
    }

    /// A surface as it is.
    pub(crate) async fn surface(&mut self, w: &mut Writing, surface: SurfaceId) -> Result<Before> {
        if let Some(known) = self.surfaces.remove(&surface.0) {
            return Ok(known);
        }
        let found = record::load(w, &[surface.0]).await?.pop();
        let (_, before) = found.ok_or_else(|| Error::Missing { what: "surface", id: surface.to_string() })?;
        Ok(before)
    }

    /// A surface as it was written.
    pub(crate) fn put_back(&mut self, surface: i64, before: Before) {
        self.surfaces.insert(surface, before);
    }

    /// The targets that show a surface.
    pub(crate) async fn showing(&mut self, w: &mut Writing, surface: i64) -> Result<Vec<TargetRow>> {
        if !self.ties.contains_key(&surface) {
            self.read_ties(w, &[surface]).await?;
        }
        let ties = self.ties.get(&surface).map(Vec::as_slice).unwrap_or_default();
        let row = |(target, role): &(i64, Role)| Some(TargetRow { role: *role, ..self.targets.get(target)?.clone() });
        Ok(ties.iter().filter_map(row).collect())
    }

    /// A target as it was written.
    pub(crate) fn put_back_target(&mut self, row: TargetRow) {
        self.targets.insert(row.id, row);
    }

    /// What the surfaces of a target give to it, one of them being as told.
    pub(crate) async fn faces(&mut self, w: &mut Writing, target: i64, surface: i64, now: &Face) -> Result<Vec<Face>> {
        if !self.faces.contains_key(&target) {
            self.read_faces(w, &[target]).await?;
        }
        let faces = self.faces.entry(target).or_default();
        for (_, face) in faces.iter_mut().filter(|(of, _)| *of == surface) {
            *face = Face { is_main: face.is_main, ..now.clone() };
        }
        Ok(faces.iter().map(|(_, face)| face.clone()).collect())
    }

    /// The findings of a surface.
    pub(crate) async fn findings(&mut self, w: &mut Writing, surface: i64) -> Result<Findings> {
        if !self.findings.contains_key(&surface) {
            self.read_findings(w, &[surface]).await?;
        }
        Ok(self.findings.remove(&surface).unwrap_or_default())
    }

    /// The findings of a surface as they were written.
    pub(crate) fn put_back_findings(&mut self, surface: i64, findings: Findings) {
        self.findings.insert(surface, findings);
    }

    /// The findings of a surface were moved by something else than a judgement.
    pub(crate) fn forget_findings(&mut self, surface: i64) {
        self.findings.remove(&surface);
    }

    /// Surfaces came or went: whatever was read may be another.
    pub(crate) fn forget(&mut self) {
        *self = Ahead::default();
    }
}

/// Packed days and months by surface and number, and whether they are other than in the database.
type Parcels = BTreeMap<(i64, i64), (Vec<u8>, bool)>;

/// The packed probes of days and the packed days of months that a transaction changes.
#[derive(Default)]
pub(crate) struct Packed {
    days: Parcels,
    months: Parcels,
}

impl Packed {
    /// Reads those of surfaces from one day to another.
    pub(crate) async fn read(&mut self, w: &mut Writing, surfaces: &[i64], first: i64, last: i64) -> Result<()> {
        for some in in_statements(surfaces) {
            let of_these = |numbers: [i64; 2]| some.iter().copied().chain(numbers).collect::<Vec<_>>();
            let (n, who) = (some.len(), places(1, some.len()));
            let between = format!("BETWEEN ${} AND ${} AND surface_id IN {who}", n + 1, n + 2);
            let days = format!("SELECT surface_id, day, probes FROM probe_day WHERE day {between}");
            self.days.extend(read(w, days, &of_these([first, last])).await?);
            let months = format!("SELECT surface_id, month, days FROM surface_month WHERE month {between}");
            self.months.extend(read(w, months, &of_these([month_of(first).0, month_of(last).0])).await?);
        }
        Ok(())
    }

    /// Reads those of the last looks at surfaces.
    pub(crate) async fn read_last(&mut self, w: &mut Writing, surfaces: &[i64]) -> Result<()> {
        for some in in_statements(surfaces) {
            let who = places(1, some.len());
            let days = format!(
                "SELECT probe_day.surface_id, probe_day.day, probe_day.probes
                 FROM surface
                 JOIN probe_day ON probe_day.surface_id = surface.id AND probe_day.day = surface.last_attempt_s / {DAY_S}
                 WHERE surface.id IN {who}"
            );
            self.days.extend(read(w, days, some).await?);
            let months = format!(
                "SELECT surface_id, month, days
                 FROM surface_month
                 WHERE surface_id IN {who}
                   AND month = (SELECT MAX(month) FROM surface_month last
                                WHERE last.surface_id = surface_month.surface_id)"
            );
            self.months.extend(read(w, months, some).await?);
        }
        Ok(())
    }

    /// The packed probes of a day; empty where there are none.
    pub(crate) async fn day(&self, w: &mut Writing, surface: SurfaceId, day: i64) -> Result<Vec<u8>> {
        if let Some((packed, _)) = self.days.get(&(surface.0, day)) {
            return Ok(packed.clone());
        }
        let packed: Option<Vec<u8>> =
            sqlx::query_scalar("SELECT probes FROM probe_day WHERE surface_id = $1 AND day = $2")
                .bind(surface.0)
                .bind(day)
                .fetch_optional(w.on())
                .await?;
        Ok(packed.unwrap_or_default())
    }

    /// The packed days of a month; empty where there are none.
    pub(crate) async fn month(&self, w: &mut Writing, surface: SurfaceId, month: i64) -> Result<Vec<u8>> {
        if let Some((packed, _)) = self.months.get(&(surface.0, month)) {
            return Ok(packed.clone());
        }
        let days: Option<Vec<u8>> =
            sqlx::query_scalar("SELECT days FROM surface_month WHERE surface_id = $1 AND month = $2")
                .bind(surface.0)
                .bind(month)
                .fetch_optional(w.on())
                .await?;
        Ok(days.unwrap_or_default())
    }

    /// The packed probes of a day are these.
    pub(crate) fn put_day(&mut self, surface: SurfaceId, day: i64, packed: Vec<u8>) {
        self.days.insert((surface.0, day), (packed, true));
    }

    /// The packed days of a month are these.
    pub(crate) fn put_month(&mut self, surface: SurfaceId, month: i64, packed: Vec<u8>) {
        self.months.insert((surface.0, month), (packed, true));
    }

    /// Writes what is other than in the database.
    pub(crate) async fn write(self, w: &mut Writing) -> Result<()> {
        let days = ("probe_day (surface_id, day, probes)", "(surface_id, day) DO UPDATE SET probes = excluded.probes");
        let months =
            ("surface_month (surface_id, month, days)", "(surface_id, month) DO UPDATE SET days = excluded.days");
        write(w, days, self.days).await?;
        write(w, months, self.months).await
    }
}

async fn read(w: &mut Writing, statement: String, numbers: &[i64]) -> Result<Vec<((i64, i64), (Vec<u8>, bool))>> {
    let rows = w.rows_of(statement, numbers).await?;
    rows.iter().map(|row| Ok(((row.try_get(0)?, row.try_get(1)?), (row.try_get(2)?, false)))).collect()
}

async fn write(w: &mut Writing, (table, conflict): (&str, &str), parcels: Parcels) -> Result<()> {
    let parcels: Vec<_> = parcels.into_iter().filter(|(_, (_, is_other))| *is_other).collect();
    for some in in_statements(&parcels) {
        let statement = format!("INSERT INTO {table} VALUES {} ON CONFLICT {conflict}", places(some.len(), 3));
        // Of our own words only.
        let insert = some.iter().fold(sqlx::query(AssertSqlSafe(statement)), |insert, ((surface, n), (packed, _))| {
            insert.bind(*surface).bind(*n).bind(packed.as_slice())
        });
        insert.execute(w.on()).await?;
    }
    Ok(())
}
