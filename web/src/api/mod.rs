//! `/api/v1`: everything a page shows, one GET away. Routes, the OpenAPI description and the reference page are made of one table,
//! so none of them can say what another does not. What programs are served elsewhere stands in a table of its own, and a test
//! holds that against the routes.

mod alerts;
mod beside;
mod deploys;
mod export;
mod fields;
mod limits;
mod openapi;
mod read;
mod reference;
mod repeats;
mod webhooks;

use axum::Router;
use axum::middleware;
use axum::routing::{MethodRouter, get};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Serialize;

use crate::WebState;

pub use deploys::{deploy_result, tell_deploy};
pub use export::{ExportTable, forms, tables};
pub use repeats::once;

/// One page of a list.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Page<T> {
    /// In the order of the list.
    pub items: Vec<T>,
    /// Give this as `cursor` to get the next page; absent on the last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// A parameter of an address.
#[derive(Debug, Clone, Copy)]
struct Param {
    name: &'static str,
    place: Where,
    says: &'static str,
    schema: Kind,
}

/// Where a parameter stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Where {
    Path,
    Query,
}

/// What a parameter holds.
#[derive(Debug, Clone, Copy)]
enum Kind {
    Text,
    Number,
}

/// What comes back.
#[derive(Clone, Copy)]
enum Body {
    /// JSON of this schema.
    Json(fn(&mut SchemaGenerator) -> Schema),
    /// Rows, in the form that the address ends in.
    Rows,
    /// A page of JSON of this schema, or a stream of server-sent events, each with an item of it.
    Stream(fn(&mut SchemaGenerator) -> Schema),
    /// In one of these media types.
    Media(&'static [&'static str]),
}

/// What is asked of an address.
#[derive(Clone, Copy)]
enum Does {
    /// To tell something.
    Read,
    /// To take note of JSON of this schema; a token is needed, or to sit at this machine.
    Write(fn(&mut SchemaGenerator) -> Schema),
    /// To change something, by a method other than that or with another answer; the same is needed.
    Act {
        /// `post`, `patch`, `delete`.
        method: &'static str,
        /// JSON of this schema; `None`: nothing is taken.
        takes: Option<fn(&mut SchemaGenerator) -> Schema>,
        /// The status of the answer.
        status: &'static str,
    },
}

/// One address.
#[derive(Clone, Copy)]
struct Endpoint {
    path: &'static str,
    id: &'static str,
    tag: &'static str,
    summary: &'static str,
    says: &'static str,
    params: &'static [Param],
    does: Does,
    body: Body,
    /// Its handler; `None`: it is routed elsewhere, outside of quotas and tags.
    route: Option<fn() -> MethodRouter<WebState>>,
}

impl Endpoint {
    /// Whether members can be chosen with `fields`.
    fn has_fields(&self) -> bool {
        self.route.is_some() && matches!(self.body, Body::Json(_))
    }
}

const fn path(name: &'static str, says: &'static str) -> Param {
    Param { name, place: Where::Path, says, schema: Kind::Text }
}

const fn path_number(name: &'static str, says: &'static str) -> Param {
    Param { name, place: Where::Path, says, schema: Kind::Number }
}

const fn text(name: &'static str, says: &'static str) -> Param {
    Param { name, place: Where::Query, says, schema: Kind::Text }
}

const fn number(name: &'static str, says: &'static str) -> Param {
    Param { name, place: Where::Query, says, schema: Kind::Number }
}

const FIELDS: Param = text("fields", "Names of members with commas between; all others are left out.");
const FORM: Param = path("form", "`csv`, `jsonl`, or `parquet` where the build has it.");
const MONTH: Param = text("month", "Such as `2026-11`; the last 365 days where it is not given.");
const COHORT: Param = text("cohort", "The slug of a cohort; `all` where it is not given.");
const CURSOR: Param = text("cursor", "The `next` of the page before; without it the list begins.");
const LIMIT: Param = number("limit", "Items on a page, 1 to 200; 50 where it is not given.");
const Q: Param = text("q", "A query in the language of lists, such as `headline:blocked rule:a2a/* -waived:yes tide`.");
const TARGET: Param = path_number("id", "The number of the target.");

