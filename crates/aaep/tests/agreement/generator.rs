//! Makes documents by walking our own schemas. Never decides whether one is valid.
//!
//! A document starts out as what the schema describes, at its bounds too, and is then changed in up
//! to three ways (see `mutation`). The same seed and number make the same document.

use std::collections::HashSet;

use aaep::{CORE_CONTEXT, PUBLISHED, SchemaFile, extension};
use serde_json::{Map, Value as Json, json};

use crate::rng::Rng;
use crate::samples::Pools;
use crate::{mutation, probe};

/// A kind of message, with all of its schema in one piece.
#[derive(Debug)]
pub(crate) struct Target {
    pub(crate) name: String,
    /// The path of the schema that the message has to meet.
    path: String,
    whole: Json,
    is_event: bool,
    /// The fields that another target is there to probe.
    inherited: Vec<String>,
}

/// One document, and what it was meant to be.
#[derive(Debug, Clone)]
pub(crate) struct Case {
    pub(crate) target: String,
    /// The schema that counts while the document does not say itself what it is.
    pub(crate) path: String,
    pub(crate) document: Json,
    pub(crate) spelling: Spelling,
}

/// How a document is written down.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Spelling {
    Plain,
    /// With one of its fields written twice.
    RepeatedKey,
    /// With 1000.0 written as 1e3.
    Exponents,
}

impl Case {
    /// The document as text.
    pub(crate) fn text(&self) -> String {
        let text = self.document.to_string();
        match self.spelling {
            Spelling::Plain => text,
            Spelling::Exponents => text.replace(":1000.0", ":1e3"),
            Spelling::RepeatedKey => {
                match self.document.as_object().and_then(|fields| fields.iter().next()) {
                    Some((key, value)) => {
                        format!("{{{}:{value},{}", Json::from(key.as_str()), &text[1..])
                    }
                    None => text,
                }
            }
        }
    }
}

/// Makes cases.
#[derive(Debug)]
pub(crate) struct Generator {
    targets: Vec<Target>,
    pools: Pools,
}

/// The name of the target that is an event with data of our own extension.
const DELIVERY: &str = "agentvoice on an event";

impl Generator {
    pub(crate) fn new(files: &[SchemaFile]) -> Self {
        let schema_of = |wanted: &str| {
            &files.iter().find(|file| file.path.starts_with(wanted)).expect(wanted).schema
        };
        let mut envelope = schema_of("envelope").clone();
        let mut delivery = schema_of("extensions/").clone();
        for keyword in ["$schema", "$id", "title"] {
            delivery.as_object_mut().expect("a schema").remove(keyword);
        }
        envelope["properties"]["extensions"]["properties"] = json!({ extension::PREFIX: delivery });
        let mut targets = Vec::new();
        for file in files.iter().filter(|file| !file.path.starts_with("extensions/")) {
            let is_core = file.path.starts_with("core/");
            let is_envelope = file.path.starts_with("envelope");
            let whole = match (is_core, is_envelope) {
                (true, _) => with_envelope(&file.schema, &envelope),
                (_, true) => envelope.clone(),
                _ => file.schema.clone(),
            };
            let own = file.schema["properties"].as_object().expect("properties");
            let all = whole["properties"].as_object().expect("properties");
            let inherited = all.keys().filter(|key| !own.contains_key(*key)).cloned().collect();
            targets.push(Target {
                name: file.path.clone(),
                path: file.path.clone(),
                whole,
                is_event: is_core || is_envelope,
                inherited,
            });
        }
        let core = targets.iter().find(|target| target.path.starts_with("core/")).expect("core");
        targets.push(Target {
            name: DELIVERY.to_owned(),
            path: core.path.clone(),
            whole: core.whole.clone(),
            is_event: true,
            inherited: core.whole["properties"]
                .as_object()
                .into_iter()
                .flat_map(|fields| fields.keys().filter(|key| *key != "extensions").cloned())
                .collect(),
        });
        Generator { targets, pools: Pools::gather(files) }
    }

    /// All that the schema at this path says, in one piece.
    pub(crate) fn whole(&self, path: &str) -> &Json {
        let target = self.targets.iter().find(|target| target.path == path).expect(path);
        &target.whole
    }

