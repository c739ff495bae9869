//! Who imports whom inside a crate: no circles, and no arrow to a higher floor.

use super::Problem;
use super::source::{Crate, SourceFile, whole_words};
use std::collections::{BTreeMap, BTreeSet};

/// Modules by their path, each with those that it imports from.
type Graph = BTreeMap<String, BTreeSet<String>>;

/// Each circle of files is a problem, told with the imports that make it.
pub(super) fn circles(one: &Crate) -> Vec<Problem> {
    let graph = graph(one);
    let problem = |circle: Vec<String>| {
        let imports = circle.iter().map(|module| {
            let others = graph[module].iter().filter(|other| circle.contains(other));
            let others: Vec<_> = others.map(String::as_str).collect();
            format!("{module} imports {}", others.join(", "))
        });
        let imports: Vec<_> = imports.collect();
        Problem::new(&one.folder, format!("a circle of files: {}", imports.join("; ")))
    };
    circles_in(&graph).into_iter().map(problem).collect()
}

/// The circles but for those of a file with the files in its own folder: a file may use its parts,
/// and they its types.
fn circles_in(graph: &Graph) -> Vec<Vec<String>> {
    let mut circles = Vec::new();
    for group in strongly_connected(graph) {
        let is_head =
            |one: &&String| group.iter().all(|other| *one == other || is_below(other, one));
        let Some(head) = group.iter().find(is_head) else {
            circles.push(group);
            continue;
        };
        let inside = |module: &String| {
            let imports = graph[module].iter().filter(|other| group.contains(other));
            (module.clone(), imports.filter(|_| module != head).cloned().collect())
        };
        circles.extend(circles_in(&group.iter().map(inside).collect()));
    }
    circles
}

fn is_below(module: &str, other: &str) -> bool {
    module.strip_prefix(other).is_some_and(|rest| rest.starts_with("::"))
}

/// Modules say `//! Floor 2.` at their beginning; one may import from its own floor and from those
/// below. Where one module of a crate has a floor, all have.
pub(super) fn upward_imports(one: &Crate) -> Vec<Problem> {
    let floors: BTreeMap<String, (Option<u32>, &SourceFile)> =
        one.modules().map(|(module, file)| (module, (floor(&file.text), file))).collect();
    if floors.values().all(|(floor, _)| floor.is_none()) {
        return Vec::new();
    }
    let mut problems = Vec::new();
    for (module, mut imports) in graph(one) {
        imports.retain(|import| !is_below(import, &module));
        let (Some(from), file) = floors[&module] else {
            // A folder's own file may only name its modules.
            if !imports.is_empty() {
                problems.push(Problem::new(&floors[&module].1.path, "has no `//! Floor N.`"));
            }
            continue;
        };
        for import in imports {
            if let Some(to) = floors[&import].0.filter(|to| *to > from) {
                let what = format!("on floor {from}, imports {import}, which is on floor {to}");
                problems.push(Problem::new(&file.path, what));
            }
        }
    }
    problems
}

fn floor(text: &str) -> Option<u32> {
    let rest = text.lines().next()?.strip_prefix("//! Floor ")?;
    rest.split('.').next()?.parse().ok()
}

/// Who imports from whom. A name that a file re-exports counts as one of the module that it comes
/// from. A file is the face of the modules in its folder, so a name that it only re-exports from
/// them is no import.
fn graph(one: &Crate) -> Graph {
    let files: BTreeMap<String, &SourceFile> = one.modules().collect();
    let exports: BTreeMap<&str, BTreeMap<String, Vec<String>>> =
        files.iter().map(|(module, file)| (module.as_str(), reexports(module, file))).collect();
    let mut graph = Graph::new();
    for (module, file) in &files {
        let mut imports = BTreeSet::new();
        for (path, is_public) in paths(module, &file.shipped) {
            let Some(target) = resolve(&path, &files, &exports) else { continue };
            let name = path.last().filter(|_| path.join("::") != target);
            let is_used = name.is_some_and(|name| whole_words(&file.shipped, name).count() > 1);
            let is_face = is_public && is_below(&target, module) && !is_used;
            if target != *module && !target.is_empty() && !is_face {
                imports.insert(target);
            }
        }
        // The root names what is public; nobody imports from it but through that.
        if !module.is_empty() {
            graph.insert(module.clone(), imports);
        }
    }
    graph
}

/// The module that a path leads to, through what others re-export.
fn resolve(
    path: &[String],
    files: &BTreeMap<String, &SourceFile>,
    exports: &BTreeMap<&str, BTreeMap<String, Vec<String>>>,
) -> Option<String> {
    let mut path = path.to_vec();
    // A re-export leads to another module; a circle of them would not compile.
    for _ in 0..16 {
        let known =
            (0..=path.len()).rev().find(|count| files.contains_key(&path[..*count].join("::")))?;
        let module = path[..known].join("::");
        let onward = path.get(known).and_then(|name| exports.get(module.as_str())?.get(name));
        match onward {
            Some(onward) => path = onward.iter().chain(&path[known + 1..]).cloned().collect(),
            None => return Some(module),
        }
    }
    None
}

/// The names that a file re-exports, with the whole path of each.
fn reexports(module: &str, file: &SourceFile) -> BTreeMap<String, Vec<String>> {
    let mut names = BTreeMap::new();
    for (path, is_public) in paths(module, &file.shipped) {
        if let Some(name) = path.last().filter(|_| is_public) {
            names.insert(name.clone(), path.clone());
        }
    }
    names
}

