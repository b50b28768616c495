//! How long things may be: a line, a function, a file.

use crate::source::{Fault, Source, block_end};

/// The longest line, in characters. A URL may be longer, for it cannot be broken.
const LINE_CHARS_MAX: usize = 100;

/// The longest function, from its name to its closing brace.
const FUNCTION_LINES_MAX: usize = 70;

/// The longest file, its tests not counted.
const FILE_LINES_MAX: usize = 500;

/// Everything that is too long.
pub(crate) fn faults(source: &Source) -> Vec<Fault> {
    let mut faults = long_lines(source);
    faults.extend(long_functions(source));
    faults.extend(long_file(source));
    faults
}

fn long_lines(source: &Source) -> Vec<Fault> {
    let mut at = 0;
    let mut faults = Vec::new();
    for line in source.text.split('\n') {
        let chars = line.chars().count();
        if chars > LINE_CHARS_MAX && !line.contains("://") {
            let what = format!("a line of {chars} characters; at most {LINE_CHARS_MAX}");
            faults.push(source.fault(at, what));
        }
        at += line.len() + 1;
    }
    faults
}

fn long_functions(source: &Source) -> Vec<Fault> {
    let functions = source.find("fn").filter_map(|at| {
        let name = source.code[at + 2..].trim_start();
        let name = &name[..name.find(['(', '<'])?];
        // A function's type has no name.
        (!name.is_empty()).then_some(())?;
        let lines = source.line_at(body_end(&source.code, at)?) + 1 - source.line_at(at);
        let what = format!("`{name}` has {lines} lines; at most {FUNCTION_LINES_MAX}");
        (lines > FUNCTION_LINES_MAX).then(|| source.fault(at, what))
    });
    functions.collect()
}

/// The last byte of the body of the function at `at`, if it has one.
fn body_end(code: &str, at: usize) -> Option<usize> {
    let mut depth = 0_usize;
    for (offset, byte) in code.as_bytes()[at..].iter().enumerate() {
        match byte {
            b'(' | b'[' => depth += 1,
            b')' | b']' => depth = depth.saturating_sub(1),
            b'{' if depth == 0 => return Some(block_end(code, at + offset) - 1),
            b';' if depth == 0 => return None,
            _ => {}
        }
    }
    None
}

fn long_file(source: &Source) -> Option<Fault> {
    let mut at = 0;
    let mut lines = 0;
    for line in source.text.lines() {
        lines += usize::from(!source.in_test(at));
        at += line.len() + 1;
    }
    let what = format!("{lines} lines without tests; at most {FILE_LINES_MAX}");
    (lines > FILE_LINES_MAX).then(|| source.fault(0, what))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str) -> Vec<Fault> {
        faults(&Source::new("src/x.rs", text))
    }

    #[test]
    fn lines_are_measured_in_characters() {
        let long = "ü".repeat(101);
        assert_eq!(check(&format!("a\n// {long}"))[0].line, 2);
        assert_eq!(check(&format!("//{}", "ü".repeat(98))), []);
        assert_eq!(check(&format!("// https://{long}")), []);
    }

    #[test]
    fn functions_are_measured_from_name_to_brace() {
        let function = |lines: usize| format!("\nfn f() {{{}}}\n", "\n".repeat(lines - 1));
        assert_eq!(check(&function(70)), []);
        let found = check(&function(71));
        assert_eq!((found[0].line, found[0].what.contains("`f` has 71 lines")), (2, true));
        let generic = format!("fn f<const N: usize>(a: [u8; 3])\nwhere\n{}", function(71));
        assert_eq!(check(&generic).len(), 2, "both, for one stands in the other's place");
        assert_eq!(check(&format!("trait T {{ fn f();\n{} }}", "\n".repeat(90))), []);
        assert_eq!(check(&format!("type T = fn(u8);\nmod m {{{}}}", "\n".repeat(90))), []);
    }

    #[test]
    fn files_are_measured_without_their_tests() {
        let code = "a();\n".repeat(500);
        let tests = format!("#[cfg(test)]\nmod tests {{\n{}}}\n", "a();\n".repeat(500));
        assert_eq!(check(&format!("{code}{tests}")), []);
        assert_eq!(check(&format!("{code}a();\n{tests}")).len(), 1);
    }
}
