//! Where targets come from. A source yields listings; what vanishes from it is retired, never deleted.

pub mod domains;
pub mod mcp_registry;
