//! The pages, their JSON and their charts.
