//! Reads events and will tell those who asked.
