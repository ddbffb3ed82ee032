//! Makes a change of the migrations a change of this crate, into which they are embedded.

fn main() {
    println!("cargo:rerun-if-changed=../migrations");
}
