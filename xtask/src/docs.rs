//! What no compiler checks: that links lead somewhere, that files and lines stay short.

use crate::Failure;
use std::fs;
use std::path::{Path, PathBuf};

/// Characters in a line of Rust.
const LINE_CHARS: usize = 100;

/// Lines in a file of Rust.
const FILE_LINES: usize = 1000;

/// Checks every Markdown and Rust file below `root`; the error lists all problems.
pub(crate) fn check(root: &Path) -> Result<(), Failure> {
    println!("$ checking links, lengths of lines and files");
    let mut problems = Vec::new();
    for path in files(root) {
        let shown = path.strip_prefix(root).unwrap_or(&path).display();
        let text = fs::read_to_string(&path)
            .map_err(|error| Failure::new(format!("cannot read {shown}: {error}")))?;
        let found = match path.extension() {
            Some(extension) if extension == "md" => broken_links(&path, root, &text),
            _ => too_long(&text),
        };
        let found = found.into_iter().map(|(line, problem)| format!("{shown}:{line}: {problem}"));
        problems.extend(found);
    }
    match problems.is_empty() {
        true => Ok(()),
        false => Err(Failure::new(format!("{} problems\n{}", problems.len(), problems.join("\n")))),
    }
}

/// Every `.md` and `.rs` file, those that cargo or git made left out, in order.
fn files(root: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut folders = vec![root.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            let (path, name) = (entry.path(), entry.file_name());
            let hidden = name.to_string_lossy().starts_with('.');
            match entry.file_type() {
                Ok(kind) if kind.is_dir() && !hidden && name != "target" => folders.push(path),
                Ok(kind) if kind.is_file() => files.push(path),
                _ => {}
            }
        }
    }
    files.retain(|path| path.extension().is_some_and(|kind| kind == "md" || kind == "rs"));
    files.sort();
    files
}

/// The relative links in `text`, the Markdown in `file`, that lead to no file, with their lines.
fn broken_links(file: &Path, root: &Path, text: &str) -> Vec<(usize, String)> {
    let folder = file.parent().unwrap_or(root);
    let leads_nowhere = |(_, target): &(usize, String)| {
        let path = target.split('#').next().unwrap_or_default();
        let base = if path.starts_with('/') { root } else { folder };
        !path.is_empty() && !base.join(path.trim_start_matches('/')).exists()
    };
    let broken = links(text).into_iter().filter(leads_nowhere);
    broken.map(|(line, target)| (line, format!("no such file: {target}"))).collect()
}

/// The targets of links in Markdown that are not URLs, with their lines; code is passed over.
fn links(text: &str) -> Vec<(usize, String)> {
    let mut links = Vec::new();
    let mut in_code = false;
    for (index, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            in_code = !in_code;
        }
        if in_code {
            continue;
        }
        // The parts between backquotes are code: every second one.
        let prose: String = line.split('`').step_by(2).collect::<Vec<_>>().join("`");
        let inline = prose.split("](").skip(1).filter_map(|rest| rest.split(')').next());
        let named = prose.strip_prefix('[').and_then(|rest| rest.split_once("]: "));
        for target in inline.chain(named.map(|(_, target)| target)) {
            let target = target.split_whitespace().next().unwrap_or_default();
            let target = target.trim_start_matches('<').trim_end_matches('>');
            if !target.contains("://") && !target.starts_with("mailto:") {
                links.push((index + 1, target.to_owned()));
            }
        }
    }
    links
}

/// Lines of Rust, or the file, over their limits.
fn too_long(text: &str) -> Vec<(usize, String)> {
    let mut problems = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let chars = line.chars().count();
        if chars > LINE_CHARS {
            problems.push((index + 1, format!("{chars} characters, at most {LINE_CHARS}")));
        }
    }
    let lines = text.lines().count();
    if lines > FILE_LINES {
        problems.push((FILE_LINES + 1, format!("{lines} lines, at most {FILE_LINES}")));
    }
    problems
}

#[cfg(test)]
mod tests;
