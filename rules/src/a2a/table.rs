//! The fields of an agent card in A2A 0.1, 0.2, 0.3 and 1.0, one row each.
//!
//! 1.0 follows a2a.proto of tags v1.0.0 and v1.0.1, 0.3 the types of tag v0.3.0; of 0.1 and 0.2 only what those releases
//! asked for counts. `protocolVersion` and `preferredTransport` have a default in 0.3, so no row requires them.

use std::sync::LazyLock;

use crate::document::Node;
use crate::judge::Context;
use crate::shape::Holds::{Array, Flag, Free, Object, Open, Text};
use crate::shape::{Field, Place, Placed, field};

pub(super) const SINCE_0_2: &[&str] = &["0.2", "0.3", "1.0"];
pub(super) const SINCE_0_3: &[&str] = &["0.3", "1.0"];
pub(super) const ONLY_1_0: &[&str] = &["1.0"];
const BEFORE_1_0: &[&str] = &["0.1", "0.2", "0.3"];
const V0_2_AND_0_3: &[&str] = &["0.2", "0.3"];
pub(super) const EVERY: &[&str] = &["0.1", "0.2", "0.3", "1.0"];

/// A field that came with 0.2.
const fn later(at: &'static str, holds: crate::shape::Holds) -> Field {
    field(at, holds).known(SINCE_0_2)
}

/// A field of 1.0 alone.
const fn new(at: &'static str, holds: crate::shape::Holds) -> Field {
    field(at, holds).known(ONLY_1_0)
}

/// A field of 0.2 and 0.3 that 1.0 gave up.
const fn old(at: &'static str, holds: crate::shape::Holds) -> Field {
    field(at, holds).known(V0_2_AND_0_3)
}

