//! Settings that document themselves: a struct whose field comments are printed by `plumbline config`.

/// A settings struct and what its fields mean.
pub trait Described: Default {
    /// For every field its name and its documentation, in the order declared.
    const FIELDS: &'static [(&'static str, &'static str)];
}

/// Declares a settings struct: unknown keys are refused, every field has a documented default.
#[macro_export]
macro_rules! settings {
    ($(#[doc = $doc:literal])+ pub struct $name:ident {
        $($(#[doc = $about:literal])+ pub $field:ident: $kind:ty = $default:expr,)+
    }) => {
        $(#[doc = $doc])+
        #[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
        #[serde(deny_unknown_fields, default)]
        pub struct $name {
            $($(#[doc = $about])+ pub $field: $kind,)+
        }

        impl Default for $name {
            fn default() -> Self {
                $name { $($field: $default,)+ }
            }
        }

        impl $crate::settings::Described for $name {
            const FIELDS: &'static [(&'static str, &'static str)] =
                &[$((stringify!($field), concat!($($about, "\n"),+)),)+];
        }
    };
}
