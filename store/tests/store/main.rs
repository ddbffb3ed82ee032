//! Every function of the store, by one body on SQLite and on PostgreSQL.

mod confirmed;
mod doctor;
mod housekeeping;
mod opening;
mod record;
mod room;
mod sources;
mod speed;
mod steering;
mod support;
mod surfaces;
mod targets;
mod views;
mod walks;