/// Every field; rows of one object stand together.
static FIELDS: &[Field] = &[
    // AgentCard
    field("/name", Text).required(EVERY),
    field("/description", Text).required(SINCE_0_2),
    field("/version", Text).required(EVERY),
    field("/url", Text).known(BEFORE_1_0).required(BEFORE_1_0),
    old("/protocolVersion", Text),
    old("/preferredTransport", Text),
    old("/additionalInterfaces", Array),
    new("/supportedInterfaces", Array).required(ONLY_1_0),
    field("/provider", Object),
    field("/documentationUrl", Text),
    later("/iconUrl", Text),
    field("/capabilities", Object).required(EVERY),
    field("/authentication", Free).known(&["0.1"]),
    later("/securitySchemes", Object),
    old("/security", Array),
    new("/securityRequirements", Array),
    field("/defaultInputModes", Array).required(SINCE_0_2),
    field("/defaultInputModes/*", Text),
    field("/defaultOutputModes", Array).required(SINCE_0_2),
    field("/defaultOutputModes/*", Text),
    field("/skills", Array).required(EVERY),
    field("/skills/*", Object),
    old("/supportsAuthenticatedExtendedCard", Flag),
    field("/signatures", Array).known(SINCE_0_3),
    // AgentInterface
    old("/additionalInterfaces/*", Object),
    old("/additionalInterfaces/*/url", Text).required(V0_2_AND_0_3),
    old("/additionalInterfaces/*/transport", Text).required(V0_2_AND_0_3),
    new("/supportedInterfaces/*", Object),
    new("/supportedInterfaces/*/url", Text).required(ONLY_1_0),
    new("/supportedInterfaces/*/protocolBinding", Text).required(ONLY_1_0),
    new("/supportedInterfaces/*/protocolVersion", Text).required(ONLY_1_0),
    new("/supportedInterfaces/*/tenant", Text),
    // AgentProvider
    field("/provider/organization", Text).required(EVERY),
    field("/provider/url", Text).required(EVERY),
    // AgentCapabilities and AgentExtension
    field("/capabilities/streaming", Flag),
    field("/capabilities/pushNotifications", Flag),
    field("/capabilities/stateTransitionHistory", Flag).known(BEFORE_1_0),
    new("/capabilities/extendedAgentCard", Flag),
    later("/capabilities/extensions", Array),
    later("/capabilities/extensions/*", Object),
    later("/capabilities/extensions/*/uri", Text).required(SINCE_0_2),
    later("/capabilities/extensions/*/description", Text),
    later("/capabilities/extensions/*/required", Flag),
    later("/capabilities/extensions/*/params", Free),
    // AgentSkill
    field("/skills/*/id", Text).required(EVERY),
    field("/skills/*/name", Text).required(EVERY),
    field("/skills/*/description", Text).required(SINCE_0_2),
    field("/skills/*/tags", Array).required(SINCE_0_2),
    field("/skills/*/tags/*", Text),
    field("/skills/*/examples", Array),
    field("/skills/*/examples/*", Text),
    field("/skills/*/inputModes", Array),
    field("/skills/*/inputModes/*", Text),
    field("/skills/*/outputModes", Array),
    field("/skills/*/outputModes/*", Text),
    // SecurityRequirement; the values under `schemes` are a2a/requirement-shape's
    old("/security/*", Object),
    old("/security/*/*", Array),
    old("/security/*/*/*", Text),
    field("/skills/*/security", Array).known(&["0.3"]),
    field("/skills/*/security/*", Object).known(&["0.3"]),
    field("/skills/*/security/*/*", Array).known(&["0.3"]),
    field("/skills/*/security/*/*/*", Text).known(&["0.3"]),
    new("/securityRequirements/*", Object),
    new("/securityRequirements/*/schemes", Object),
    new("/securityRequirements/*/schemes/*", Open),
    new("/securityRequirements/*/schemes/*/list", Open),
    new("/skills/*/securityRequirements", Array),
    new("/skills/*/securityRequirements/*", Object),
    new("/skills/*/securityRequirements/*/schemes", Object),
    new("/skills/*/securityRequirements/*/schemes/*", Open),
    new("/skills/*/securityRequirements/*/schemes/*/list", Open),
    // SecurityScheme before 1.0: one flat object with a `type`
    later("/securitySchemes/*", Object),
    old("/securitySchemes/*/type", Text).required(V0_2_AND_0_3),
    old("/securitySchemes/*/description", Text),
    old("/securitySchemes/*/in", Text).required(V0_2_AND_0_3),
    old("/securitySchemes/*/name", Text).required(V0_2_AND_0_3),
    old("/securitySchemes/*/scheme", Text).required(V0_2_AND_0_3),
    old("/securitySchemes/*/bearerFormat", Text),
    old("/securitySchemes/*/openIdConnectUrl", Text).required(V0_2_AND_0_3),
    old("/securitySchemes/*/oauth2MetadataUrl", Text),
    old("/securitySchemes/*/flows", Object).required(V0_2_AND_0_3),
    old("/securitySchemes/*/flows/authorizationCode", Object),
    old("/securitySchemes/*/flows/authorizationCode/authorizationUrl", Text).required(V0_2_AND_0_3),
    old("/securitySchemes/*/flows/authorizationCode/tokenUrl", Text).required(V0_2_AND_0_3),
    old("/securitySchemes/*/flows/authorizationCode/refreshUrl", Text),
    old("/securitySchemes/*/flows/authorizationCode/scopes", Object).required(V0_2_AND_0_3),
    old("/securitySchemes/*/flows/authorizationCode/scopes/*", Text),
    old("/securitySchemes/*/flows/clientCredentials", Object),
    old("/securitySchemes/*/flows/clientCredentials/tokenUrl", Text).required(V0_2_AND_0_3),
    old("/securitySchemes/*/flows/clientCredentials/refreshUrl", Text),
    old("/securitySchemes/*/flows/clientCredentials/scopes", Object).required(V0_2_AND_0_3),
    old("/securitySchemes/*/flows/clientCredentials/scopes/*", Text),
    old("/securitySchemes/*/flows/implicit", Object),
    old("/securitySchemes/*/flows/implicit/authorizationUrl", Text).required(V0_2_AND_0_3),
    old("/securitySchemes/*/flows/implicit/refreshUrl", Text),
    old("/securitySchemes/*/flows/implicit/scopes", Object).required(V0_2_AND_0_3),
    old("/securitySchemes/*/flows/implicit/scopes/*", Text),
    old("/securitySchemes/*/flows/password", Object),
    old("/securitySchemes/*/flows/password/tokenUrl", Text).required(V0_2_AND_0_3),
    old("/securitySchemes/*/flows/password/refreshUrl", Text),
    old("/securitySchemes/*/flows/password/scopes", Object).required(V0_2_AND_0_3),
    old("/securitySchemes/*/flows/password/scopes/*", Text),
    // SecurityScheme of 1.0: exactly one wrapper
    new("/securitySchemes/*/apiKeySecurityScheme", Object),
    new("/securitySchemes/*/apiKeySecurityScheme/description", Text),
    new("/securitySchemes/*/apiKeySecurityScheme/location", Text).required(ONLY_1_0),
    new("/securitySchemes/*/apiKeySecurityScheme/name", Text).required(ONLY_1_0),
    new("/securitySchemes/*/httpAuthSecurityScheme", Object),
    new("/securitySchemes/*/httpAuthSecurityScheme/description", Text),
    new("/securitySchemes/*/httpAuthSecurityScheme/scheme", Text).required(ONLY_1_0),
    new("/securitySchemes/*/httpAuthSecurityScheme/bearerFormat", Text),
    new("/securitySchemes/*/openIdConnectSecurityScheme", Object),
    new("/securitySchemes/*/openIdConnectSecurityScheme/description", Text),
    new("/securitySchemes/*/openIdConnectSecurityScheme/openIdConnectUrl", Text).required(ONLY_1_0),
    new("/securitySchemes/*/mtlsSecurityScheme", Object),
    new("/securitySchemes/*/mtlsSecurityScheme/description", Text),
    new("/securitySchemes/*/oauth2SecurityScheme", Object),
    new("/securitySchemes/*/oauth2SecurityScheme/description", Text),
    new("/securitySchemes/*/oauth2SecurityScheme/oauth2MetadataUrl", Text),
    new("/securitySchemes/*/oauth2SecurityScheme/flows", Object).required(ONLY_1_0),
    new("/securitySchemes/*/oauth2SecurityScheme/flows/authorizationCode", Object),
    new("/securitySchemes/*/oauth2SecurityScheme/flows/authorizationCode/authorizationUrl", Text).required(ONLY_1_0),
    new("/securitySchemes/*/oauth2SecurityScheme/flows/authorizationCode/tokenUrl", Text).required(ONLY_1_0),
    new("/securitySchemes/*/oauth2SecurityScheme/flows/authorizationCode/refreshUrl", Text),
    new("/securitySchemes/*/oauth2SecurityScheme/flows/authorizationCode/scopes", Object).required(ONLY_1_0),
    new("/securitySchemes/*/oauth2SecurityScheme/flows/authorizationCode/scopes/*", Text),
    new("/securitySchemes/*/oauth2SecurityScheme/flows/authorizationCode/pkceRequired", Flag),
    new("/securitySchemes/*/oauth2SecurityScheme/flows/clientCredentials", Object),
    new("/securitySchemes/*/oauth2SecurityScheme/flows/clientCredentials/tokenUrl", Text).required(ONLY_1_0),
    new("/securitySchemes/*/oauth2SecurityScheme/flows/clientCredentials/refreshUrl", Text),
    new("/securitySchemes/*/oauth2SecurityScheme/flows/clientCredentials/scopes", Object).required(ONLY_1_0),
    new("/securitySchemes/*/oauth2SecurityScheme/flows/clientCredentials/scopes/*", Text),
    new("/securitySchemes/*/oauth2SecurityScheme/flows/implicit", Object),
    new("/securitySchemes/*/oauth2SecurityScheme/flows/implicit/authorizationUrl", Text),
    new("/securitySchemes/*/oauth2SecurityScheme/flows/implicit/refreshUrl", Text),
    new("/securitySchemes/*/oauth2SecurityScheme/flows/implicit/scopes", Object),
    new("/securitySchemes/*/oauth2SecurityScheme/flows/implicit/scopes/*", Text),
    new("/securitySchemes/*/oauth2SecurityScheme/flows/password", Object),
    new("/securitySchemes/*/oauth2SecurityScheme/flows/password/tokenUrl", Text),
    new("/securitySchemes/*/oauth2SecurityScheme/flows/password/refreshUrl", Text),
    new("/securitySchemes/*/oauth2SecurityScheme/flows/password/scopes", Object),
    new("/securitySchemes/*/oauth2SecurityScheme/flows/password/scopes/*", Text),
    new("/securitySchemes/*/oauth2SecurityScheme/flows/deviceCode", Object),
    new("/securitySchemes/*/oauth2SecurityScheme/flows/deviceCode/deviceAuthorizationUrl", Text).required(ONLY_1_0),
    new("/securitySchemes/*/oauth2SecurityScheme/flows/deviceCode/tokenUrl", Text).required(ONLY_1_0),
    new("/securitySchemes/*/oauth2SecurityScheme/flows/deviceCode/refreshUrl", Text),
    new("/securitySchemes/*/oauth2SecurityScheme/flows/deviceCode/scopes", Object).required(ONLY_1_0),
    new("/securitySchemes/*/oauth2SecurityScheme/flows/deviceCode/scopes/*", Text),
    // AgentCardSignature; the types are a2a/signatures-invalid's
    field("/signatures/*", Object).known(SINCE_0_3),
    field("/signatures/*/protected", Open).known(SINCE_0_3).required(SINCE_0_3),
    field("/signatures/*/signature", Open).known(SINCE_0_3).required(SINCE_0_3),
    field("/signatures/*/header", Free).known(SINCE_0_3),
];

