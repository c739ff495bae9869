//! Links in Markdown that lead to no file.

use super::Problem;
use std::path::Path;

/// Links in the page at `path`, below `root`, that lead nowhere.
pub(super) fn broken(root: &Path, path: &str, text: &str) -> Vec<Problem> {
    let found = broken_links(&root.join(path), root, text);
    found
        .into_iter()
        .map(|(line, problem)| Problem::new(format!("{path}:{line}"), problem))
        .collect()
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

#[cfg(test)]
mod tests;
