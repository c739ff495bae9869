//! The schemas of results in the published OpenRPC document, by which the answers of the tests here
//! are checked.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::LazyLock;

use regex::Regex;
use serde_json::{Map, Value};

/// The schemas of the results of all methods.
pub(crate) struct Schemas {
    results: BTreeMap<String, Value>,
    patterns: BTreeMap<String, Regex>,
    exceptions: Vec<Exception>,
}

/// A line of `schemas.txt`: results that do not fit the schema of their method, and are right.
struct Exception {
    /// A method, or the beginning of the names of several with `*`.
    method: String,
    /// How what is said of them begins: each of these is an exception.
    faults: Vec<String>,
    /// Such a result.
    result: Value,
}

impl Exception {
    fn all() -> Vec<Self> {
        let lines = include_str!("schemas.txt").lines().filter(|line| !line.starts_with('#'));
        let read = |line: &str| {
            let parts: Vec<_> = line.split(" | ").map(str::to_owned).collect();
            let [method, faults, _, result] = <[String; 4]>::try_from(parts).expect("four parts");
            let faults = faults.split(", ").map(str::to_owned).collect();
            Self { method, faults, result: serde_json::from_str(&result).expect("JSON") }
        };
        lines.map(read).collect()
    }

    fn is_of(&self, method: &str) -> bool {
        match self.method.strip_suffix('*') {
            Some(beginning) => method.starts_with(beginning),
            None => method == self.method,
        }
    }

    fn has(&self, fault: &Fault) -> bool {
        let words = fault.of_any_item();
        self.faults.iter().any(|beginning| words.starts_with(beginning))
    }
}

/// Why a value does not fit, and where.
struct Fault {
    place: String,
    words: String,
}

impl Fault {
    /// The same words for all items of a list.
    fn of_any_item(&self) -> String {
        let parts = self.place.split('/').map(|part| match part.parse::<usize>() {
            Ok(_) => "*",
            Err(_) => part,
        });
        format!("{}: {}", parts.collect::<Vec<_>>().join("/"), self.words)
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.words)
    }
}

/// Those of the published document.
pub(crate) fn schemas() -> &'static Schemas {
    static READ: LazyLock<Schemas> = LazyLock::new(|| {
        let results = include_str!("../../../../vectors/openrpc/results.json");
        Schemas::new(serde_json::from_str(results).expect("JSON"), Exception::all())
    });
    &READ
}

/// A result fits the schema of its method, if that has one.
#[track_caller]
pub(crate) fn check(method: &str, result: &Value) {
    if let Some(fault) = schemas().fault(method, result) {
        let text: String = result.to_string().chars().take(2_000).collect();
        panic!("{method}: {fault}, by its schema in the OpenRPC document: {text}");
    }
}

impl Schemas {
    fn new(results: BTreeMap<String, Value>, exceptions: Vec<Exception>) -> Self {
        let mut patterns = BTreeMap::new();
        results.values().for_each(|schema| compile(schema, &mut patterns));
        Self { results, patterns, exceptions }
    }

    /// Where a result first does not fit the schema of its method, but for exceptions.
    pub(crate) fn fault(&self, method: &str, result: &Value) -> Option<String> {
        let faults = self.faults(self.results.get(method)?, result, "");
        let is_known =
            |fault: &Fault| self.exceptions.iter().any(|it| it.is_of(method) && it.has(fault));
        faults.into_iter().find(|fault| !is_known(fault)).map(|fault| fault.to_string())
    }

    /// Whether the document has the method.
    pub(crate) fn has(&self, method: &str) -> bool {
        self.results.contains_key(method)
    }

