//! A test that reads the source, and holds it to the rules that no compiler knows.
//!
//! | file | rule |
//! |---|---|
//! | `tidy/rooms` | a file imports only from its own room or from one of a lower rank |
//! | `tidy/shape` | lines, functions and files stay short |
//! | `tidy/banned` | calls with a better replacement, which the message names |
//! | `tidy/graph` | the imports between files form no circle |
//! | `tidy/items` | what a file defines, imports and names |
//! | `tidy/source` | what is code, what is comment or string, what is test |
//!
//! Each rule is a pure function from a source to its faults, tested on snippets that break it: a
//! tidy test that cannot fail enforces nothing.

#[path = "tidy/banned.rs"]
mod banned;
#[path = "tidy/graph.rs"]
mod graph;
#[path = "tidy/items.rs"]
mod items;
#[path = "tidy/rooms.rs"]
mod rooms;
#[path = "tidy/shape.rs"]
mod shape;
#[path = "tidy/source.rs"]
mod source;

use std::path::Path;

use source::{Fault, Source};

/// The folders that hold our Rust.
const FOLDERS: [&str; 7] = ["src", "resp", "cli", "tests", "benches", "fuzz", "examples"];

#[test]
fn the_source_is_tidy() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let sources: Vec<Source> =
        FOLDERS.iter().flat_map(|folder| source::read_all(root, folder)).collect();
    assert!(sources.iter().any(|source| source.path == "src/lib.rs"), "the source was not found");

    let face = sources.iter().find(|source| source.path == "src/lib.rs").map(rooms::face);
    let face = face.unwrap_or_default();
    let mut faults: Vec<Fault> = Vec::new();
    for source in &sources {
        faults.extend(rooms::faults(source, &face));
        faults.extend(shape::faults(source));
        faults.extend(banned::faults(source));
    }
    let report: Vec<String> = faults.iter().map(Fault::to_string).collect();
    assert!(report.is_empty(), "{} faults:\n{}", report.len(), report.join("\n"));
}
