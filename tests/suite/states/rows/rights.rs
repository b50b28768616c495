//! Users without a right, and commands that are called something else.

use crate::states::state::{Left, Node, STATE, Said, State};

const EVERYTHING: &str = "on >pw ~* &* +@all";

/// What most of these have in common: a user with every right, who gets them back in the end.
const RIGHTS: State = State {
    node: Node::Real(|server| server.user("me", EVERYTHING)),
    login: "me:pw",
    leave: |node| node.tell_all(&["ACL SETUSER me +@all", "ACL SETUSER me ~*"]),
    ..STATE
};

/// An error in a script, in the words of no matter which version.
const IN_SCRIPT: Said = Said::Failed("script");

pub(super) const STATES: &[State] = &[
    State {
        name: "no `set`",
        enter: |node| node.tell("ACL SETUSER me -set"),
        says: [Said::Refused("NOPERM"), Said::Granted, Said::Granted],
        vote: Some(IN_SCRIPT),
        ..RIGHTS
    },
    State {
        name: "no `evalsha`",
        enter: |node| node.tell("ACL SETUSER me -evalsha"),
        says: [Said::Granted, Said::Refused("NOPERM"), Said::Refused("NOPERM")],
        by_script: true,
        left: Left::UntilExpiry,
        vote: Some(Said::Refused("NOPERM")),
        ..RIGHTS
    },
    State {
        name: "no `eval`, script known",
        enter: |node| node.tell("ACL SETUSER me -eval"),
        ..RIGHTS
    },
    State {
        name: "no `eval`, script forgotten",
        enter: |node| node.tell_all(&["ACL SETUSER me -eval", "SCRIPT FLUSH"]),
        says: [Said::Granted, Said::Refused("NOPERM"), Said::Refused("NOPERM")],
        by_script: true,
        left: Left::UntilExpiry,
        ..RIGHTS
    },
    State {
        name: "no `get`",
        enter: |node| node.tell("ACL SETUSER me -get"),
        says: [Said::Granted, IN_SCRIPT, IN_SCRIPT],
        by_script: true,
        left: Left::UntilExpiry,
        vote: Some(IN_SCRIPT),
        ..RIGHTS
    },
    State {
        name: "no `del`",
        enter: |node| node.tell("ACL SETUSER me -del"),
        says: [Said::Granted, Said::Granted, IN_SCRIPT],
        by_script: true,
        left: Left::UntilExpiry,
        ..RIGHTS
    },
    State {
        name: "no `pexpire`",
        enter: |node| node.tell("ACL SETUSER me -pexpire"),
        says: [Said::Granted, IN_SCRIPT, Said::Granted],
        ..RIGHTS
    },
    State {
        name: "no `pttl`",
        enter: |node| node.tell("ACL SETUSER me -pttl"),
        vote: Some(IN_SCRIPT),
        ..RIGHTS
    },
    State {
        name: "no `info`, `client`, `script`",
        enter: |node| node.tell("ACL SETUSER me -info -client -script"),
        cut: true,
        ..RIGHTS
    },
    State {
        name: "no right to the key",
        enter: |node| node.tell("ACL SETUSER me resetkeys ~other:*"),
        says: [Said::Refused("NOPERM"); 3],
        left: Left::UntilExpiry,
        vote: Some(Said::Refused("NOPERM")),
        ..RIGHTS
    },
    State {
        name: "`SET` renamed",
        node: Node::Real(|server| server.args(["--rename-command", "SET", ""])),
        says: [Said::Failed("unknown command"), Said::Never, Said::Never],
        ..STATE
    },
    State {
        name: "`EVALSHA` renamed",
        node: Node::Real(|server| server.args(["--rename-command", "EVALSHA", ""])),
        says: [Said::Granted, Said::Failed("unknown command"), Said::Failed("unknown command")],
        by_script: true,
        left: Left::UntilExpiry,
        ..STATE
    },
    State {
        name: "`EVAL` renamed",
        node: Node::Real(|server| server.args(["--rename-command", "EVAL", ""])),
        ..STATE
    },
    State {
        name: "`SCRIPT` renamed",
        node: Node::Real(|server| server.args(["--rename-command", "SCRIPT", ""])),
        ..STATE
    },
    State {
        name: "`GET` renamed",
        node: Node::Real(|server| server.args(["--rename-command", "GET", ""])),
        says: [Said::Granted, IN_SCRIPT, IN_SCRIPT],
        by_script: true,
        left: Left::UntilExpiry,
        ..STATE
    },
    State {
        name: "`DEL` renamed",
        node: Node::Real(|server| server.args(["--rename-command", "DEL", ""])),
        says: [Said::Granted, Said::Granted, IN_SCRIPT],
        by_script: true,
        left: Left::UntilExpiry,
        ..STATE
    },
    State {
        name: "`PEXPIRE` renamed",
        node: Node::Real(|server| server.args(["--rename-command", "PEXPIRE", ""])),
        says: [Said::Granted, IN_SCRIPT, Said::Granted],
        ..STATE
    },
];
