//! Hand-written strings for every pattern and format of the schemas. Never decides what is valid.
//!
//! `usual` strings make a document that both sides should take; `tricky` ones lie at or beyond the
//! edge of the form, and it is up to the verdicts what they are.

use std::collections::HashMap;

use aaep::SchemaFile;
use serde_json::Value as Json;

/// Strings for one form.
#[derive(Debug)]
pub(crate) struct Samples {
    pub(crate) usual: Vec<String>,
    pub(crate) tricky: Vec<String>,
    /// As many different ones as a list can need, for forms that stand in lists.
    pub(crate) numbered: Option<fn(u64) -> String>,
}

/// The strings for all forms that the schemas have.
#[derive(Debug)]
pub(crate) struct Pools(HashMap<String, Samples>);

impl Pools {
    /// Gathers strings for every form in the schemas.
    ///
    /// # Panics
    /// If a schema has a form for which nobody wrote samples.
    pub(crate) fn gather(files: &[SchemaFile]) -> Self {
        let mut pools = HashMap::new();
        for file in files {
            gather_from(&file.schema, &mut pools);
        }
        Pools(pools)
    }

    /// The strings for the form that this schema demands, if it demands one.
    pub(crate) fn of(&self, schema: &Json) -> Option<&Samples> {
        self.0.get(&form_of(schema)?)
    }

    /// The strings for names of extensions.
    pub(crate) fn prefixes(&self) -> &Samples {
        let (_, samples) =
            self.0.iter().find(|(form, _)| form.starts_with("^(?!")).expect("prefixes have a form");
        samples
    }
}

/// What stands for the form of a string: its pattern, or else its format.
pub(crate) fn form_of(schema: &Json) -> Option<String> {
    let keyword = schema.get("pattern").or_else(|| schema.get("format"))?;
    keyword.as_str().map(str::to_owned)
}

fn gather_from(schema: &Json, pools: &mut HashMap<String, Samples>) {
    if let Some(form) = form_of(schema) {
        let samples = samples_for(&form);
        pools.entry(form).or_insert(samples);
    }
    match schema {
        Json::Object(members) => members.values().for_each(|member| gather_from(member, pools)),
        Json::Array(items) => items.iter().for_each(|item| gather_from(item, pools)),
        _ => {}
    }
}

fn samples_for(form: &str) -> Samples {
    type Make = fn() -> Samples;
    const FORMS: &[(&str, Make)] = &[
        ("^evt_", || ids("evt_")),
        ("^sess_", || ids("sess_")),
        ("^sub_", || ids("sub_")),
        ("^rpl_", || ids("rpl_")),
        ("^call_", || ids("call_")),
        ("^out_", || ids("out_")),
        ("^[0-9]{4}-", moments),
        ("uri", uris),
        ("^[0-9]+\\.", versions),
        ("^(?:(?:[A-Za-z]{2,3}", language_tags),
        ("^(?!", prefixes),
        ("^[A-Za-z_][A-Za-z0-9_.-]{0,63}:", type_names),
        ("^[A-Za-z_][A-Za-z0-9_.-]{0,255}$", tool_names),
        ("^[^*]", type_patterns),
        ("^[A-Z][A-Z0-9_]", error_codes),
        ("^[a-z][a-z0-9_]", reasons),
        ("^[a-zA-Z][a-zA-Z0-9.+_-]*/", content_types),
        ("^[A-Z][a-z]{3}$", scripts),
        ("^[A-Za-z0-9_-]+\\.", signatures),
        ("^sha-256:", digests),
    ];
    let (_, make) = FORMS
        .iter()
        .find(|(start, _)| form.starts_with(start))
        .unwrap_or_else(|| panic!("write samples for the form {form}"));
    make()
}

fn owned(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}

fn ids(prefix: &str) -> Samples {
    let with = |rest: &str| format!("{prefix}{rest}");
    Samples {
        numbered: None,
        usual: vec![with("a"), with("7Qz"), with(&"k".repeat(64)), with("0123456789abcdef")],
        tricky: vec![
            with(""),
            with(&"k".repeat(65)),
            with("a-b"),
            with("a_b"),
            with("ä"),
            with("a\n"),
            with("a "),
            with("😀"),
            with("٣"),
            prefix.to_uppercase() + "a",
            prefix.replace('_', "-") + "a",
            format!(" {prefix}a"),
            "a".to_owned(),
            String::new(),
        ],
    }
}