    /// All places at which a value does not fit a schema. `at` is the value's place.
    fn faults(&self, schema: &Value, value: &Value, at: &str) -> Vec<Fault> {
        let fault = |words: String| vec![Fault { place: at.to_owned(), words }];
        let schema = match schema {
            Value::Bool(true) => return vec![],
            Value::Bool(false) => return fault(format!("{} is too much", short(value))),
            schema => schema.as_object().expect("a schema is an object or a boolean"),
        };
        let by_keyword = schema.iter().flat_map(|(keyword, of)| {
            let is_wrong = match keyword.as_str() {
                "type" => !is_of_type(of, value),
                "const" => of != value,
                "enum" => !list(of).contains(value),
                "pattern" => value.as_str().is_some_and(|text| !self.fits(of, text)),
                "minimum" => value.as_f64().is_some_and(|number| number < as_number(of)),
                "maximum" => value.as_f64().is_some_and(|number| number > as_number(of)),
                _ => return self.faults_below(keyword, schema, value, at),
            };
            match is_wrong {
                true => fault(format!("{} is not of {keyword} {of}", short(value))),
                false => vec![],
            }
        });
        by_keyword.collect()
    }

    /// Faults by a keyword whose argument has schemas, or that looks at members.
    fn faults_below(
        &self,
        keyword: &str,
        schema: &Map<String, Value>,
        value: &Value,
        at: &str,
    ) -> Vec<Fault> {
        let of = &schema[keyword];
        match keyword {
            "required" => {
                let Some(members) = value.as_object() else { return vec![] };
                let names = list(of).iter().map(|name| name.as_str().expect("a name"));
                let missing = names.filter(|name| !members.contains_key(*name));
                let fault = |name| Fault { place: format!("{at}/{name}"), words: "missing".into() };
                missing.map(fault).collect()
            }
            "properties" | "additionalProperties" => self.members(keyword, schema, value, at),
            "items" => {
                let items = value.as_array().into_iter().flatten().enumerate();
                items.flat_map(|(n, item)| self.faults(of, item, &format!("{at}/{n}"))).collect()
            }
            "allOf" => list(of).iter().flat_map(|one| self.faults(one, value, at)).collect(),
            "anyOf" | "oneOf" => self.alternatives(keyword, list(of), value, at),
            _ => panic!("{at}: the checker does not know the keyword {keyword}"),
        }
    }

    fn fits(&self, pattern: &Value, text: &str) -> bool {
        self.patterns[pattern.as_str().expect("a pattern")].is_match(text)
    }

    /// Faults of members by their schemas, or of those that no schema names.
    fn members(
        &self,
        keyword: &str,
        schema: &Map<String, Value>,
        value: &Value,
        at: &str,
    ) -> Vec<Fault> {
        let named = schema.get("properties");
        let of_member = |(name, value): (&String, &Value)| {
            let named = named.and_then(|named| named.get(name));
            let of = match (keyword, named) {
                ("properties", of) => of,
                (_, None) => schema.get(keyword),
                (_, Some(_)) => None,
            };
            of.map_or(vec![], |of| self.faults(of, value, &format!("{at}/{name}")))
        };
        value.as_object().into_iter().flatten().flat_map(of_member).collect()
    }

    /// The faults of the alternative that fits best: they lie deepest, and are the fewest there.
    fn alternatives(&self, keyword: &str, all: &[Value], value: &Value, at: &str) -> Vec<Fault> {
        let faults: Vec<_> = all.iter().map(|one| self.faults(one, value, at)).collect();
        match faults.iter().filter(|faults| faults.is_empty()).count() {
            0 => {
                let depth = |fault: &Fault| fault.place.split('/').count();
                let quality = |faults: &Vec<Fault>| {
                    let depth = faults.iter().map(depth).max();
                    (depth, std::cmp::Reverse(faults.len()))
                };
                faults.into_iter().max_by_key(quality).expect("there are alternatives")
            }
            count if count > 1 && keyword == "oneOf" => {
                let words = format!("{} fits {count} of {} schemas", short(value), all.len());
                vec![Fault { place: at.to_owned(), words }]
            }
            _ => vec![],
        }
    }
}

