//! Every function of the store, by one body on SQLite and on PostgreSQL.

mod alerting;
mod audit;
mod backup;
mod cohorts;
mod confirmed;
mod deploys;
mod doctor;
mod histories;
mod housekeeping;
mod incidents;
mod opening;
mod planned;
mod record;
mod repeats;
mod room;
mod sources;
mod speed;
mod steering;
mod stories;
mod support;
mod surfaces;
mod targets;
mod views;
mod volatile;
mod walks;