fn digests() -> Samples {
    let hex = "09afc3".repeat(11);
    let (hex, short) = (&hex[..64], &hex[..63]);
    let usual = vec![format!("sha-256:{hex}"), format!("sha-256:{}", "0".repeat(64))];
    let tricky = vec![
        format!("sha-256:{short}"),
        format!("sha-256:{hex}0"),
        format!("sha-256:{}", hex.to_uppercase()),
        format!("sha-256:{short}g"),
        format!("sha-256:{short} "),
        format!("sha-256:{hex}\n"),
        format!("sha-512:{hex}"),
        format!("SHA-256:{hex}"),
        format!(" sha-256:{hex}"),
        hex.to_owned(),
        String::new(),
    ];
    Samples { numbered: None, usual, tricky }
}

fn moments() -> Samples {
    Samples {
        numbered: None,
        usual: owned(&[
            "2031-07-09T05:06:07.089Z",
            "2031-07-09T05:06:07.089123Z",
            "2024-02-29T00:00:00.000Z",
            "2000-02-29T23:59:59.999999+23:59",
            "2031-12-31T23:59:59.999-00:00",
            "1970-01-01T00:00:00.000-23:59",
            "0001-01-01T00:00:00.000Z",
        ]),
        tricky: owned(&[
            "2031-02-29T00:00:00.000Z",
            "2024-02-30T00:00:00.000Z",
            "1900-02-29T00:00:00.000Z",
            "2031-04-31T00:00:00.000Z",
            "2031-00-10T00:00:00.000Z",
            "2031-13-10T00:00:00.000Z",
            "2031-07-00T00:00:00.000Z",
            "2031-07-32T00:00:00.000Z",
            "2031-07-09T24:00:00.000Z",
            "2031-07-09T23:60:00.000Z",
            "2031-06-30T23:59:60.000Z",
            "2031-07-09T05:06:07.089+24:00",
            "2031-07-09T05:06:07.089+23:60",
            "2031-07-09T05:06:07.089+0530",
            "2031-07-09T05:06:07.089+05",
            "2031-07-09T05:06:07.089-05:30",
            "2031-07-09T05:06:07.089",
            "2031-07-09T05:06:07Z",
            "2031-07-09T05:06:07.0Z",
            "2031-07-09T05:06:07.0891Z",
            "2031-07-09T05:06:07.089123456Z",
            "2031-07-09T05:06:07.0891234567Z",
            "2031-07-09T05:06:07.Z",
            "2031-07-09T05:06:07,089Z",
            "2031-07-09T05:06Z",
            "2031-07-09t05:06:07.089z",
            "2031-07-09 05:06:07.089Z",
            "2031-07-09T05:06:07.089Z\n",
            " 2031-07-09T05:06:07.089Z",
            "2031-07-09T05:06:07.089Z[UTC]",
            "2031-07-09T05:06:07.089z",
            "+002031-07-09T05:06:07.089Z",
            "-002031-07-09T05:06:07.089Z",
            "20310709T050607.089Z",
            "2031-W28-3T05:06:07.089Z",
            "２031-07-09T05:06:07.089Z",
            "2031-07-09T05:06:07.08９Z",
            "0000-01-01T00:00:00.000Z",
            "0000-02-29T00:00:00.000Z",
            "0000-01-01T00:00:00.000+23:59",
            "9999-12-30T21:59:59.999Z",
            "9999-12-31T00:00:00.000Z",
            "9999-12-31T23:59:59.999999-23:59",
            "soon",
            "",
        ]),
    }
}

fn uris() -> Samples {
    Samples {
        numbered: Some(|number| format!("https://example.org/{number}")),
        usual: owned(&[
            "https://example.org/errors/7",
            "urn:uuid:0b7cf3a8-5a11-4f0d-9a3f-2f7a0f4b7e11",
            "mailto:ada@example.org",
            "queue://night-shift/nurses",
            "http://[2001:db8::1]:8080/a?b=c#d",
            "a:",
            "tel:+49-30-1234",
        ]),
        tricky: owned(&[
            "/only/a/path",
            "//example.org/a",
            "example.org",
            "a.b",
            "1a:b",
            "-a:b",
            "+a:b",
            ":a",
            "",
            "#part",
            "?asked",
            "https://example.org/a b",
            "https://exa mple.org/",
            "https://example.org/ä",
            "https://exämple.org/",
            "https://example.org/%",
            "https://example.org/%4",
            "https://example.org/%zz",
            "https://example.org/%C3%A4",
            "https://example.org/<a>",
            "https://example.org/{a}",
            "https://example.org/a|b",
            "https://example.org/a\\b",
            "https://example.org/a^b`c\"",
            "https://example.org/[a]",
            "https://example.org/?[a]",
            "https://example.org/#a#b",
            "https://example.org/\n",
            "https://example.org/\u{7f}",
            "https://example.org:99999999/",
            "https://example.org:/",
            "https://example.org:x/",
            "https://[::1",
            "https://::1/",
            "https://[::g]/",
            "https://[v7.a:b]/",
            "https://[v.a]/",
            "https://[fe80::1%25en0]/",
            "https://[1.2.3.4]/",
            "https://[::ffff:1.2.3.256]/",
            "https://[::ffff:1.2.3.4]/",
            "https://300.300.300.300/",
            "https://a@b@c/",
            "https://a:b@c/",
            "https://",
            "https:",
            "https:a",
            "https:///a",
            "file:///a",
            "HTTPS://EXAMPLE.ORG",
            "a+b-c.d:e",
            "a_b:c",
            "ä:b",
            "a:b:c",
            "a://",
            "urn:",
            "data:,a%20b",
        ]),
    }
}