/// Declares the table.
macro_rules! endpoints {
    ($($path:literal $handler:path => $body:ty, $tag:literal, $id:literal, $summary:literal, $says:literal, [$($param:expr),*];)+) => {
        &[$(Endpoint {
            path: $path,
            id: $id,
            tag: $tag,
            summary: $summary,
            says: $says,
            params: &[$($param),*],
            does: Does::Read,
            body: Body::Json(|generator| generator.subschema_for::<$body>()),
            route: Some(|| get($handler)),
        },)+]
    };
}

use plumbline_store::deploys::DeployRow;
use plumbline_store::views as v;

static READ: &[Endpoint] = endpoints! {
    "/api/v1/targets" read::targets => Page<v::TargetRow>, "Targets", "listTargets", "Targets that match a query.",
        "In the order of `sort`, fifty a page unless asked otherwise.",
        [Q, text("sort", "`headline` (blocked first, the usual one), `changed` (newest change first) or `name`."), CURSOR, LIMIT];
    "/api/v1/targets/{id}" read::target => v::TargetDetail, "Targets", "getTarget", "One target.",
        "Everything kept on its own row.", [TARGET];
    "/api/v1/targets/{id}/surfaces" read::surfaces => Page<v::SurfaceRow>, "Targets", "listSurfaces", "Its surfaces.",
        "Each with its verdict, its reach and which rules could look.", [TARGET];
    "/api/v1/targets/{id}/findings" read::target_findings => Page<v::FindingRow>, "Targets", "listTargetFindings", "What is wrong with it now.",
        "Findings that are open, with their places; unconfirmed ones included.", [TARGET];
    "/api/v1/targets/{id}/spans" read::spans => Page<v::FindingSpan>, "Targets", "listTargetSpans", "When its findings were open.",
        "Newest first, at most a thousand.", [TARGET];
    "/api/v1/targets/{id}/documents" read::documents => Page<v::DocumentSpan>, "Targets", "listTargetDocuments", "What it served.",
        "Newest first, at most five hundred.", [TARGET];
    "/api/v1/targets/{id}/reach" read::reach => Page<v::ReachSpan>, "Targets", "listTargetReach", "How it could be reached.",
        "Newest first, at most five hundred.", [TARGET];
    "/api/v1/targets/{id}/facts" read::facts => Page<v::FactRow>, "Targets", "listTargetFacts", "Attributes that are set.",
        "Neither good nor bad, never counted.", [TARGET];
    "/api/v1/targets/{id}/listings" read::listings => Page<v::ListingRow>, "Targets", "listTargetListings", "Its versions in registries.",
        "Newest first, at most two hundred.", [TARGET];
    "/api/v1/targets/{id}/deploys" read::target_deploys => Page<DeployRow>, "Targets", "listTargetDeploys", "Its deploys.",
        "Newest first, at most two hundred.", [TARGET];
    "/api/v1/findings/{id}" read::finding => v::FindingDetail, "Findings", "getFinding", "One finding.",
        "With its places, its surface and the targets that show it.", [path_number("id", "The number of the finding.")];
    "/api/v1/regressions" read::regressions => Page<v::FeedRow>, "Findings", "listRegressions", "What broke that worked before.",
        "Newest first.", [CURSOR, LIMIT];
    "/api/v1/documents/{hash}" read::document => v::DocumentRow, "Documents", "getDocument", "One document by its hash.",
        "What it is and what was judged of it. Its bytes are at `/documents/{hash}/raw`.", [path("hash", "sha256 of the bytes, 64 hex digits.")];
    "/api/v1/documents/{hash}/served-by" read::served_by => Page<v::ServedBy>, "Documents", "listServedBy", "Who serves it now.",
        "At most two hundred targets.", [path("hash", "sha256 of the bytes, 64 hex digits.")];
    "/api/v1/rules" read::rules => Page<read::RuleFacts>, "Rules", "listRules", "Every rule.",
        "With its present share over all targets, where it was judged.", [];
    "/api/v1/rules/{family}/{name}" read::rule => read::RuleFacts, "Rules", "getRule", "One rule.",
        "Its words and its present share.", [path("family", "Such as `a2a`."), path("name", "The rest of its id.")];
    "/api/v1/rules/{family}/{name}/days" read::rule_days => Page<v::RuleDay>, "Rules", "listRuleDays", "One rule day by day.",
        "Oldest first. A day that is missing is a day on which nothing was counted.",
        [path("family", "Such as `a2a`."), path("name", "The rest of its id."), text("cohort", "The slug of a cohort; all targets where it is not given."), number("days", "How many days back, 1 to 3660; 365 where it is not given.")];
    "/api/v1/rules/{family}/{name}/failing" read::failing => Page<v::FailingRow>, "Rules", "listFailing", "Who fails it now.",
        "Newest surface first.", [path("family", "Such as `a2a`."), path("name", "The rest of its id."), CURSOR, LIMIT];
    "/api/v1/rulesets" read::rulesets => Page<v::ReleaseRow>, "Rules", "listRulesets", "Releases of the rules.",
        "Newest first, at most two hundred.", [];
    "/api/v1/cohorts" read::cohorts => Page<v::CohortRow>, "Cohorts", "listCohorts", "Every cohort.",
        "With its newest day.", [];
    "/api/v1/cohorts/{slug}/days" read::cohort_days => Page<v::CohortDay>, "Cohorts", "listCohortDays", "One cohort day by day.",
        "Oldest first.", [path("slug", "Such as `all`."), number("days", "How many days back, 1 to 3660; 365 where it is not given.")];
    "/api/v1/cohorts/{slug}/prevalence" read::prevalence => Page<v::Prevalence>, "Cohorts", "listPrevalence", "Every rule in one cohort.",
        "On the last day, or on the last one up to `day`.", [path("slug", "Such as `all`."), number("day", "Days since 1970-01-01 UTC.")];
    "/api/v1/cohorts/{slug}/fixed-prevalence" read::fixed_prevalence => Page<v::FixedShare>, "Cohorts", "listFixedPrevalence", "Every rule in one cohort, over the same surfaces now and then.",
        "Of targets that were there and judged so many days ago and still are; what comes and goes does not move these shares.",
        [path("slug", "Such as `all`."), number("days", "How many days ago, 1 to 3660; 30 where it is not given.")];
    "/api/v1/cohorts/{slug}/conformance" read::conformance => Page<v::MustDay>, "Cohorts", "listConformance", "The share of MUST rules that hold.",
        "By revision, family and day, oldest first.", [path("slug", "Such as `all`."), number("days", "How many days back, 1 to 3660; 365 where it is not given.")];
    "/api/v1/crawls" read::crawls => Page<v::CrawlRow>, "Crawls", "listCrawls", "Passes of the crawler.",
        "Newest first.", [CURSOR, LIMIT];
    "/api/v1/crawls/{id}" read::crawl => v::CrawlRow, "Crawls", "getCrawl", "One pass.",
        "With what came of every look.", [path_number("id", "The number of the crawl.")];
    "/api/v1/sources" read::sources => Page<v::SourceRow>, "Crawls", "listSources", "Where targets come from.",
        "Every source in use.", [];
    "/api/v1/deploys" read::deploys => Page<DeployRow>, "Deploys", "listDeploys", "Deploys we were told of or inferred.",
        "Newest first.", [CURSOR, LIMIT];
    "/api/v1/deploys/{id}" read::deploy => read::DeployWhole, "Deploys", "getDeploy", "One deploy.",
        "With what it opened and mended.", [path_number("id", "The number of the deploy.")];
    "/api/v1/incidents" read::incidents => Page<v::IncidentRow>, "Incidents", "listIncidents", "Outages that several surfaces share.",
        "Newest first.", [CURSOR, LIMIT];
    "/api/v1/incidents/{id}" read::incident => read::IncidentWhole, "Incidents", "getIncident", "One shared outage.",
        "With who was in it, at most two hundred.", [path_number("id", "The number of the incident.")];
    "/api/v1/alerts" alerts::list => Page<alerts::AlertRow>, "Alerts", "listAlerts", "Alerts, told or not.",
        "Newest first, each with why it was told or not.", [CURSOR, text("match", "Only what this covers, such as `owner:harbour`."),
            text("open", "`yes`: only those that are not over.")];
    "/api/v1/routes" alerts::routes => Page<alerts::RouteRow>, "Alerts", "listRoutes", "Which alerts go where.", "By name.", [];
    "/api/v1/silences" alerts::silences => Page<alerts::QuietRow>, "Alerts", "listSilences", "What is silenced.",
        "Those that end first, first; ended ones for a week.", [];
    "/api/v1/waivers" alerts::waivers => Page<alerts::QuietRow>, "Alerts", "listWaivers", "Accepted deviations.", "Those that end first, first.", [];
    "/api/v1/maintenance" alerts::maintenance => Page<alerts::QuietRow>, "Alerts", "listMaintenance", "Planned work.",
        "Each with its next three times.", [];
    "/api/v1/webhooks" webhooks::list => Page<webhooks::Webhook>, "Webhooks", "listWebhooks", "Receivers of messages, and how they do.",
        "By name; addresses without path and query.", [];
    "/api/v1/webhooks/{name}" webhooks::one => webhooks::Webhook, "Webhooks", "getWebhook", "One receiver.",
        "With its keys, without what is secret.", [path("name", "Its name.")];
    "/api/v1/audit" read::audit => Page<plumbline_store::audit::AuditRow>, "Watching", "listAudit", "Who changed what.",
        "Newest first; nothing secret is in it. It is for the person at this machine, and for tokens with `admin`.",
        [text("entity", "Only what was done to this, such as `silence:3`."), CURSOR, LIMIT];
    "/api/v1/annotations" read::annotations => Page<v::AnnotationRow>, "Rules", "listAnnotations", "What readers of a chart must know.",
        "Of the last year, newest first.", [];
    "/api/v1/completions" read::completions => Page<plumbline_store::query::Completion>, "Targets", "listCompletions", "How a query could go on.",
        "The whole query with its last word completed, at most fifty.", [text("q", "A query that is being written.")];
};

