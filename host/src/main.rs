//! The program `ferrite`.
fn main() {}
