//! Packages that are files and images: containers, bundles, and their hashes.

use super::fields::{is_blank, list, member, spelled};
use super::packages::{is_of, text_member};
use super::revision::{ALL_REVISIONS, SINCE_2025_10_11};
use crate::document::Node;
use crate::judge::{Context, Occurrences};
use crate::kind::Kind;
use crate::rule::{Basis, Check, Impact, Rule, Severity, fires, silent};
use crate::text::{AbsoluteUrl, quote};

pub(super) const RULES: &[&Rule] = &[
    &OCI_IDENTIFIER_FORMAT,
    &OCI_HOST_UNSUPPORTED,
    &OCI_TAG_FLOATING,
    &OCI_REDUNDANT_FIELD,
    &MCPB_IDENTIFIER_INVALID,
    &MCPB_SHA256_MISSING,
    &FILE_SHA256_FORMAT,
];

/// The reference of a container image, `host[:port]/path[:tag][@digest]`.
#[derive(Debug, PartialEq, Eq)]
struct Image<'t> {
    host: &'t str,
    tag: Option<&'t str>,
    digest: Option<&'t str>,
}

impl<'t> Image<'t> {
    /// Reads a reference, or says what is wrong with it.
    fn read(text: &'t str) -> Result<Image<'t>, &'static str> {
        if text.contains("://") {
            return Err("has a scheme");
        }
        let (rest, digest) = divided(text, '@');
        if digest.is_some_and(|digest| !is_digest(digest)) {
            return Err("has no SHA-256 digest behind the @");
        }
        let (address, path) = rest.split_once('/').unwrap_or((rest, ""));
        let host = address.split(':').next().unwrap_or(address);
        if host.is_empty() || !(address.contains(['.', ':']) || address == "localhost") {
            return Err("names no host");
        }
        let (path, tag) = divided(path, ':');
        if path.is_empty() || path.split('/').any(str::is_empty) {
            return Err("names no image at that host");
        }
        if path.bytes().any(|b| b.is_ascii_uppercase()) {
            return Err("has upper case in its path");
        }
        if tag.is_some_and(|tag| !is_tag(tag)) {
            return Err("has no tag behind the colon");
        }
        Ok(Image { host, tag, digest })
    }
}

fn divided(text: &str, at: char) -> (&str, Option<&str>) {
    text.split_once(at).map_or((text, None), |(before, after)| (before, Some(after)))
}

fn is_digest(text: &str) -> bool {
    text.strip_prefix("sha256:").is_some_and(|hex| hex.len() == 64 && hex.bytes().all(|b| b.is_ascii_hexdigit()))
}

fn is_tag(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b'-'))
}

/// The identifier of an image; one with a space in it is reported as that.
fn image(package: Node<'_>) -> Option<(Node<'_>, &str, Result<Image<'_>, &'static str>)> {
    let (node, text) = text_member(package, "identifier").filter(|_| is_of(package, "oci"))?;
    (!text.contains(' ')).then(|| (node, text, Image::read(text)))
}

