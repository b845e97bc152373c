//! Helpers for the tests of several crates.

use std::{
    collections::BTreeMap,
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
};

/// If this variable is set, the table is written instead of compared.
const REGENERATE: &str = "NODEWISE_REGENERATE";

/// One metric family of a scrape.
#[derive(Default)]
struct Family<'a> {
    kind: &'a str,
    help: &'a str,
    labels: Vec<&'a str>,
    has_samples: bool,
}

/// Asserts that the table of a program's metrics in `docs/operations.md` matches `exposition`, a scrape in which each family has a
/// series. Or writes the table, if `NODEWISE_REGENERATE` is set.
///
/// # Panics
/// If they differ, or a family has no series.
pub fn assert_documented(program: &str, exposition: &str) {
    let path = document();
    let text = fs::read_to_string(&path).expect("docs/operations.md");
    let (begin, end) = (
        format!("<!-- metrics of {program} -->\n"),
        "<!-- end of metrics -->",
    );
    let (before, rest) = text.split_once(&begin).expect("the place of the table");
    let (table, after) = rest.split_once(end).expect("its end");
    let expected = table_of(exposition);
    if std::env::var_os(REGENERATE).is_some() {
        fs::write(path, format!("{before}{begin}{expected}{end}{after}")).expect("docs/operations.md");
    } else {
        let hint = format!("{REGENERATE}=1 writes the table of {program} into docs/operations.md anew");
        assert_eq!(table, expected, "{hint}");
    }
}

fn document() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/operations.md")
}

fn table_of(exposition: &str) -> String {
    let mut table = "| metric | type | unit | labels | meaning |\n|---|---|---|---|---|\n".to_owned();
    for (name, family) in families(exposition) {
        assert!(family.has_samples, "{name} has no series");
        let suffix = match family.kind {
            "counter" => "_total",
            "info" => "_info",
            _ => "",
        };
        let unit = ["seconds", "bytes"]
            .into_iter()
            .find(|unit| name.ends_with(unit))
            .unwrap_or("–");
        let labels = family.labels.iter().map(|label| format!("`{label}`"));
        let (kind, help) = (family.kind, family.help.trim_end_matches('.'));
        let labels = labels.collect::<Vec<_>>().join(", ");
        // Writing to a String cannot fail.
        let _ = writeln!(
            table,
            "| `{name}{suffix}` | {kind} | {unit} | {labels} | {help} |"
        );
    }
    table
}

/// The families of a scrape, by name.
fn families(exposition: &str) -> BTreeMap<&str, Family<'_>> {
    let mut families = BTreeMap::<_, Family>::new();
    let mut current = "";
    for line in exposition.lines() {
        if let Some((name, help)) = line.strip_prefix("# HELP ").and_then(|rest| rest.split_once(' ')) {
            families.entry(name).or_default().help = help;
        } else if let Some((name, kind)) = line.strip_prefix("# TYPE ").and_then(|rest| rest.split_once(' '))
        {
            families.entry(name).or_default().kind = kind;
            current = name;
        } else if line.starts_with(current) && !line.starts_with('#') {
            let family = families.entry(current).or_default();
            family.has_samples = true;
            let labels = line
                .split_once('{')
                .and_then(|(_, rest)| rest.split_once('}'))
                .map_or("", |(labels, _)| labels);
            for label in labels
                .split(',')
                .filter_map(|pair| pair.split('=').next())
                .filter(|label| !label.is_empty() && *label != "le")
            {
                if !family.labels.contains(&label) {
                    family.labels.push(label);
                }
            }
        }
    }
    families
}