static ROWS: &[Endpoint] = &[
    Endpoint {
        path: "/api/v1/exports/targets/{form}",
        id: "exportTargets",
        tag: "Exports",
        summary: "Every target that matches a query.",
        says: "By name, without pages. Cells that a spreadsheet would take for a formula begin with an apostrophe.",
        params: &[FORM, Q],
        does: Does::Read,
        body: Body::Rows,
        route: Some(|| get(export::targets)),
    },
    Endpoint {
        path: "/api/v1/exports/findings/{form}",
        id: "exportFindings",
        tag: "Exports",
        summary: "Every open finding.",
        says: "In the order of their numbers, without their places.",
        params: &[FORM],
        does: Does::Read,
        body: Body::Rows,
        route: Some(|| get(export::findings)),
    },
    Endpoint {
        path: "/api/v1/exports/failing/{form}",
        id: "exportFailing",
        tag: "Exports",
        summary: "Everybody who fails one rule.",
        says: "Newest surface first, with the first place of each.",
        params: &[FORM, text("rule", "The id of the rule.")],
        does: Does::Read,
        body: Body::Rows,
        route: Some(|| get(export::failing)),
    },
    Endpoint {
        path: "/api/v1/exports/prevalence/{form}",
        id: "exportPrevalence",
        tag: "Exports",
        summary: "Every rule on every day of a year or a month.",
        says: "Of one cohort, oldest day first.",
        params: &[FORM, COHORT, MONTH],
        does: Does::Read,
        body: Body::Rows,
        route: Some(|| get(export::prevalence)),
    },
    Endpoint {
        path: "/api/v1/exports/days/{form}",
        id: "exportDays",
        tag: "Exports",
        summary: "One cohort on every day of a year or a month.",
        says: "Oldest day first.",
        params: &[FORM, COHORT, MONTH],
        does: Does::Read,
        body: Body::Rows,
        route: Some(|| get(export::days)),
    },
    Endpoint {
        path: "/api/v1/exports/rules/{form}",
        id: "exportRules",
        tag: "Exports",
        summary: "Every rule with its present share.",
        says: "Over all targets.",
        params: &[FORM],
        does: Does::Read,
        body: Body::Rows,
        route: Some(|| get(export::rules)),
    },
];

fn endpoints() -> impl Iterator<Item = &'static Endpoint> {
    READ.iter().chain(ROWS).chain(beside::BESIDE)
}

/// Everything of the table, its description and its reference.
pub fn router() -> Router<WebState> {
    let mut router = Router::new();
    for endpoint in endpoints() {
        if let Some(route) = endpoint.route {
            router = router.route(endpoint.path, route());
        }
    }
    router
        .layer(middleware::from_fn(fields::chosen))
        .layer(middleware::from_fn(limits::tagged))
        .merge(webhooks::router())
        .merge(alerts::router())
        .layer(middleware::from_fn(limits::limited))
        .route("/openapi.json", get(openapi::show))
        .route("/api", get(reference::show))
}