/// Compiles all patterns in a schema.
fn compile(schema: &Value, patterns: &mut BTreeMap<String, Regex>) {
    match schema {
        Value::Object(members) => {
            if let Some(pattern) = members.get("pattern").and_then(Value::as_str) {
                let compile = || Regex::new(pattern).expect("a regular expression");
                patterns.entry(pattern.to_owned()).or_insert_with(compile);
            }
            members.values().for_each(|inner| compile(inner, patterns));
        }
        Value::Array(items) => items.iter().for_each(|inner| compile(inner, patterns)),
        _ => {}
    }
}

fn list(value: &Value) -> &[Value] {
    value.as_array().expect("a list")
}

fn as_number(value: &Value) -> f64 {
    value.as_f64().expect("a number")
}

/// Whether a value is of a type, or of one of several.
fn is_of_type(of: &Value, value: &Value) -> bool {
    if let Some(types) = of.as_array() {
        return types.iter().any(|one| is_of_type(one, value));
    }
    match of.as_str().expect("the name of a type") {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "string" => value.is_string(),
        "number" => value.is_number(),
        "integer" => value.as_f64().is_some_and(|number| number.fract() == 0.0),
        "array" => value.is_array(),
        "object" => value.is_object(),
        other => panic!("there is no type {other}"),
    }
}

fn short(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(80) {
        Some((end, _)) => format!("{}..", &text[..end]),
        None => text,
    }
}

mod tests {
    use super::*;
    use serde_json::json;

    #[track_caller]
    fn check(schema: Value, value: Value, expected: Option<&str>) {
        let schemas = Schemas::new(BTreeMap::from([("m".to_owned(), schema)]), vec![]);
        assert_eq!(schemas.fault("m", &value).as_deref(), expected, "{value}");
    }

    #[test]
    fn each_keyword_refuses_what_does_not_fit() {
        check(json!({"type": "string"}), json!("a"), None);
        check(json!({"type": "string"}), json!(1), Some(": 1 is not of type \"string\""));
        check(json!({"type": ["string", "null"]}), Value::Null, None);
        check(json!({"type": "integer"}), json!(1.0), None);
        check(json!({"type": "integer"}), json!(1.5), Some(": 1.5 is not of type \"integer\""));
        check(json!({"minimum": 3}), json!(2), Some(": 2 is not of minimum 3"));
        check(json!({"maximum": 3}), json!(4), Some(": 4 is not of maximum 3"));
        check(json!({"minimum": 3, "maximum": 3}), json!(3), None);
        check(json!({"maximum": 3}), json!("4"), None);
        check(json!({"const": 3}), json!(4), Some(": 4 is not of const 3"));
        check(json!({"enum": ["a", "b"]}), json!("b"), None);
        check(
            json!({"enum": ["a", "b"]}),
            json!("c"),
            Some(": \"c\" is not of enum [\"a\",\"b\"]"),
        );
        let hex = json!({"pattern": "^0x[0-9a-f]+$"});
        check(hex.clone(), json!("0xa"), None);
        check(hex.clone(), json!(1), None);
        check(hex, json!("0xA"), Some(": \"0xA\" is not of pattern \"^0x[0-9a-f]+$\""));
        let nulls = json!({"items": {"type": "null"}});
        check(nulls.clone(), json!([null]), None);
        check(nulls, json!([null, 1]), Some("/1: 1 is not of type \"null\""));
        check(json!({"required": ["a"]}), json!({"a": null}), None);
        check(json!({"required": ["a"]}), json!({"b": 1}), Some("/a: missing"));
        let both = json!({"allOf": [{"type": "string"}, {"const": "a"}]});
        check(both, json!("b"), Some(": \"b\" is not of const \"a\""));
        check(json!({"anyOf": [{"const": 1}, {"type": "integer"}]}), json!(1), None);
        let one = json!({"oneOf": [{"const": 1}, {"type": "integer"}]});
        check(one.clone(), json!(2), None);
        check(one, json!(1), Some(": 1 fits 2 of 2 schemas"));
        check(json!(false), json!(1), Some(": 1 is too much"));
        check(json!(true), json!(1), None);
    }