static CARD: LazyLock<Place> = LazyLock::new(|| Place::of(FIELDS));

/// The values of the judged card that stand at known places, and what stands beside them.
fn placed<'c>(card: Node<'_>, context: &Context<'c>) -> &'c Placed {
    context.fields.get_or_init(|| Placed::of(card, &CARD))
}

/// Visits every value at a place that the judged releases know, with its field.
pub(super) fn known<'d>(card: Node<'d>, context: &Context<'_>, mut f: impl FnMut(Node<'d>, &'static Field)) {
    let versions = context.profile.versions;
    placed(card, context).visit(card, |node, place, _| {
        if let Some(field) = place.and_then(|place| place.field)
            && field.is_known_in(versions)
        {
            f(node, field);
        }
    });
}

/// Visits every member that no release knows, with the place of the object it stands in.
pub(super) fn unknown<'d>(card: Node<'d>, context: &Context<'_>, mut f: impl FnMut(Node<'d>, &'static Place)) {
    placed(card, context).visit(card, |node, place, parent| {
        if place.is_none() {
            f(node, parent);
        }
    });
}

/// Whether a field is an array's item or a map's value.
pub(super) fn is_item(field: &Field) -> bool {
    field.at.ends_with("/*")
}

/// Whether that place is an interface.
pub(super) fn is_interface(at: &str) -> bool {
    matches!(at, "/supportedInterfaces/*" | "/additionalInterfaces/*")
}

/// Whether that place is a security requirement of 1.0.
pub(super) fn is_requirement(at: &str) -> bool {
    matches!(at, "/securityRequirements/*" | "/skills/*/securityRequirements/*")
}

/// The names of what the message at a place holds in 1.0.
pub(super) fn members_at(at: &str) -> impl Iterator<Item = &'static str> {
    let below = move |field: &&Field| {
        let rest = field.at.strip_prefix(at).and_then(|rest| rest.strip_prefix('/'));
        rest.is_some_and(|rest| !rest.contains('/')) && field.is_known_in(ONLY_1_0)
    };
    FIELDS.iter().filter(below).map(Field::name)
}
