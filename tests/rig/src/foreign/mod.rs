//! Other libraries as clients: how each is started. They read the same command line as ours, and
//! write the same lines.

use std::path::Path;
use std::process::Command;

use support::skip::NO_PYTHON;

use crate::Failure;
use crate::tools;

/// Before every key, for all clients: the one that `pottery` puts there by itself.
pub(crate) const PREFIX: &str = "redlock:";

/// The libraries that can be asked for.
pub(crate) const LIBRARIES: [&str; 3] = ["rslock", "pottery", "node-redlock"];

/// Whether a place is for a process of ours.
pub(crate) fn is_ours(library: &str) -> bool {
    !LIBRARIES.contains(&library)
}

/// Those of the libraries that can run here. What another one `lacks` is told, and the run goes on
/// without it; where all are required, it does not: a run that says nothing of a library must not
/// pass for one that does. A Python that was given up by name is never required.
pub(crate) fn present(
    libraries: &[String],
    required: bool,
    lacks: impl Fn(&str) -> Option<Failure>,
) -> Result<Vec<String>, Failure> {
    let mut present = Vec::new();
    for library in libraries {
        if !LIBRARIES.contains(&&library[..]) {
            let known = LIBRARIES.join(", ");
            return Err(format!("`{library}` is no library that the rig knows: {known}").into());
        }
        match lacks(library) {
            None => present.push(library.clone()),
            Some(why) if required && why.to_string() != NO_PYTHON => {
                let rule = "nothing may be left out under QUORLOCK_REQUIRE_SERVERS=1";
                return Err(format!("no run without {library}: {why}; {rule}").into());
            }
            Some(why) => eprintln!("without {library}: {why}"),
        }
    }
    Ok(present)
}

/// Why this library cannot run here, if it cannot.
pub(crate) fn lacks(library: &str) -> Option<Failure> {
    match library {
        "pottery" => tools::pottery().err(),
        "node-redlock" => tools::node().err(),
        _ => None,
    }
}

/// The command for a client, still without its own arguments; `place` wraps a program.
pub(crate) fn command(
    library: &str,
    own: &Path,
    place: impl Fn(&Path) -> Command,
) -> Result<Command, Failure> {
    let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/foreign");
    Ok(match library {
        "pottery" => {
            let python = tools::pottery()?;
            let mut command = place(Path::new(python.get_program()));
            command.envs(python.get_envs().filter_map(|(name, value)| Some((name, value?))));
            command.arg(scripts.join("pottery_client.py"));
            command
        }
        "node-redlock" => {
            let (node, packages) = tools::node()?;
            let mut command = place(&node);
            command.arg(scripts.join("node_redlock_client.cjs"));
            command.arg("--packages").arg(packages);
            command
        }
        _ => {
            let mut command = place(own);
            command.arg("client");
            command
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_library_that_is_not_there_is_left_out_only_where_that_is_allowed() {
        let lacks = |library: &str| (library == "pottery").then(|| Failure::from("no pottery"));
        let wanted = ["rslock", "pottery", "node-redlock"].map(String::from);
        let left = present(&wanted, false, lacks).expect("the run goes on");
        assert_eq!(left, ["rslock", "node-redlock"]);
        let error = present(&wanted, true, lacks).expect_err("the run fails").to_string();
        assert!(error.starts_with("no run without pottery: no pottery;"), "{error}");
        let all = present(&wanted, true, |_| None).expect("nothing is missing");
        assert_eq!(all, wanted);
    }

    #[test]
    fn a_python_that_was_given_up_is_not_required() {
        let lacks = |library: &str| (library == "pottery").then(|| Failure::from(NO_PYTHON));
        let wanted = ["pottery", "rslock"].map(String::from);
        assert_eq!(present(&wanted, true, lacks).expect("the run goes on"), ["rslock"]);
    }

    #[test]
    fn an_unknown_library_is_an_error_everywhere() {
        let error = present(&["redsync".into()], false, |_| None).expect_err("what is it?");
        assert!(error.to_string().contains("rslock, pottery, node-redlock"), "{error}");
    }
}
