//! The headers of QUDA's interface are those of its tables.
use std::fs;
use std::path::Path;

/// The headers in the repository, which applications are compiled against, are what the tables of the crate say.
#[test]
fn headers_are_those_of_the_tables() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../quda/include");
    for (name, made) in ferrite_quda::headers::all() {
        let path = folder.join(name);
        if std::env::var_os("FERRITE_WRITE_HEADER").is_some() {
            fs::write(&path, &made).expect("the header can be written");
        }
        assert!(
            fs::read_to_string(&path).unwrap_or_default() == made,
            "quda/include/{name} differs from the tables; run FERRITE_WRITE_HEADER=1 cargo test -p ferrite-tests --test all header"
        );
    }
}
