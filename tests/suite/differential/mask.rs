//! What may differ between a node and a server, each with its reason.

/// The reply without what may differ.
pub(super) fn masked(words: &[&str], reply: &[u8]) -> Vec<u8> {
    let text = String::from_utf8_lossy(reply).into_owned();
    let command: Vec<String> = words.iter().take(2).map(|w| w.to_ascii_uppercase()).collect();
    let command: Vec<&str> = command.iter().map(String::as_str).collect();
    let text = match command[..] {
        // Clocks go on.
        ["TIME"] => shape(&text),
        ["PTTL" | "PEXPIRETIME", ..] => rounded(&text),
        ["EVAL" | "EVALSHA", ..] => reason(&text),
        ["ZRANGE", ..] => beats(&text),
        // Connections are numbered from other beginnings.
        ["CLIENT", "ID"] => shape(&text),
        ["HELLO", ..] => hello(&text),
        // Servers keep keys in no order.
        ["KEYS", ..] => sorted(&text),
        // A node tells less of itself, in the same form.
        ["INFO", ..] => sections(&text),
        ["ROLE"] => role(&text),
        _ => text,
    };
    text.into_bytes()
}

/// The types of the frames alone.
fn shape(text: &str) -> String {
    let lines = text.lines().filter(|line| !line.starts_with(|c: char| c.is_ascii_digit()));
    lines.map(|line| &line[..1]).collect()
}

/// A time, to the second if it is one. Of a short life, how much of it is over is not compared.
fn rounded(text: &str) -> String {
    let number = text.strip_prefix(':').and_then(|text| text.trim_end().parse::<i64>().ok());
    match number {
        Some(millis) if millis > 1_000_000_000_000 => "a time".to_owned(),
        Some(millis) if (200..=2_000).contains(&millis) => "soon".to_owned(),
        Some(millis) if millis > 1_000 => format!(":{} s", (millis + 999) / 1_000),
        _ => text.to_owned(),
    }
}

/// The scores, but for those that are times of today.
fn beats(text: &str) -> String {
    let is_of_today = |score: f64| (1.5e12..3e12).contains(&score);
    let line = |line: &str| match line.parse().is_ok_and(is_of_today) {
        true => "a time".to_owned(),
        false => line.to_owned(),
    };
    text.split("\r\n").map(line).collect::<Vec<_>>().join("\r\n")
}

/// What a script answers beside a time: 1 (done), 2 (gives no vote), -1 to -3 (it is to wait); the
/// time left to the second.
fn reason(text: &str) -> String {
    let timed = [1, 2, -1, -2, -3]
        .map(|code| format!("*2\r\n:{code}\r\n"))
        .into_iter()
        .find_map(|head| text.strip_prefix(&*head).map(|left| format!("{head}{}", rounded(left))));
    timed.unwrap_or_else(|| text.to_owned())
}

/// Without the connection's number, and without the list at its end of what is loaded.
fn hello(text: &str) -> String {
    let mut lines: Vec<&str> = text.split("\r\n").collect();
    if let Some(id) = lines.iter().position(|line| *line == "id") {
        lines[id + 1] = ":";
    }
    let modules = lines.iter().position(|line| *line == "modules");
    lines.truncate(modules.unwrap_or(lines.len()));
    lines.join("\r\n")
}

fn sorted(text: &str) -> String {
    let mut lines: Vec<&str> = text.lines().collect();
    lines.sort_unstable();
    lines.join("\r\n")
}

/// The type of the text, and the names of its sections.
fn sections(text: &str) -> String {
    let names = text.split("\r\n").map(|line| line.strip_prefix("txt:").unwrap_or(line));
    let names: Vec<&str> = names.filter(|line| line.starts_with('#')).collect();
    format!("{} {}", &text[..1], names.join(" "))
}

/// A replica's master is one of its own, and in another state by and by.
fn role(text: &str) -> String {
    if text.contains("slave") { "slave".to_owned() } else { text.to_owned() }
}