    #[test]
    fn members_are_known_or_refused_and_the_best_alternative_is_told() {
        let closed =
            json!({"properties": {"a": {"type": "string"}}, "additionalProperties": false});
        check(closed.clone(), json!({"a": "x"}), None);
        check(closed.clone(), json!({"a": 1}), Some("/a: 1 is not of type \"string\""));
        check(closed.clone(), json!({"b": 1}), Some("/b: 1 is too much"));
        let map = json!({"additionalProperties": closed});
        check(map, json!({"x": {"a": 1}}), Some("/x/a: 1 is not of type \"string\""));
        let deep = json!({"properties": {"a": {"properties": {"b": {"const": 1}}}}});
        let either = json!({"anyOf": [{"type": "null"}, deep]});
        check(either, json!({"a": {"b": 2}}), Some("/a/b: 2 is not of const 1"));
    }

    #[test]
    fn an_exception_hides_no_other_fault() {
        let text = json!({"type": "string"});
        let list = json!({"items": {"properties": {"a": text, "b": text}}});
        let exception = Exception {
            method: "m_*".into(),
            faults: vec!["/*/a: null".into()],
            result: Value::Null,
        };
        let results = ["m_one", "n_one"].map(|name| (name.to_owned(), list.clone()));
        let schemas = Schemas::new(results.into(), vec![exception]);
        assert_eq!(schemas.fault("m_one", &json!([{"a": null}, {"a": null}])), None);
        assert!(schemas.fault("n_one", &json!([{"a": null}])).is_some());
        assert!(schemas.fault("m_one", &json!([{"a": 1}])).is_some());
        assert!(schemas.fault("m_one", &json!([{"a": null, "b": null}])).is_some());
    }

    #[test]
    fn a_changed_answer_does_not_fit() {
        let schemas = schemas();
        let of_block = |it: &&Exception| it.method == "eth_getBlockByNumber";
        let block = &schemas.exceptions.iter().find(of_block).expect("a block").result;
        let fault = |block: &Value| schemas.fault("eth_getBlockByNumber", block);
        assert_eq!(fault(block), None);
        for name in block.as_object().expect("an object").keys() {
            for wrong in [json!({}), json!(1), json!("0x0g")] {
                let mut changed = block.clone();
                changed[name] = wrong.clone();
                assert!(fault(&changed).is_some(), "{name}: {wrong}");
            }
        }
        for name in ["number", "parentHash", "transactions", "stateRoot"] {
            let mut changed = block.clone();
            changed.as_object_mut().expect("an object").remove(name);
            assert_eq!(fault(&changed), Some(format!("/{name}: missing")));
        }
    }

    #[test]
    fn each_exception_is_one_of_the_document() {
        let schemas = schemas();
        for exception in &schemas.exceptions {
            let result = &exception.result;
            let mut methods = schemas.results.iter().filter(|(method, _)| exception.is_of(method));
            let needs_all = |(method, schema): (&String, &Value)| {
                let faults = schemas.faults(schema, result, "");
                let is_needed = |beginning: &String| {
                    faults.iter().any(|fault| fault.of_any_item().starts_with(beginning))
                };
                exception.faults.iter().all(is_needed) && schemas.fault(method, result).is_none()
            };
            assert!(methods.any(needs_all), "{}: {:?}", exception.method, exception.faults);
        }
    }

    #[test]
    #[should_panic(expected = "the checker does not know the keyword")]
    fn a_keyword_that_is_not_known_is_no_silent_success() {
        check(json!({"multipleOf": 2}), json!(1), None);
    }

    #[test]
    fn a_method_without_a_schema_has_none() {
        let schemas = Schemas::new(BTreeMap::new(), vec![]);
        assert!(!schemas.has("m") && schemas.fault("m", &json!(1)).is_none());
    }
}
