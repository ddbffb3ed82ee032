//! What programs are served outside of the table of `/api/v1`: what they tell, streams, feeds, badges, the registry, files. Their
//! routes stand in `routes.rs`; a test holds both against each other.

use schemars::SchemaGenerator;

use super::alerts::{Acknowledgement, AlertRow, NewMaintenance, NewSilence, NewWaiver, QuietRow};
use super::deploys::{Accepted, DeployBody, DeployResult};
use super::webhooks::{Kind, Rotation, Webhook, asked_schema, nothing_schema, unkept_schema};
use super::{Body, Does, Endpoint, Param, number, path, path_number, text};
use crate::events::EventPage;
use crate::pages::registry::{ServerAnswer, ServerList};

macro_rules! beside {
    ($($path:literal => $body:expr, $does:expr, $tag:literal, $id:literal, $summary:literal, $says:literal, [$($param:expr),*];)+) => {
        &[$(Endpoint {
            path: $path,
            id: $id,
            tag: $tag,
            summary: $summary,
            says: $says,
            params: &[$($param),*],
            does: $does,
            body: $body,
            route: None,
        },)+]
    };
}

const ATOM: Body = Body::Media(&["application/atom+xml"]);
const BADGE: Body = Body::Media(&["image/svg+xml", "application/json"]);
const JSON: Body = Body::Media(&["application/json"]);
const TEXT: Body = Body::Media(&["text/plain"]);
const NOTHING: Body = Body::Media(&[]);
const SERVERS: Body = Body::Json(SchemaGenerator::subschema_for::<ServerList>);
const STYLE: Param = text("style", "`flat`, the usual one, or `plain`.");
const METRIC: Param = text("metric", "`headline` (the usual one), `clients`, `errors`, `uptime90` or `version`.");
const NAME: Param = path("name", "The name of the server, its slash as `%2F`.");