fn versions() -> Samples {
    Samples {
        numbered: Some(|number| format!("1.0.{number}")),
        usual: owned(&[
            "1.0.0",
            "0.1.0-draft",
            "1.0.0-rc.1",
            "01.002.0003",
            "10.20.30--",
            "1.0.0-.",
            "18446744073709551615.0.0",
        ]),
        tricky: owned(&[
            "1",
            "1.0",
            "1.0.0.0",
            "1.0.0-",
            "1.0.0+build",
            "v1.0.0",
            "1.0.x",
            "1..0",
            ".1.0.0",
            "1.0.0-ä",
            "1.0.0-a_b",
            "1.0.0\n",
            " 1.0.0",
            "+1.0.0",
            "-1.0.0",
            "١.0.0",
            "1.0.0-rc-1.a",
            "1-0.0.0",
            "18446744073709551616.0.0",
            "0.0.99999999999999999999999999",
            "",
        ]),
    }
}

fn language_tags() -> Samples {
    Samples {
        numbered: Some(|number| format!("en-x-{number}")),
        usual: owned(&[
            "en",
            "yo",
            "en-US",
            "es-419",
            "zh-cmn-Hans-CN",
            "zh-cmn",
            "zh-min-nan",
            "de-1996",
            "de-CH-1901",
            "sl-rozaj-biske",
            "sl-rozaj-biske-1994",
            "x-private",
            "x-a-b-c",
            "en-a-bbb-x-a",
            "en-a-bbb-b-ccc",
            "de-DE-u-co-phonebk",
            "hy-Latn-IT-arevela",
            "sr-Latn",
            "mas",
            "EN-us",
            "art-lojban",
            "cel-gaulish",
            "qaa-Qaaa-QM-x-southern",
            "en-1-ab",
            "abcde",
            "abcdefgh",
            "zh-a-bb-x-1-12345678",
        ]),
        tricky: owned(&[
            "a-DE",
            "a",
            "e",
            "",
            "-en",
            "en-",
            "en--US",
            "en_US",
            "en US",
            "en\n",
            "ën",
            "en-ÜS",
            "en-😀",
            "abcdefghi",
            "123",
            "en-abcdefghi",
            "en-1",
            "en-12",
            "en-1234",
            "en-abcd-efgh",
            "en-Latn-Cyrl",
            "en-US-GB",
            "en-419-US",
            "de-DE-1996-1996",
            "de-1996-1996",
            "de-rozaj-ROZAJ",
            "en-a-bbb-a-ccc",
            "en-a-bbb-A-ccc",
            "en-a-bbb-b-ccc-a-ddd",
            "en-a",
            "en-a-b",
            "en-a-bbb-x",
            "en-x",
            "en-x-a-a",
            "en-x-a-b-x-c",
            "en-x-123456789",
            "x",
            "x-",
            "x-123456789",
            "x--a",
            "X-A",
            "x-a-x-a",
            "i-klingon",
            "i-default",
            "en-GB-oed",
            "sgn-BE-FR",
            "sgn-BE-NL",
            "sgn-CH-DE",
            "i-x",
            "no-bok",
            "zh-xiang",
            "zh-gan-hak-yue",
            "zh-gan-hak-yue-cmn",
            "zh-gan-gan",
            "abcd-efg",
            "abcd-Latn",
            "ab-cde-fghi-jk-lmnop-1qrs-t-uv-x-y",
            "en-US-u-islamcal-u-co",
            "en-0-aa-0-bb",
            "de-1901-1996",
            "de-a-foo-1996",
            "fr-FR-1abc",
            "fr-abc1",
            "en-US-x-twain-twain",
        ]),
    }
}

fn prefixes() -> Samples {
    Samples {
        numbered: None,
        usual: owned(&["medai", "acme_lab", "_x", "a.b-c", "aaepx", "rdfsx", "AAEP", "nlp2"])
            .into_iter()
            .chain(["p".repeat(64)])
            .collect(),
        tricky: owned(&[
            "aaep", "xsd", "rdf", "rdfs", "@id", "@type", "", "2nd", "-a", ".a", "a b", "a:b",
            "a/b", "ä", "a😀", "aaep\n", "medai\n", "aaep_x", "Aaep",
        ])
        .into_iter()
        .chain(["p".repeat(65)])
        .collect(),
    }
}