crate::rule! {
    /// An image is named in full: host, path, and tag or digest.
    ///
    /// Since 2025-10-11 the identifier is all there is; a client that has to guess the host may fetch somebody else's image.
    static OCI_IDENTIFIER_FORMAT = {
        id: "registry/oci-identifier-format",
        severity: Severity::Error,
        impact: Some(Impact::Cosmetic),
        basis: Basis::Policy,
        versions: SINCE_2025_10_11,
        place: "/packages/*/identifier",
        fix: "Write the full image reference, e.g. docker.io/owner/image:1.0.0.",
        spec: "MCP Registry docs: package-types; server-json CHANGELOG 2025-10-11",
        on: &[Kind::ServerJson],
        examples: &[
            fires(&["/packages/0/identifier"], r#"{"packages": [{"registryType": "oci", "identifier": "tidehouse/tides:2.3.0", "version": null}]}"#),
            fires(&["/packages/0/identifier"], r#"{"packages": [{"registryType": "oci", "identifier": "https://ghcr.io/tidehouse/tides:2.3.0", "version": null}]}"#),
            silent(r#"{"packages": [{"registryType": "oci", "identifier": "ghcr.io/tidehouse/tides@sha256:abababababababababababababababababababababababababababababababab", "version": null}]}"#),
        ],
        check: Check::Each(&["/packages/*"], oci_identifier_format),
    }
}

fn oci_identifier_format(package: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    if let Some((node, text, Err(fault))) = image(package) {
        out.add(node, format!("{} {fault}", quote(text)));
    }
}

crate::rule! {
    /// An image lies at a registry that the official one supports.
    ///
    /// Elsewhere it cannot check that the image belongs to the name.
    static OCI_HOST_UNSUPPORTED = {
        id: "registry/oci-host-unsupported",
        severity: Severity::Warning,
        impact: Some(Impact::Cosmetic),
        basis: Basis::Policy,
        versions: SINCE_2025_10_11,
        place: "/packages/*/identifier",
        fix: "Push the image to a supported public registry.",
        spec: "official registry requirements: registry base URLs",
        on: &[Kind::ServerJson],
        examples: &[
            fires(&["/packages/0/identifier"], r#"{"packages": [{"registryType": "oci", "identifier": "quay.io/tidehouse/tides:2.3.0", "version": null}]}"#),
            silent(r#"{"packages": [{"registryType": "oci", "identifier": "europe-docker.pkg.dev/tidehouse/mcp/tides:2.3.0", "version": null}]}"#),
        ],
        check: Check::Each(&["/packages/*"], oci_host_unsupported),
    }
}

fn oci_host_unsupported(package: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    if let Some((node, _, Ok(image))) = image(package)
        && !is_supported(&image.host.to_ascii_lowercase())
    {
        out.add(node, format!("{} is no supported image registry", quote(image.host)));
    }
}

fn is_supported(host: &str) -> bool {
    matches!(host, "docker.io" | "ghcr.io" | "mcr.microsoft.com")
        || host.ends_with(".pkg.dev")
        || host.ends_with(".azurecr.io")
}

crate::rule! {
    /// An image is pinned by a tag that stays, or by a digest.
    ///
    /// Behind `latest` stands another image tomorrow.
    static OCI_TAG_FLOATING = {
        id: "registry/oci-tag-floating",
        severity: Severity::Warning,
        impact: Some(Impact::Cosmetic),
        basis: Basis::Hint,
        versions: SINCE_2025_10_11,
        place: "/packages/*/identifier",
        fix: "Pin a version tag or a digest.",
        spec: "MCP Registry docs: package-types",
        on: &[Kind::ServerJson],
        examples: &[
            fires(&["/packages/0/identifier"], r#"{"packages": [{"registryType": "oci", "identifier": "ghcr.io/tidehouse/tides:latest", "version": null}]}"#),
            fires(&["/packages/0/identifier"], r#"{"packages": [{"registryType": "oci", "identifier": "ghcr.io:443/tidehouse/tides", "version": null}]}"#),
            silent(r#"{"packages": [{"registryType": "oci", "identifier": "ghcr.io/tidehouse/tides:v2.3.0", "version": null}]}"#),
        ],
        check: Check::Each(&["/packages/*"], oci_tag_floating),
    }
}

fn oci_tag_floating(package: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    let Some((node, text, Ok(image))) = image(package) else { return };
    let floating = match image.tag {
        _ if image.digest.is_some() => false,
        None => true,
        Some(tag) => matches!(tag, "latest" | "main" | "master" | "edge" | "nightly" | "dev"),
    };
    if floating {
        out.add(node, format!("{} is not pinned", quote(text)));
    }
}

crate::rule! {
    /// An image carries its version in its reference only.
    ///
    /// Since 2025-10-11 the registry refuses a version, base address or file hash beside it.
    static OCI_REDUNDANT_FIELD = {
        id: "registry/oci-redundant-field",
        severity: Severity::Warning,
        impact: Some(Impact::Cosmetic),
        versions: SINCE_2025_10_11,
        place: "/packages/*/version, /packages/*/registryBaseUrl, /packages/*/fileSha256",
        fix: "Move the version into the identifier's tag and drop the field.",
        spec: "server-json CHANGELOG 2025-10-11",
        on: &[Kind::ServerJson],
        examples: &[
            fires(&["/packages/0/version"], r#"{"packages": [{"registryType": "oci", "identifier": "ghcr.io/tidehouse/tides:2.3.0"}]}"#),
            silent(r#"{"packages": [{"registryType": "oci", "identifier": "ghcr.io/tidehouse/tides:2.3.0", "version": null}]}"#),
            silent(r#"{"packages": [{"registryType": "oci", "identifier": "tidehouse/tides", "registryBaseUrl": "https://docker.io"}]}"#).over("server-json-2025-09-29"),
        ],
        check: Check::Each(&["/packages/*"], oci_redundant_field),
    }
}

fn oci_redundant_field(package: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    if !is_of(package, "oci") {
        return;
    }
    for key in ["version", "registryBaseUrl", "fileSha256"] {
        if let Some(node) = member(package, key).filter(|_| !is_blank(package, key)) {
            out.add(node, format!("`{key}` beside an image reference"));
        }
    }
}

crate::rule! {
    /// A bundle is linked at a release on GitHub or GitLab.
    ///
    /// The address has to hold `mcp`, so that it cannot be any file at all.
    static MCPB_IDENTIFIER_INVALID = {
        id: "registry/mcpb-identifier-invalid",
        severity: Severity::Error,
        impact: Some(Impact::Cosmetic),
        basis: Basis::Policy,
        versions: ALL_REVISIONS,
        place: "/packages/*/identifier",
        fix: "Link the .mcpb file of a public release.",
        spec: "MCP Registry docs: package-types; official registry publish checks",
        on: &[Kind::ServerJson],
        examples: &[
            fires(&["/packages/0/identifier"], r#"{"packages": [{"registryType": "mcpb", "identifier": "https://tidehouse.dev/tides.mcpb", "fileSha256": "abababababababababababababababababababababababababababababababab"}]}"#),
            fires(&["/packages/0/identifier"], r#"{"packages": [{"registryType": "mcpb", "identifier": "https://github.com/tidehouse/tides/releases/download/v2/tides.zip", "fileSha256": "abababababababababababababababababababababababababababababababab"}]}"#),
            silent(r#"{"packages": [{"registryType": "mcpb", "identifier": "https://github.com/tidehouse/tides/releases/download/v2/tides.MCPB", "fileSha256": "abababababababababababababababababababababababababababababababab"}]}"#),
        ],
        check: Check::Each(&["/packages/*"], mcpb_identifier_invalid),
    }
}

fn mcpb_identifier_invalid(package: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    let Some((node, text)) = text_member(package, "identifier").filter(|_| is_of(package, "mcpb")) else { return };
    if text.contains(' ') {
        return;
    }
    let fault = if !is_release(text) {
        "is no release at GitHub or GitLab"
    } else if !text.to_ascii_lowercase().contains("mcp") {
        "does not hold `mcp`"
    } else {
        return;
    };
    out.add(node, format!("{} {fault}", quote(text)));
}

fn is_release(text: &str) -> bool {
    let Some(url) = AbsoluteUrl::parse(text).filter(|url| url.is("https")) else { return false };
    let host = url.host.to_ascii_lowercase();
    match host.strip_prefix("www.").unwrap_or(&host) {
        "github.com" => url.path.contains("/releases/"),
        "gitlab.com" => url.path.contains("/releases/") || url.path.contains("/packages/"),
        _ => false,
    }
}

crate::rule! {
    /// A bundle comes with its SHA-256.
    ///
    /// It is fetched from an address, so the hash is the only hold a client has on what it runs.
    static MCPB_SHA256_MISSING = {
        id: "registry/mcpb-sha256-missing",
        severity: Severity::Error,
        impact: Some(Impact::Degrades),
        versions: ALL_REVISIONS,
        place: "/packages/*/fileSha256",
        fix: "Add the SHA-256 of the file in lower-case hex.",
        spec: "server.json 2025-12-11 schema fileSha256",
        on: &[Kind::ServerJson],
        examples: &[
            fires(&["/packages/0/fileSha256"], r#"{"packages": [{"registryType": "mcpb", "identifier": "https://github.com/tidehouse/tides/releases/download/v2/tides.mcpb"}]}"#),
            silent("{}"),
        ],
        check: Check::Each(&["/packages/*"], mcpb_sha256_missing),
    }
}

fn mcpb_sha256_missing(package: Node<'_>, context: &Context<'_>, out: &mut Occurrences) {
    if !is_of(package, "mcpb") || !is_blank(package, "fileSha256") {
        return;
    }
    match member(package, "fileSha256") {
        Some(hash) => out.add(hash, "the hash is empty"),
        None => out.add_missing(package, spelled("fileSha256", context.profile.versions), "no hash"),
    };
}

crate::rule! {
    /// A file's SHA-256 is 64 hexadecimal digits in lower case.
    ///
    /// Clients compare it as text.
    static FILE_SHA256_FORMAT = {
        id: "registry/file-sha256-format",
        severity: Severity::Error,
        impact: Some(Impact::Cosmetic),
        versions: ALL_REVISIONS,
        place: "/packages/*/fileSha256",
        fix: "Write 64 lower-case hex digits.",
        spec: "server.json 2025-12-11 schema fileSha256",
        on: &[Kind::ServerJson],
        examples: &[
            fires(&["/packages/0/fileSha256"], r#"{"packages": [{"fileSha256": "ABABABABABABABABABABABABABABABABABABABABABABABABABABABABABABABAB"}]}"#),
            fires(&["/packages/0/fileSha256"], r#"{"packages": [{"fileSha256": "sha256:abababababababababababababababababababababababababababababababab"}]}"#),
            silent(r#"{"packages": [{"fileSha256": "abababababababababababababababababababababababababababababababab"}]}"#),
        ],
        check: Check::Document(file_sha256_format),
    }
}

fn file_sha256_format(document: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    for package in list(document, "packages") {
        if let Some((node, hash)) = text_member(package, "fileSha256")
            && !(hash.len() == 64 && hash.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f')))
        {
            out.add(node, format!("{} is not 64 hex digits in lower case", quote(hash)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_is_no_tag_and_a_path_is_no_host() {
        let image = |text| Image::read(text).map(|image| (image.host, image.tag, image.digest.is_some()));
        assert_eq!(image("ghcr.io:443/a/b:1"), Ok(("ghcr.io", Some("1"), false)));
        assert_eq!(image("localhost/a"), Ok(("localhost", None, false)));
        for text in [
            "a/b:1",
            "ghcr.io",
            "ghcr.io/",
            "ghcr.io/A/b:1",
            "ghcr.io/a//b",
            "ghcr.io/a:",
            "ghcr.io/a@sha256:ab",
            ":1/a",
        ] {
            assert!(image(text).is_err(), "{text}");
        }
    }
}
