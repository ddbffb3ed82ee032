//! Everything Plumbline remembers.
