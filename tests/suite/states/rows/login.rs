//! Servers that let no client in, or not as expected.

use support::Script;
use support::greeting::Greeting;

use crate::states::state::{Node, STATE, Said, State};

const EVERYTHING: &str = "on >pw ~* &* +@all";

pub(super) const STATES: &[State] = &[
    State {
        name: "no password was given",
        enter: |node| node.tell("CONFIG SET requirepass secret"),
        leave: |node| node.ask_empty("CONFIG SET requirepass"),
        cut: true,
        says: [Said::NotSent("NOAUTH"); 3],
        ..STATE
    },
    State {
        name: "the password is wrong",
        node: Node::Real(|server| server.user("me", EVERYTHING)),
        login: "me:pw",
        enter: |node| node.tell("ACL SETUSER me resetpass >another"),
        leave: |node| node.tell("ACL SETUSER me resetpass >pw"),
        cut: true,
        says: [Said::NotSent("WRONGPASS"); 3],
        ..STATE
    },
    State {
        name: "the password was changed while connected",
        node: Node::Real(|server| server.user("me", EVERYTHING)),
        login: "me:pw",
        enter: |node| node.tell("ACL SETUSER me resetpass >another"),
        leave: |node| node.tell("ACL SETUSER me resetpass >pw"),
        ..STATE
    },
    State {
        name: "the user was deleted",
        node: Node::Real(|server| server.user("me", EVERYTHING)),
        login: "me:pw",
        enter: |node| node.tell("ACL DELUSER me"),
        leave: |node| node.tell(&format!("ACL SETUSER me {EVERYTHING}")),
        cut: true,
        says: [Said::NotSent("WRONGPASS"); 3],
        ..STATE
    },
    State {
        name: "`maxclients` reached",
        enter: |node| {
            node.cut_clients();
            node.tell("CONFIG SET maxclients 1");
        },
        leave: |node| node.tell("CONFIG SET maxclients 1000"),
        cut: true,
        says: [Said::NotSent("clients"); 3],
        ..STATE
    },
    State {
        name: "protected mode",
        node: Node::Scripted(|_| {
            let denied = "-DENIED Redis is running in protected mode because protected mode is \
                          enabled and no password is set for the default user.\r\n";
            [Script::greeting().answer_all(grant), Script::bare().expect_any().reply(denied).cut()]
        }),
        cut: true,
        says: [Said::NotSent("DENIED"); 3],
        ..STATE
    },
    State {
        name: "`HELLO` hidden by a proxy",
        node: Node::Scripted(|_| {
            let deaf = || Script::greeting_as(Greeting::default().without_hello());
            [deaf().answer_all(grant), deaf().answer_all(grant)]
        }),
        ..STATE
    },
    State {
        name: "`HELLO`, `INFO`, `CLIENT` renamed",
        node: Node::Real(|server| {
            let renamed = ["HELLO", "INFO", "CLIENT"].map(|name| ["--rename-command", name, ""]);
            server.args(renamed.concat())
        }),
        ..STATE
    },
];

/// What a server does that grants everything.
fn grant(command: &[Vec<u8>]) -> Vec<u8> {
    match &command[0][..] {
        b"SET" => b"+OK\r\n".to_vec(),
        b"EVALSHA" => b":1\r\n".to_vec(),
        _ => b"$-1\r\n".to_vec(),
    }
}