fn type_names() -> Samples {
    Samples {
        numbered: None,
        usual: owned(&[
            "medai:patient.waited",
            "acme_lab:sample.ready",
            "_x:y",
            "https://example.org/types/sample.ready",
        ]),
        tricky: owned(&[
            "aaep:agent.slept",
            "https://aaep-protocol.org/types/agent.slept",
            "aaep:subscription.request",
            "https://aaep-protocol.org/types/subscription.request",
            "aaep:AGENT.session.started",
            "AAEP:agent.session.started",
            "agent.session.started",
            "xsd:string",
            "rdf:type",
            "x:",
            ":x",
            "x",
            "",
            "1x:y",
            "x:a b",
            "x:\u{e9}",
            "x:a\n",
            "http://[",
            "x://%zz",
            "http://a|b/",
            "x:y:z",
            "x:%zz",
            "a+b://example.org/a",
            "x:/y",
            "x://",
            "aaep:",
            "aaep: agent.session.started",
        ])
        .into_iter()
        .chain([format!("{}:y", "p".repeat(64)), format!("{}:y", "p".repeat(65))])
        .collect(),
    }
}

fn type_patterns() -> Samples {
    Samples {
        numbered: Some(|number| format!("medai:t{number}")),
        usual: owned(&[
            "*",
            "aaep:agent.*",
            "aaep:agent.tool.invoked",
            "medai:*",
            "not even a type",
            "https://aaep-protocol.org/types/agent.*",
        ])
        .into_iter()
        .chain(["t".repeat(256), "t".repeat(255) + "*", "世".repeat(256)])
        .collect(),
        tricky: owned(&["**", "*a", "aaep:*.started", "a*b*", "", "\n", "a\nb*", "*\n", "a*\n"])
            .into_iter()
            .chain(["t".repeat(257), "t".repeat(256) + "*", "😀".repeat(257)])
            .collect(),
    }
}

fn tool_names() -> Samples {
    Samples {
        numbered: None,
        usual: owned(&["_", "a", "files.read-one_2", "Z9"])
            .into_iter()
            .chain(["t".repeat(256)])
            .collect(),
        tricky: owned(&["", "2nd", "-a", ".a", "a b", "ä", "aä", "a\n", "a/b", "😀"])
            .into_iter()
            .chain(["t".repeat(257)])
            .collect(),
    }
}

fn error_codes() -> Samples {
    Samples {
        numbered: None,
        usual: owned(&["NO_PAPER", "A1", "A_"]).into_iter().chain(["E".repeat(64)]).collect(),
        tricky: owned(&["A", "", "_A", "1A", "No_Paper", "NO-PAPER", "NÖ_PAPER", "NO\n", "ÄÄ"])
            .into_iter()
            .chain(["E".repeat(65)])
            .collect(),
    }
}

fn reasons() -> Samples {
    Samples {
        numbered: None,
        usual: owned(&["went_home", "a1", "a_"]).into_iter().chain(["r".repeat(64)]).collect(),
        tricky: owned(&["a", "", "_a", "1a", "Went_home", "went-home", "wént", "aa\n", "äa"])
            .into_iter()
            .chain(["r".repeat(65)])
            .collect(),
    }
}

fn content_types() -> Samples {
    Samples {
        numbered: None,
        usual: owned(&["text/plain", "a/b", "application/vnd.acme_x+json", "T-1/X2"]),
        tricky: owned(&[
            "text",
            "text/",
            "/plain",
            "/",
            "text/plain; charset=utf-8",
            "text/plain/x",
            "1text/plain",
            "text/1d",
            "text /plain",
            "téxt/plain",
            "text/plain\n",
            "text/*",
            "",
        ]),
    }
}

fn scripts() -> Samples {
    Samples {
        numbered: None,
        usual: owned(&["Latn", "Arab", "Zzzz"]),
        tricky: owned(&["latn", "LATN", "Lat", "Latin", "", "Lätn", "Lat1", "Latn\n", "Éatn"]),
    }
}

fn signatures() -> Samples {
    Samples {
        numbered: None,
        usual: owned(&["a.b.c", "-_.Z9.0", "aGk.aG8.aGE"]),
        tricky: owned(&[
            "a.b", "a.b.c.d", "a..c", ".b.c", "a.b.", "a.b=.c", "a.b.c\n", "ä.b.c", "", "..",
            "a b.c.d",
        ]),
    }
}