    /// Documents with everything in them, changed in one place in every way that its schema gives
    /// cause to. They find what chance misses; chance finds what takes several changes.
    pub(crate) fn probes(&self) -> Vec<Case> {
        let mut rng = Rng::for_case(0, 0);
        let mut cases = Vec::new();
        let mut seen = HashSet::new();
        for target in &self.targets {
            let has_delivery = target.name == DELIVERY;
            let mut maker =
                Maker { pools: &self.pools, rng: &mut rng, fullness: 100, has_delivery };
            let mut document = maker.value(&target.whole);
            if target.is_event {
                settle(&mut document, maker.rng);
            }
            for changed in
                probe::changes(&document, &target.whole, &mut maker, (&target.inherited, &mut seen))
            {
                cases.push(Case {
                    target: target.name.clone(),
                    path: target.path.clone(),
                    document: changed,
                    spelling: Spelling::Plain,
                });
            }
        }
        cases
    }

    /// The case of this number.
    pub(crate) fn case(&self, seed: u64, number: u64) -> Case {
        let mut rng = Rng::for_case(seed, number);
        let turn = usize::try_from(number).expect("few cases") % self.targets.len();
        let named = &self.targets[turn];
        let has_delivery = named.name == DELIVERY;
        let target = if has_delivery {
            let events: Vec<_> = self.targets.iter().filter(|target| target.is_event).collect();
            *rng.pick(&events)
        } else {
            named
        };
        let fullness = *rng.pick(&[0, 15, 30, 60, 95]);
        let mut maker = Maker { pools: &self.pools, rng: &mut rng, fullness, has_delivery };
        let mut document = maker.value(&target.whole);
        if target.path.starts_with("envelope") {
            maker.add_free_payload(&mut document);
        }
        if target.is_event && maker.rng.chance(88) {
            settle(&mut document, maker.rng);
        }
        let spelling = match rng.below(40) {
            0 => Spelling::RepeatedKey,
            1 | 2 => Spelling::Exponents,
            _ => Spelling::Plain,
        };
        let mutations = *rng.pick(&[0, 0, 0, 0, 1, 1, 1, 2, 2, 3]);
        for _ in 0..mutations {
            mutation::mutate(&mut document, &target.whole, &self.pools, &mut rng);
        }
        Case { target: named.name.clone(), path: target.path.clone(), document, spelling }
    }
}

/// The schema of a core event with the fields of the envelope, as `$ref` means it.
fn with_envelope(event: &Json, envelope: &Json) -> Json {
    let mut whole = event.clone();
    let mut properties = envelope["properties"].as_object().expect("properties").clone();
    properties.extend(event["properties"].as_object().expect("properties").clone());
    whole["properties"] = properties.into();
    let mut required = envelope["required"].as_array().expect("required").clone();
    required.extend(event["required"].as_array().expect("required").iter().cloned());
    whole["required"] = required.into();
    whole
}

/// Makes the parts of an event fit together, as a schema does not say how: declared prefixes, a
/// published version, a safe default, choices to choose from.
fn settle(document: &mut Json, rng: &mut Rng) {
    let of_type = document["type"].as_str().filter(|name| !name.starts_with("aaep:"));
    let mut used: Vec<String> = of_type
        .filter(|name| !name.starts_with(aaep::CORE_TYPES))
        .into_iter()
        .map(str::to_owned)
        .collect();
    used.extend(
        document["extensions"].as_object().into_iter().flatten().map(|field| field.0.clone()),
    );
    if !used.is_empty() {
        let uris = used.iter().enumerate().map(|(index, prefix)| {
            if prefix == extension::PREFIX {
                extension::CONTEXT.to_owned()
            } else {
                format!("https://example.org/vocabulary/{index}")
            }
        });
        document["@context"] =
            std::iter::once(CORE_CONTEXT.to_owned()).chain(uris).collect::<Vec<_>>().into();
    }
    if document.get("aaep_version").is_some() {
        document["aaep_version"] = (*rng.pick(PUBLISHED)).into();
    }
    if document.get("default_decision").is_some() {
        document["default_decision"] = "reject".into();
    }
    if document.get("choices").is_none()
        && let Some(fields) = document.as_object_mut()
    {
        fields.remove("accepted_response_kinds");
    }
}

/// Makes values that a schema describes.
pub(crate) struct Maker<'g> {
    pub(crate) pools: &'g Pools,
    pub(crate) rng: &'g mut Rng,
    /// How many of a hundred optional fields are there.
    pub(crate) fullness: usize,
    pub(crate) has_delivery: bool,
}