pub(super) static BESIDE: &[Endpoint] = beside! {
    "/api/v1/deploys" => Body::Json(SchemaGenerator::subschema_for::<Accepted>),
        Does::Write(SchemaGenerator::subschema_for::<DeployBody>), "Deploys", "tellDeploy", "Tells of a deploy.",
        "Name exactly one of `target`, `targets`, `owner`, `host`. The same `dedupe_key` twice is one deploy.", [];
    "/api/v1/deploys/{id}/result" => Body::Json(SchemaGenerator::subschema_for::<DeployResult>), Does::Read,
        "Deploys", "getDeployResult", "What came of a deploy.",
        "Waits, where asked to, until it is settled.",
        [path_number("id", "The number of the deploy."), number("wait", "Seconds to wait, at most 300."),
            text("fail_on", "What counts: `blocked`, `error` (the usual one) or `warning`.")];
    "/api/v1/webhooks" => Body::Json(SchemaGenerator::subschema_for::<Webhook>), Does::Act { method: "post", takes: Some(asked_schema), status: "201" }, "Webhooks", "createWebhook", "Subscribes.",
        "Its secret is in the answer, this once.", [text("dry_run", "`true`: judge it, show what it would cover, keep nothing.")];
    "/api/v1/webhooks/{name}" => Body::Json(SchemaGenerator::subschema_for::<Webhook>), Does::Act { method: "patch", takes: Some(asked_schema), status: "200" }, "Webhooks", "changeWebhook", "Changes a receiver.",
        "A merge patch (RFC 7396). Its token does not go to another address. What stands in the settings file is changed there.", [path("name", "Its name."), text("dry_run", "`true`: judge it, show what it would cover, keep nothing.")];
    "/api/v1/webhooks/{name}" => NOTHING, Does::Act { method: "delete", takes: None, status: "204" }, "Webhooks", "removeWebhook", "Takes a receiver away.",
        "What waits for it is cancelled.", [path("name", "Its name.")];
    "/api/v1/webhooks/{name}/rotate" => Body::Json(SchemaGenerator::subschema_for::<Webhook>), Does::Act { method: "post", takes: Some(SchemaGenerator::subschema_for::<Rotation>), status: "200" }, "Webhooks", "rotateSecret", "Gives a receiver a new secret.",
        "The one before signs as well for a day, or as long as you say. The new one is in the answer, this once.", [path("name", "Its name.")];
    "/api/v1/webhooks/{name}/test" => JSON, Does::Act { method: "post", takes: Some(SchemaGenerator::subschema_for::<Kind>), status: "200" }, "Webhooks", "testWebhook", "Sends a signed test.",
        "Once, without retries; the answer holds the exact bytes of both sides.", [path("name", "Its name.")];
    "/api/v1/webhooks/{name}/pause" => Body::Json(SchemaGenerator::subschema_for::<Webhook>), Does::Act { method: "post", takes: Some(nothing_schema), status: "200" }, "Webhooks", "pauseWebhook", "Stops sending.",
        "What happens meanwhile is not sent afterwards; what waits is.", [path("name", "Its name.")];
    "/api/v1/webhooks/{name}/resume" => Body::Json(SchemaGenerator::subschema_for::<Webhook>), Does::Act { method: "post", takes: Some(nothing_schema), status: "200" }, "Webhooks", "resumeWebhook", "Sends again.",
        "What waits is tried at once.", [path("name", "Its name.")];
    "/api/v1/webhook-tests" => JSON, Does::Act { method: "post", takes: Some(unkept_schema), status: "200" }, "Webhooks", "testUnkept", "Tries a receiver before it is kept.",
        "Nothing is kept.", [];
    "/api/v1/alerts/{id}/acknowledge" => Body::Json(SchemaGenerator::subschema_for::<AlertRow>), Does::Act { method: "post", takes: Some(SchemaGenerator::subschema_for::<Acknowledgement>), status: "200" }, "Alerts", "acknowledgeAlert", "Takes an alert on.",
        "It is not repeated until it ends, or becomes graver.", [path_number("id", "Its number.")];
    "/api/v1/silences" => Body::Json(SchemaGenerator::subschema_for::<QuietRow>), Does::Act { method: "post", takes: Some(SchemaGenerator::subschema_for::<NewSilence>), status: "201" }, "Alerts", "addSilence", "For a while, tells nobody of what matches.",
        "The first message after its end says whose it was.", [text("dry_run", "`true`: judge it, show what it would cover, keep nothing.")];
    "/api/v1/silences/{id}" => NOTHING, Does::Act { method: "delete", takes: None, status: "204" }, "Alerts", "endSilence", "Ends a silence.",
        "One of the settings file is ended there.", [path_number("id", "Its number.")];
    "/api/v1/waivers" => Body::Json(SchemaGenerator::subschema_for::<QuietRow>), Does::Act { method: "post", takes: Some(SchemaGenerator::subschema_for::<NewWaiver>), status: "201" }, "Alerts", "addWaiver", "Accepts a deviation.",
        "It stays where it is and is counted apart.", [text("dry_run", "`true`: judge it, show what it would cover, keep nothing.")];
    "/api/v1/waivers/{id}" => NOTHING, Does::Act { method: "delete", takes: None, status: "204" }, "Alerts", "endWaiver", "Takes a waiver back.",
        "One of the settings file is ended there.", [path_number("id", "Its number.")];
    "/api/v1/maintenance" => Body::Json(SchemaGenerator::subschema_for::<QuietRow>), Does::Act { method: "post", takes: Some(SchemaGenerator::subschema_for::<NewMaintenance>), status: "201" }, "Alerts", "addMaintenance", "Plans work, once or again and again.",
        "Alerts are held until somebody has looked after its end.", [text("dry_run", "`true`: judge it, show what it would cover, keep nothing.")];
    "/api/v1/maintenance/{id}" => NOTHING, Does::Act { method: "delete", takes: None, status: "204" }, "Alerts", "endMaintenance", "Calls a maintenance window off.",
        "One of the settings file is called off there.", [path_number("id", "Its number.")];
    "/api/v1/events" => Body::Stream(SchemaGenerator::subschema_for::<EventPage>), Does::Read,
        "Events", "listEvents", "What happened.",
        "Oldest first, after a number; with `Accept: text/event-stream` as it happens, and `Last-Event-ID` goes on where a reader was cut off.",
        [number("after", "The last event you have; 0 where it is not given."),
            text("type", "Kinds with commas between; `finding.*` is all that begin so."),
            number("target", "Of this target only."), number("limit", "At most 1000; 100 where it is not given.")];
    "/api/v1/event-types" => JSON, Does::Read, "Events", "listEventTypes", "Which kinds of events there are.",
        "Each with a schema of the message that is sent for it.", [];
    "/v0.1/servers" => SERVERS, Does::Read, "Registry", "listServers", "Servers, as the MCP Registry lists them.",
        "Over what was crawled; each entry says under `_meta` how it conforms.",
        [text("cursor", "The `nextCursor` of the page before."), number("limit", "1 to 100; 30 where it is not given."),
            text("search", "The beginning of a word of the name."), text("updated_since", "RFC 3339: only what moved here since."),
            text("version", "`latest`: only the version that is judged."), text("verdict", "Such as `sound` or `blocked`."),
            text("era", "`legacy` (a handshake), `modern` (without one) or `dual`: how its endpoint is spoken to."), text("reach", "Such as `up` or `down`.")];
    "/v0.1/servers/{name}/versions" => SERVERS, Does::Read, "Registry", "listServerVersions", "Every version of one server.",
        "Newest here first.", [NAME];
    "/v0.1/servers/{name}/versions/{version}" => Body::Json(SchemaGenerator::subschema_for::<ServerAnswer>), Does::Read,
        "Registry", "getServerVersion", "One version of one server.",
        "`latest` stands for the newest.", [NAME, path("version", "The version, or `latest`.")];
    "/feeds/regressions.atom" => ATOM, Does::Read, "Feeds", "feedRegressions", "What broke that worked before.", "Newest first, fifty.", [];
    "/feeds/incidents.atom" => ATOM, Does::Read, "Feeds", "feedIncidents", "Shared outages.", "Newest first, fifty.", [];
    "/feeds/releases.atom" => ATOM, Does::Read, "Feeds", "feedReleases", "Releases of the rules.", "Newest first, fifty.", [];
    "/feeds/views.atom" => ATOM, Does::Read, "Feeds", "feedView", "Targets that match a query, by their last change.", "Newest first, fifty.",
        [super::Q];
    "/feeds/targets/{file}" => ATOM, Does::Read, "Feeds", "feedTarget", "What happened to one target.", "Newest first, fifty.",
        [path("file", "Its number and `.atom`.")];
    "/feeds/owners/{file}" => ATOM, Does::Read, "Feeds", "feedOwner", "What happened to the targets of one owner.", "Newest first, fifty.",
        [path("file", "The slug of the owner and `.atom`.")];
    "/feeds/hosts/{file}" => ATOM, Does::Read, "Feeds", "feedHost", "What happened to the targets on one host.", "Newest first, fifty.",
        [path("file", "The host and `.atom`.")];
    "/feeds/tags/{file}" => ATOM, Does::Read, "Feeds", "feedTag", "What happened to the targets with one tag.", "Newest first, fifty.",
        [path("file", "The tag, such as `tier=1`, and `.atom`.")];
    "/feeds/cohorts/{file}" => ATOM, Does::Read, "Feeds", "feedCohort", "What happened in one cohort.", "Newest first, fifty.",
        [path("file", "The slug of the cohort and `.atom`.")];
    "/badges/target/{file}" => BADGE, Does::Read, "Badges", "badgeTarget", "How one target stands.",
        "It says as of when, and turns grey when that is long ago. The JSON is what shields endpoints read.",
        [path("file", "Its number and `.svg` or `.json`."), METRIC, STYLE];
    "/badges/owner/{file}" => BADGE, Does::Read, "Badges", "badgeOwner", "How the targets of one owner stand.", "Of how many they are sound.",
        [path("file", "The slug of the owner and `.svg` or `.json`."), STYLE];
    "/badges/host/{file}" => BADGE, Does::Read, "Badges", "badgeHost", "How the targets on one host stand.", "Of how many they are sound.",
        [path("file", "The host and `.svg` or `.json`."), STYLE];
    "/badges/tag/{file}" => BADGE, Does::Read, "Badges", "badgeTag", "How the targets with one tag stand.", "Of how many they are sound.",
        [path("file", "The tag and `.svg` or `.json`."), STYLE];
    "/documents/{hash}/raw" => Body::Media(&["application/octet-stream"]), Does::Read, "Documents", "getDocumentBytes", "The bytes of one document.",
        "As they were served, to be saved.", [path("hash", "sha256 of the bytes, 64 hex digits.")];
    "/targets/{id}/sarif" => JSON, Does::Read, "Findings", "getSarif", "What is wrong with one target, as SARIF 2.1.0.",
        "For viewers of code scanning.", [super::TARGET];
    "/surfaces/{id}/session" => JSON, Does::Read, "Documents", "getSession", "A recorded conversation with one surface.",
        "What was sent and what came back, secrets masked. `plumbline check` judges it again.", [path_number("id", "The number of the surface."), number("of", "The number of a kept conversation; the last one where it is not given.")];
    "/metrics" => Body::Media(&["application/openmetrics-text"]), Does::Read, "Watching", "getMetrics", "Numbers for Prometheus.",
        "OpenMetrics 1.0.", [];
    "/healthz" => TEXT, Does::Read, "Watching", "isAlive", "The process answers.", "Nothing else is looked at.", [];
    "/readyz" => TEXT, Does::Read, "Watching", "isReady", "The database answers.",
        "With `strict` also: passes are fresh, writing goes on, the disk has room. 503 otherwise, with the reasons, one a line.",
        [text("strict", "Any value, or none.")];
};
