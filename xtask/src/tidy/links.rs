//! Links in Markdown that lead to no file, or to no heading of one.

use super::Problem;
use std::collections::BTreeSet;
use std::path::Path;

/// Links in the page at `path`, below `root`, that lead nowhere.
pub(super) fn broken(root: &Path, path: &str, text: &str) -> Vec<Problem> {
    let found = broken_links(&root.join(path), root, text);
    found
        .into_iter()
        .map(|(line, problem)| Problem::new(format!("{path}:{line}"), problem))
        .collect()
}

/// The relative links in `text`, the Markdown in `file`, that lead to no file or to no heading of
/// one, with their lines.
fn broken_links(file: &Path, root: &Path, text: &str) -> Vec<(usize, String)> {
    let folder = file.parent().unwrap_or(root);
    let problem = |target: &str| {
        let (path, anchor) = target.split_once('#').unwrap_or((target, ""));
        let base = if path.starts_with('/') { root } else { folder };
        let page = base.join(path.trim_start_matches('/'));
        if !path.is_empty() && !page.exists() {
            return Some(format!("no such file: {target}"));
        }
        let is_page = path.is_empty() || path.ends_with(".md");
        if anchor.is_empty() || !is_page {
            return None;
        }
        let other = (!path.is_empty()).then(|| std::fs::read_to_string(&page));
        let text = match &other {
            None => text,
            Some(read) => read.as_ref().map_or("", String::as_str),
        };
        (!anchors(text).contains(anchor)).then(|| format!("no such heading: {target}"))
    };
    let found = links(text).into_iter();
    found.filter_map(|(line, target)| Some((line, problem(&target)?))).collect()
}

/// The anchors of the headings in Markdown, as GitHub names them: letters and digits in lower case,
/// a hyphen for each space, and a number where one was there before.
fn anchors(text: &str) -> BTreeSet<String> {
    let mut anchors = BTreeSet::new();
    let mut in_code = false;
    for line in text.lines() {
        in_code ^= line.trim_start().starts_with("```");
        let heading = line.trim_start_matches('#');
        let level = line.len() - heading.len();
        let Some(heading) = heading.strip_prefix(' ') else { continue };
        if in_code || !(1..=6).contains(&level) {
            continue;
        }
        let slug = heading.trim().chars().filter_map(|char| match char {
            ' ' => Some('-'),
            '-' | '_' => Some(char),
            _ => char.is_alphanumeric().then_some(char),
        });
        let slug = slug.collect::<String>().to_lowercase();
        let again = (1..).map(|count| format!("{slug}-{count}"));
        let mut names = std::iter::once(slug.clone()).chain(again);
        anchors.extend(names.find(|name| !anchors.contains(name)));
    }
    anchors
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