impl Maker<'_> {
    /// A value that meets the schema, as far as keywords beside type and bounds allow.
    ///
    /// # Panics
    /// If the schema says something that nobody taught the generator.
    pub(crate) fn value(&mut self, schema: &Json) -> Json {
        if let Some(value) = schema.get("const") {
            return value.clone();
        }
        if let Some(values) = schema.get("enum").and_then(Json::as_array) {
            return self.rng.pick(values).clone();
        }
        if let Some(branches) = schema.get("oneOf").and_then(Json::as_array) {
            let richest = branches.iter().find(|branch| branch.get("maxLength").is_some());
            let branch = match richest.or(branches.last()) {
                Some(branch) if self.is_full() => branch,
                _ => self.rng.pick(branches),
            };
            return self.value(branch);
        }
        match schema["type"].as_str() {
            Some("object") => self.object(schema),
            Some("array") => self.array(schema),
            Some("string") => self.string(schema).into(),
            Some("integer") => self.integer(schema),
            Some("number") => self.number(schema),
            Some("boolean") => self.rng.chance(50).into(),
            _ => panic!("teach the generator about {schema}"),
        }
    }

    /// Whether everything should be there that can be, for probing.
    fn is_full(&self) -> bool {
        self.fullness == 100
    }

    fn object(&mut self, schema: &Json) -> Json {
        let declared = schema.get("properties").and_then(Json::as_object);
        let names = schema.get("propertyNames");
        let data = schema.get("additionalProperties").filter(|data| data.is_object());
        if declared.is_none() && names.is_none() {
            return self.free_object();
        }
        let required: Vec<&str> =
            schema["required"].as_array().into_iter().flatten().filter_map(Json::as_str).collect();
        let mut object = Map::new();
        for (key, field) in declared.into_iter().flatten() {
            let percent = match key.as_str() {
                key if required.contains(&key) => 100,
                extension::PREFIX => {
                    if self.has_delivery {
                        100
                    } else {
                        4
                    }
                }
                "extensions" if self.has_delivery => 100,
                _ => self.fullness,
            };
            if self.rng.chance(percent) {
                object.insert(key.clone(), self.value(field));
            }
        }
        let others =
            if names.is_some() { self.rng.below(3) } else { usize::from(self.rng.chance(15)) };
        for _ in 0..others {
            if let Some(data) = data {
                let name = self.rng.pick(&self.pools.prefixes().usual).clone();
                object.insert(name, self.value(data));
            }
        }
        if !self.is_full()
            && self.rng.chance(25)
            && let Some((key, field)) = self.variant(schema)
        {
            object.insert(key, field);
        }
        object.into()
    }

    /// The text of a field in another language, for a schema that has such fields.
    pub(crate) fn variant(&mut self, schema: &Json) -> Option<(String, Json)> {
        let patterns: Vec<_> = schema.get("patternProperties")?.as_object()?.iter().collect();
        let (pattern, field) = *self.rng.pick(&patterns);
        let word = word_of(pattern)?;
        let tag = self.rng.pick(&["yo", "zh_Hans", "zh-Hans", "de_1996", "x_home", "pt-BR"]);
        Some((format!("{word}_{tag}"), self.value(field)))
    }

    fn array(&mut self, schema: &Json) -> Json {
        let bound = |keyword: &str| schema.get(keyword).and_then(Json::as_u64);
        let (min, max) = (bound("minItems").unwrap_or(0), bound("maxItems"));
        let length = match (self.rng.below(12), max) {
            _ if self.is_full() => {
                let listed = schema.pointer("/items/enum").and_then(Json::as_array);
                let all = listed.map_or(1, Vec::len).try_into().expect("a short list");
                return self.items(schema, min.max(all)).into();
            }
            (0 | 1, _) => min,
            (2, Some(max)) => return self.items(schema, max).into(),
            (_, max) => (min + self.rng.next() % 4).min(max.unwrap_or(u64::MAX)),
        };
        let length = usize::try_from(length).expect("a short list");
        let mut items: Vec<Json> = schema["prefixItems"]
            .as_array()
            .into_iter()
            .flatten()
            .map(|item| self.value(item))
            .collect();
        // Short lists of few values run out of new ones: then the list stays shorter.
        for _ in 0..length * 3 {
            if items.len() >= length {
                break;
            }
            let item = self.value(&schema["items"]);
            if schema["uniqueItems"] != true || !items.contains(&item) {
                items.push(item);
            }
        }
        items.into()
    }

    /// So many items, all different where the schema of the items allows.
    pub(crate) fn items(&mut self, schema: &Json, count: u64) -> Vec<Json> {
        let of_items = &schema["items"];
        let number = |at: u64| match (self.pools.of(of_items), of_items["type"].as_str()) {
            (Some(samples), _) => samples.numbered.map(|text| text(at).into()),
            (None, Some("integer")) => Some((at + 1).into()),
            (None, Some("object")) => Some(json!({ "value": format!("v{at}"), "label": "Tea" })),
            _ => {
                let listed = of_items["enum"].as_array();
                let known = listed.and_then(|list| list.get(usize::try_from(at).ok()?)).cloned();
                Some(known.unwrap_or_else(|| format!("item {at}").into()))
            }
        };
        let first = schema["prefixItems"].as_array().into_iter().flatten();
        let first: Vec<Json> = first.filter_map(|item| item.get("const")).cloned().collect();
        let count = usize::try_from(count).expect("a short list");
        first.into_iter().chain((0..).map_while(number)).take(count).collect()
    }

    fn string(&mut self, schema: &Json) -> String {
        if let Some(samples) = self.pools.of(schema) {
            return self.rng.pick(&samples.usual).clone();
        }
        let bound = |keyword: &str| schema.get(keyword).and_then(Json::as_u64);
        let min = bound("minLength").unwrap_or(0);
        let max = bound("maxLength").unwrap_or(u64::MAX);
        let is_costly = max > 2000;
        let length = match self.rng.below(if is_costly { 300 } else { 12 }) {
            _ if self.is_full() => min.max(3),
            0 if max < u64::MAX => max,
            1 | 2 => min,
            _ => (min + 1 + self.rng.next() % 24).min(max),
        };
        text_of(length, self.rng)
    }

    fn integer(&mut self, schema: &Json) -> Json {
        let min = schema["minimum"].as_u64().unwrap_or(0);
        let max = schema["maximum"].as_u64().unwrap_or(aaep::MAX_SAFE_INTEGER);
        let number = match self.rng.below(6) {
            0 => min,
            1 => max,
            2 => (min + 1).min(max),
            3 if (min..=max).contains(&1000) => return json!(1000.0),
            _ => min + self.rng.next() % (max - min + 1),
        };
        let as_float = number < 100_000 && self.rng.chance(10);
        if as_float {
            f64::from(u32::try_from(number).expect("small")).into()
        } else {
            number.into()
        }
    }

    fn number(&mut self, schema: &Json) -> Json {
        match (schema.get("minimum"), schema.get("maximum")) {
            (Some(min), Some(max)) => self
                .rng
                .pick(&[min.clone(), max.clone(), json!(0.5), json!(1), json!(1.0), json!(0.0)])
                .clone(),
            _ => self
                .rng
                .pick(&[json!(0), json!(-7), json!(3.25), json!(1000.0), json!(-0.0)])
                .clone(),
        }
    }

    fn free_object(&mut self) -> Json {
        const DATA: &[&str] = &[
            "{}",
            r#"{"room":7}"#,
            r#"{"söz":"😀","list":[1,"x",null,{"deep":[]}]}"#,
            r#"{"":0.5}"#,
        ];
        let data: &str = self.rng.pick::<&str>(DATA);
        serde_json::from_str(data).expect("JSON")
    }

    /// Fields that only an extension knows.
    fn add_free_payload(&mut self, document: &mut Json) {
        for name in ["room", "waiting_minutes", "notes"] {
            if self.rng.chance(40) {
                document[name] = self.free_object();
            }
        }
    }
}

/// The field whose variants a pattern of names describes.
pub(crate) fn word_of(pattern: &str) -> Option<&str> {
    Some(pattern.strip_prefix('^')?.split_once("_(?:")?.0)
}

/// A text of exactly so many code points, of one script or of several.
pub(crate) fn text_of(length: u64, rng: &mut Rng) -> String {
    const SHORT: &[char] =
        &['a', 'E', ' ', 'ẹ', 'ß', 'ع', '世', '😀', '\u{301}', '\u{200d}', '"', '\n'];
    let length = usize::try_from(length).expect("a length in memory");
    if length > 64 {
        return rng.pick(&['a', 'ẹ', '世', '😀']).to_string().repeat(length);
    }
    // It begins with something that can be seen.
    let first = |at| if at == 0 { &SHORT[..2] } else { SHORT };
    (0..length).map(|at| *rng.pick(first(at))).collect()
}