/// All paths into the crate that a file names, from the crate's root on, and whether it makes them
/// public.
fn paths(module: &str, code: &str) -> Vec<(Vec<String>, bool)> {
    let here: Vec<String> =
        module.split("::").filter(|part| !part.is_empty()).map(Into::into).collect();
    let children: BTreeSet<&str> = declared(code);
    let mut found = Vec::new();
    let mut rest = code;
    let mut others = String::new();
    while let Some(at) = rest.find("use ") {
        let is_whole = !rest[..at].ends_with(|char: char| char.is_alphanumeric() || char == '_');
        let Some(end) = rest[at..].find(';').filter(|_| is_whole) else {
            others.push_str(&rest[..at + 4]);
            rest = &rest[at + 4..];
            continue;
        };
        let before = rest[..at].trim_end();
        let is_public = before.ends_with("pub")
            || before.ends_with("pub(crate)")
            || before.ends_with("pub(super)");
        let tree: String = rest[at + 4..at + end].split_whitespace().collect::<Vec<_>>().join(" ");
        for leaf in leaves(&tree) {
            found.extend(absolute(&leaf, &here, &children).map(|path| (path, is_public)));
        }
        others.push_str(&rest[..at]);
        rest = &rest[at + end..];
    }
    others.push_str(rest);
    // Paths within the code.
    for word in others.split(|char: char| !(char.is_alphanumeric() || char == '_' || char == ':')) {
        if word.starts_with("crate::") || word.starts_with("super::") || word.starts_with("self::")
        {
            found.extend(absolute(word, &here, &children).map(|path| (path, false)));
        } else if let Some((first, _)) =
            word.split_once("::").filter(|(first, _)| children.contains(first))
        {
            let path = here.iter().cloned().chain([first.to_owned()]).collect();
            found.push((path, false));
        }
    }
    found
}

/// The modules that a file declares.
fn declared(code: &str) -> BTreeSet<&str> {
    let modules = code.lines().filter_map(|line| {
        let line = line.trim();
        let line =
            line.strip_prefix("pub ").or_else(|| line.strip_prefix("pub(crate) ")).unwrap_or(line);
        line.strip_prefix("mod ")?.strip_suffix(';')
    });
    modules.collect()
}

/// A path from the crate's root, `None` if it leads out of the crate.
fn absolute(path: &str, here: &[String], children: &BTreeSet<&str>) -> Option<Vec<String>> {
    let path = path.split(" as ").next().unwrap_or_default();
    let parts: Vec<&str> =
        path.split("::").map(str::trim).filter(|part| !part.is_empty()).collect();
    let (base, mut left) = match *parts.first()? {
        "crate" => (&here[..0], &parts[1..]),
        "self" => (here, &parts[1..]),
        "super" => (here.split_last().map_or(here, |(_, above)| above), &parts[1..]),
        child if children.contains(child) => (here, &parts[..]),
        _ => return None,
    };
    let mut base = base;
    while left.first() == Some(&"super") {
        base = base.split_last().map_or(base, |(_, above)| above);
        left = &left[1..];
    }
    let left = left.iter().filter(|part| **part != "self" && **part != "*");
    Some(base.iter().cloned().chain(left.map(|part| (*part).to_owned())).collect())
}

/// `a::{b, c::{d}}` as `a::b` and `a::c::d`.
fn leaves(tree: &str) -> Vec<String> {
    let Some((prefix, rest)) = tree.split_once('{') else { return vec![tree.trim().to_owned()] };
    let inside = rest.rsplit_once('}').map_or(rest, |(inside, _)| inside);
    let (mut depth, mut start) = (0, 0);
    let mut parts = Vec::new();
    for (at, char) in inside.char_indices() {
        match char {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(&inside[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&inside[start..]);
    let parts = parts.into_iter().filter(|part| !part.trim().is_empty());
    parts.flat_map(leaves).map(|leaf| format!("{}{leaf}", prefix.trim())).collect()
}

/// Tarjan's algorithm: the groups of more than one node that all reach each other.
fn strongly_connected(graph: &Graph) -> Vec<Vec<String>> {
    #[derive(Default)]
    struct Walk<'a> {
        index: BTreeMap<&'a str, usize>,
        low: BTreeMap<&'a str, usize>,
        stack: Vec<&'a str>,
        groups: Vec<Vec<String>>,
    }
    fn visit<'a>(node: &'a str, graph: &'a Graph, walk: &mut Walk<'a>) {
        let number = walk.index.len();
        walk.index.insert(node, number);
        walk.low.insert(node, number);
        walk.stack.push(node);
        for next in &graph[node] {
            if !walk.index.contains_key(next.as_str()) {
                visit(next, graph, walk);
                let low = walk.low[next.as_str()].min(walk.low[node]);
                walk.low.insert(node, low);
            } else if walk.stack.contains(&next.as_str()) {
                let low = walk.index[next.as_str()].min(walk.low[node]);
                walk.low.insert(node, low);
            }
        }
        if walk.low[node] == number {
            let from = walk.stack.iter().position(|on| *on == node).expect("it is on the stack");
            let mut group: Vec<_> = walk.stack.drain(from..).map(str::to_owned).collect();
            group.sort();
            if group.len() > 1 {
                walk.groups.push(group);
            }
        }
    }
    let mut walk = Walk::default();
    for node in graph.keys() {
        if !walk.index.contains_key(node.as_str()) {
            visit(node, graph, &mut walk);
        }
    }
    walk.groups
}
