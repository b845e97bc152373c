use proptest::prelude::*;

use super::*;
use crate::{
    core::{
        cancellation::Cancellation,
        snapshot::{Node, TaintEffect},
    },
    daemonset::workload::{NodeSelectorRequirement, NodeSelectorTerm, Toleration},
    fixtures::{self, node, pairs, strings, table},
};

const RUN: Fit = Fit::RUN;
const KEEP: Fit = Fit::KEEP;
const NEITHER: Fit = Fit::NEITHER;

/// Written `key Operator value effect`, with `-` for what is absent.
fn tolerations(texts: &[&str]) -> Vec<Toleration> {
    let parse = |text: &&str| {
        let mut parts = text.split(' ').map(|part| {
            if part == "-" {
                String::new()
            } else {
                part.to_owned()
            }
        });
        let mut next = || {
            parts
                .next()
                .expect("a toleration is written key operator value effect")
        };
        Toleration {
            key: next(),
            operator: next(),
            value: next(),
            effect: next(),
        }
    };
    texts.iter().map(parse).collect()
}

fn requirement(key: &str, operator: &str, values: &[&str]) -> NodeSelectorRequirement {
    NodeSelectorRequirement {
        key: key.to_owned(),
        operator: operator.to_owned(),
        values: strings(values),
    }
}

fn labels_term(requirements: &[(&str, &str, &[&str])]) -> NodeSelectorTerm {
    let match_expressions = requirements
        .iter()
        .map(|(key, operator, values)| requirement(key, operator, values));
    NodeSelectorTerm {
        match_expressions: match_expressions.collect(),
        match_fields: vec![],
    }
}

fn fields_term(key: &str, operator: &str, values: &[&str]) -> NodeSelectorTerm {
    NodeSelectorTerm {
        match_expressions: vec![],
        match_fields: vec![requirement(key, operator, values)],
    }
}

fn with_terms(terms: Vec<NodeSelectorTerm>) -> Scheduling {
    Scheduling {
        required_terms: Some(terms),
        ..Scheduling::default()
    }
}

fn with_tolerations(texts: &[&str]) -> Scheduling {
    Scheduling {
        tolerations: tolerations(texts),
        ..Scheduling::default()
    }
}

/// Evaluates, and checks that the explanation gives the same result.
fn fit_with(scheduling: &Scheduling, gate: bool, node: &Node) -> Fit {
    let eligibility = Eligibility::compile(scheduling, gate);
    let table = table(std::slice::from_ref(node));
    let fit = eligibility.evaluate(table.at(0));
    let decision = eligibility.decide(table.at(0));
    assert_eq!(
        decision.fit, fit,
        "explanation and evaluation differ: {decision:?}"
    );
    assert_eq!(
        decision.constraint == Constraint::Eligible,
        fit == RUN,
        "{decision:?}"
    );
    fit
}

fn fit(scheduling: &Scheduling, node: &Node) -> Fit {
    fit_with(scheduling, false, node)
}

#[test]
fn taints_and_tolerations() {
    let kubernetes = |name: &str| format!("node.kubernetes.io/{name}");
    let pressures = ["disk", "memory", "pid"].map(|what| kubernetes(&format!("{what}-pressure:NoSchedule")));
    let (unready, lost) = (kubernetes("not-ready"), kubernetes("unreachable"));
    let (unready_execute, lost_execute) = (format!("{unready}:NoExecute"), format!("{lost}:NoExecute"));
    let (unready_schedule, lost_schedule) = (format!("{unready}:NoSchedule"), format!("{lost}:NoSchedule"));
    let cordon = kubernetes("unschedulable:NoSchedule");
    let out_of_service = kubernetes("out-of-service:NoExecute");
    // (requirement, tolerations, taints, fit)
    #[rustfmt::skip] // one case, one line
    let table: &[(&str, &[&str], &[&str], Fit)] = &[
        ("D-8", &[], &[], RUN),
        ("D-18", &[], &[&unready_execute], RUN),
        ("D-18", &[], &[&lost_execute], RUN),
        ("D-20", &[], &[&unready_schedule], KEEP),
        ("D-20", &[], &[&lost_schedule], KEEP),
        ("D-20", &[], &[&out_of_service], NEITHER),
        ("D-18", &[], &[&pressures[0], &pressures[1], &pressures[2]], RUN),
        ("D-18", &[], &[&cordon], RUN),
        ("D-8", &[], &["dedicated=user1:NoSchedule"], KEEP),
        ("D-17", &["dedicated - user1 NoSchedule"], &["dedicated=user1:NoSchedule"], RUN),
        ("D-17 no taint", &["dedicated - user1 NoSchedule"], &[], RUN),
        ("D-17 effect", &["dedicated - user1 NoExecute"], &["dedicated=user1:NoSchedule"], KEEP),
        ("D-17 value", &["dedicated - user2 NoSchedule"], &["dedicated=user1:NoSchedule"], KEEP),
        ("D-17 key", &["other Exists - -"], &["dedicated=user1:NoSchedule"], KEEP),
        ("D-17 every effect", &["dedicated Equal user1 -"], &["dedicated=user1:NoExecute"], RUN),
        ("D-17 unknown effect", &["dedicated Exists - Some"], &["dedicated=user1:NoExecute"], NEITHER),
        ("D-17 unknown operator", &["dedicated Maybe user1 -"], &["dedicated=user1:NoSchedule"], KEEP),
        ("D-17 empty key, Equal", &["- Equal user1 -"], &["dedicated=user1:NoSchedule"], RUN),
        ("D-17 empty key, Equal", &["- Equal user1 -"], &["dedicated=user2:NoSchedule"], KEEP),
        ("D-17 empty value", &["dedicated - - -"], &["dedicated:NoSchedule"], RUN),
        ("D-8", &[], &["a:NoExecute"], NEITHER),
        ("D-17", &[], &["a:PreferNoSchedule"], RUN),
        ("D-17", &["- Exists - -"], &["a=b:NoSchedule", "c:NoExecute"], RUN),
        ("D-8", &["b Exists - NoExecute"], &["a:NoSchedule", "b:NoExecute"], KEEP),
        ("D-8", &["a Exists - -"], &["a:NoSchedule", "b:NoExecute"], NEITHER),
        ("D-8", &[], &["b:NoExecute", "a:NoSchedule"], NEITHER),
    ];
    for (requirement, own, taints, expected) in table {
        let node = node("n", &[], taints);
        assert_eq!(
            fit(&with_tolerations(own), &node),
            *expected,
            "{requirement}: {own:?} on {taints:?}"
        );
    }
}

#[test]
fn d_18_only_the_host_network_tolerates_a_missing_network() {
    let node = node("n", &[], &["node.kubernetes.io/network-unavailable:NoSchedule"]);
    for (host_network, expected) in [(true, RUN), (false, KEEP)] {
        assert_eq!(
            fit(
                &Scheduling {
                    host_network,
                    ..Scheduling::default()
                },
                &node
            ),
            expected
        );
    }
    // Every pod gets six, a pod on the host network gets a seventh.
    let keys = |host_network| {
        automatic_tolerations(host_network)
            .map(|(key, _)| key)
            .collect::<Vec<_>>()
    };
    assert_eq!((keys(false).len(), keys(true).len()), (6, 7));
    assert_eq!(keys(true)[6], "node.kubernetes.io/network-unavailable");
}

#[test]
fn d_17_comparisons_need_the_gate_and_canonical_numbers() {
    // (toleration, taint's value, tolerated with the gate on)
    let table = [
        ("a Gt 1 -", "2", true),
        ("a Gt 1 NoSchedule", "2", true),
        ("a Gt 1 NoExecute", "2", false),
        ("a Gt 2 -", "2", false),
        ("a Gt -3 -", "-2", true),
        ("a Lt 2 -", "1", true),
        ("a Lt 1 -", "1", false),
        ("a Lt 0 -", "-1", true),
        ("a Gt 01 -", "2", false),
        ("a Gt 1 -", "02", false),
        ("a Gt 1 -", "+2", false),
        ("a Gt 1 -", "two", false),
        ("a Gt - -", "2", false),
        ("a Lt 9223372036854775808 -", "1", false),
        ("b Gt 1 -", "2", false),
    ];
    for (toleration, value, tolerated) in table {
        let scheduling = with_tolerations(&[toleration]);
        let node = node("n", &[], &[&format!("a={value}:NoSchedule")]);
        assert_eq!(
            fit_with(&scheduling, false, &node),
            KEEP,
            "gate off: {toleration} on {value}"
        );
        let expected = if tolerated { RUN } else { KEEP };
        assert_eq!(
            fit_with(&scheduling, true, &node),
            expected,
            "gate on: {toleration} on {value}"
        );
    }
}

#[test]
fn d_8_node_name_and_node_selector() {
    let selector = |entries| Scheduling {
        node_selector: pairs(entries),
        ..Scheduling::default()
    };
    let named = |name: &str| Scheduling {
        node_name: name.to_owned(),
        ..Scheduling::default()
    };
    let both = |name: &str, entries| Scheduling {
        node_name: name.to_owned(),
        ..selector(entries)
    };
    let blue = node(
        "node-0",
        &[("color", "blue"), ("zone", ""), ("bad key!", "b c")],
        &[],
    );
    // (requirement, template, fit)
    let table = [
        ("D-8", named("node-0"), RUN),
        ("D-8", named("node-9"), NEITHER),
        ("D-10", selector(&[("color", "blue")]), RUN),
        ("D-10", selector(&[("color", "red")]), NEITHER),
        (
            "D-10 all",
            selector(&[("color", "blue"), ("size", "big")]),
            NEITHER,
        ),
        ("D-10 empty value", selector(&[("zone", "")]), RUN),
        ("D-10 missing is not empty", selector(&[("size", "")]), NEITHER),
        ("D-10 no syntax check", selector(&[("bad key!", "b c")]), RUN),
        ("D-9 an empty nodeSelector is none", selector(&[]), RUN),
        ("D-8 both match", both("node-0", &[("color", "blue")]), RUN),
        ("D-8 another label", both("node-0", &[("color", "red")]), NEITHER),
        ("D-8 another node", both("node-9", &[("color", "blue")]), NEITHER),
    ];
    for (requirement, scheduling, expected) in table {
        assert_eq!(fit(&scheduling, &blue), expected, "{requirement}: {scheduling:?}");
    }
}

#[test]
fn d_12_to_d_14_expressions_on_labels() {
    let long = "v".repeat(64);
    let subject = node(
        "n",
        &[
            ("n", "5"),
            ("neg", "-5"),
            ("pad", "007"),
            ("word", "x"),
            ("none", ""),
            ("big", &long),
        ],
        &[],
    );
    // (requirement, key, operator, values, fit)
    #[rustfmt::skip] // one case, one line
    let table: &[(&str, &str, &str, &[&str], Fit)] = &[
        ("D-12", "word", "In", &["w", "x"], RUN),
        ("D-12", "word", "In", &["w"], NEITHER),
        ("D-12 missing", "gone", "In", &["x"], NEITHER),
        ("D-12 empty value", "none", "In", &[""], RUN),
        ("D-12 no values", "word", "In", &[], NEITHER),
        ("D-12", "word", "NotIn", &["w"], RUN),
        ("D-12", "word", "NotIn", &["w", "x"], NEITHER),
        ("D-12 missing", "gone", "NotIn", &["x"], RUN),
        ("D-12 no values", "gone", "NotIn", &[], NEITHER),
        ("D-12", "none", "Exists", &[], RUN),
        ("D-12", "gone", "Exists", &[], NEITHER),
        ("D-12 values", "word", "Exists", &["x"], NEITHER),
        ("D-12", "gone", "DoesNotExist", &[], RUN),
        ("D-12", "none", "DoesNotExist", &[], NEITHER),
        ("D-12 values", "gone", "DoesNotExist", &["x"], NEITHER),
        ("D-12", "n", "Gt", &["4"], RUN),
        ("D-12 strictly", "n", "Gt", &["5"], NEITHER),
        ("D-12", "n", "Lt", &["6"], RUN),
        ("D-12 strictly", "n", "Lt", &["5"], NEITHER),
        ("D-12 two values", "n", "Gt", &["4", "3"], NEITHER),
        ("D-12 no value", "n", "Gt", &[], NEITHER),
        ("D-13 leading zeros", "pad", "Gt", &["006"], RUN),
        ("D-13 leading zeros", "pad", "Lt", &["8"], RUN),
        ("D-13 a negative label", "neg", "Lt", &["0"], RUN),
        ("D-13 a negative operand", "n", "Gt", &["-6"], NEITHER),
        ("D-13 a signed operand", "n", "Gt", &["+4"], NEITHER),
        ("D-13 a word as label", "word", "Gt", &["0"], NEITHER),
        ("D-13 an empty label", "none", "Lt", &["9"], NEITHER),
        ("D-13 no label", "gone", "Lt", &["9"], NEITHER),
        ("D-14 a word as operand", "n", "Gt", &["x"], NEITHER),
        ("D-14 overflow", "n", "Lt", &["9223372036854775808"], NEITHER),
        ("D-14 one bad value", "n", "In", &["5", "a b"], NEITHER),
        ("D-14 a long value", "big", "In", &[&long], NEITHER),
        ("D-14 a bad key", "no key", "DoesNotExist", &[], NEITHER),
        ("D-14 unknown operator", "n", "Ge", &["5"], NEITHER),
        ("D-14 no operator", "n", "", &["5"], NEITHER),
    ];
    for (requirement, key, operator, values, expected) in table {
        let scheduling = with_terms(vec![labels_term(&[(key, operator, values)])]);
        assert_eq!(
            fit(&scheduling, &subject),
            *expected,
            "{requirement}: {key} {operator} {values:?}"
        );
    }
}

#[test]
fn d_15_fields() {
    let subject = node("node-1", &[], &[]);
    // (requirement, field, operator, values, fit)
    #[rustfmt::skip] // one case, one line
    let table: &[(&str, &str, &str, &[&str], Fit)] = &[
        ("D-15", "metadata.name", "In", &["node-1"], RUN),
        ("D-15", "metadata.name", "In", &["node-2"], NEITHER),
        ("D-15", "metadata.name", "NotIn", &["node-2"], RUN),
        ("D-15", "metadata.name", "NotIn", &["node-1"], NEITHER),
        ("D-15 two values", "metadata.name", "In", &["node-1", "node-2"], NEITHER),
        ("D-15 no value", "metadata.name", "NotIn", &[], NEITHER),
        ("D-15 operator", "metadata.name", "Exists", &[], NEITHER),
        ("D-15 operator", "metadata.name", "Gt", &["1"], NEITHER),
        ("D-15 another field is empty", "spec.x", "In", &[""], RUN),
        ("D-15 another field is empty", "spec.x", "In", &["x"], NEITHER),
        ("D-15 another field is empty", "spec.x", "NotIn", &["x"], RUN),
        ("D-15 no syntax check", "metadata.name", "NotIn", &["a b !"], RUN),
    ];
    for (requirement, key, operator, values, expected) in table {
        let scheduling = with_terms(vec![fields_term(key, operator, values)]);
        assert_eq!(
            fit(&scheduling, &subject),
            *expected,
            "{requirement}: {key} {operator} {values:?}"
        );
    }
}

#[test]
fn d_11_d_16_terms_are_ored_and_their_expressions_anded() {
    let subject = node("node-1", &[("zone", "test"), ("color", "blue")], &[]);
    let other = node("node-2", &[("zone", "prod")], &[]);
    let (zone, name) = (
        labels_term(&[("zone", "In", &["test"])]),
        fields_term("metadata.name", "In", &["node-2"]),
    );
    let invalid = labels_term(&[("zone", "Maybe", &["test"])]);
    let mixed = NodeSelectorTerm {
        match_fields: name.match_fields.clone(),
        ..zone.clone()
    };
    // (requirement, terms, fit on node-1 in zone test, fit on node-2 in zone prod)
    #[rustfmt::skip] // one case, one line
    let table = [
        ("D-11", vec![], NEITHER, NEITHER),
        ("D-11", vec![NodeSelectorTerm::default()], NEITHER, NEITHER),
        ("D-11", vec![NodeSelectorTerm::default(), zone.clone()], RUN, NEITHER),
        ("D-11", vec![zone.clone(), name.clone()], RUN, RUN),
        ("D-11", vec![name.clone()], NEITHER, RUN),
        ("D-11", vec![mixed.clone()], NEITHER, NEITHER),
        ("D-11", vec![labels_term(&[("zone", "Exists", &[]), ("color", "Exists", &[])])], RUN, NEITHER),
        ("D-16", vec![invalid.clone(), zone.clone()], RUN, NEITHER),
        ("D-16", vec![invalid.clone()], NEITHER, NEITHER),
        ("D-16", vec![labels_term(&[("zone", "Exists", &[]), ("zone", "Maybe", &[])])], NEITHER, NEITHER),
    ];
    for (requirement, terms, on_subject, on_other) in table {
        let scheduling = with_terms(terms);
        assert_eq!(
            fit(&scheduling, &subject),
            on_subject,
            "{requirement}: {scheduling:?}"
        );
        assert_eq!(
            fit(&scheduling, &other),
            on_other,
            "{requirement}: {scheduling:?}"
        );
    }
}

#[test]
fn d_9_selector_and_affinity_are_anded() {
    let both = |value: &str| Scheduling {
        node_selector: pairs(&[("color", "blue")]),
        ..with_terms(vec![labels_term(&[("zone", "In", &[value])])])
    };
    let subject = node("n", &[("zone", "test"), ("color", "blue")], &[]);
    let pale = node("n", &[("zone", "test")], &[]);
    assert_eq!(fit(&both("test"), &subject), RUN);
    assert_eq!(fit(&both("prod"), &subject), NEITHER);
    assert_eq!(fit(&both("test"), &pale), NEITHER);
    // A NoSchedule taint does not let a node keep pods that do not match it.
    let tainted = node("n", &[("zone", "test")], &["a:NoSchedule"]);
    assert_eq!(
        fit(&both("test"), &tainted),
        NEITHER,
        "D-8: the affinity comes before taints"
    );
}

#[test]
fn d_11_names_and_labels_among_terms_that_are_many() {
    // Enough terms on labels that classes of nodes are used.
    let zones: Vec<String> = (0..12).map(|number| format!("z{number}")).collect();
    let mut terms: Vec<_> = zones
        .iter()
        .map(|zone| labels_term(&[("zone", "In", &[zone.as_str()])]))
        .collect();
    terms.push(fields_term("metadata.name", "In", &["n1"]));
    let scheduling = Scheduling {
        node_selector: pairs(&[("disk", "ssd")]),
        ..with_terms(terms)
    };
    let eligibility = Eligibility::compile(&scheduling, false);
    // (node, labels, fit)
    let table = [
        ("n1", &[("disk", "ssd")][..], RUN),
        ("n2", &[("disk", "ssd")], NEITHER),
        ("n1", &[], NEITHER),
        ("n2", &[("disk", "ssd"), ("zone", "z3")], RUN),
        ("n2", &[("zone", "z3")], NEITHER),
        ("n1", &[("disk", "ssd"), ("zone", "elsewhere")], RUN),
    ];
    let nodes = table.map(|(name, labels, _)| node(name, labels, &[]));
    let nodes = fixtures::table(&nodes);
    let mut fits = Fits::new(&eligibility);
    // Twice, because the result of a class is cached.
    for _ in 0..2 {
        let found = fits
            .of(&nodes, Cancellation::new(&|| false))
            .expect("nothing asks to stop");
        for ((node, found), (_, _, fit)) in nodes.iter().zip(found).zip(table) {
            assert_eq!(found, fit, "D-9, D-11: {node:?}");
            assert_eq!(eligibility.evaluate(node), fit, "D-9, D-11: {node:?}");
            assert_eq!(eligibility.decide(node).fit, fit, "D-9, D-11: {node:?}");
        }
    }
}

#[test]
fn d_11_a_name_and_a_label_in_one_term_of_many() {
    let zones: Vec<String> = (0..12).map(|number| format!("z{number}")).collect();
    let mut terms: Vec<_> = zones
        .iter()
        .map(|zone| labels_term(&[("zone", "In", &[zone.as_str()])]))
        .collect();
    terms.push(NodeSelectorTerm {
        match_expressions: vec![requirement("disk", "In", &["ssd"])],
        match_fields: vec![requirement("metadata.name", "In", &["n1"])],
    });
    let eligibility = Eligibility::compile(&with_terms(terms), false);
    for (name, fit) in [("n1", RUN), ("n2", NEITHER), ("n1", RUN)] {
        let nodes = table(&[node(name, &[("disk", "ssd")], &[])]);
        assert_eq!(eligibility.evaluate(nodes.at(0)), fit, "D-11, D-21: {name}");
        let found = Fits::new(&eligibility).of(&nodes, Cancellation::new(&|| false));
        assert_eq!(found.as_deref(), Some(&[fit][..]), "D-11, D-21: {name}");
    }
}

#[test]
fn d_2_d_21_conditions_and_cordons_play_no_part() {
    // Without a taint, an unready or cordoned node is like any other. D-6: nothing else is an input.
    let mut subject = node("n", &[], &[]);
    subject.ready = Some(false);
    subject.unschedulable = true;
    assert_eq!(fit(&Scheduling::default(), &subject), RUN);
    let decision = Eligibility::compile(&Scheduling::default(), false).decide(table(&[subject]).at(0));
    assert_eq!(
        decision.details.len(),
        2,
        "the details mention both: {decision:?}"
    );
}

#[test]
fn of_many_details_those_that_are_not_met_are_shown_first() {
    for (met, failed, told) in [
        (0, 0, (0, 0, "")),
        (3, 2, (3, 2, "")),
        (16, 0, (16, 0, "")),
        (15, 2, (14, 2, "and 1 more")),
        (20, 0, (16, 0, "and 4 more")),
        (0, 20, (0, 16, "and 4 more")),
        (10, 10, (6, 10, "and 4 more")),
        (30, 40, (0, 16, "and 54 more")),
    ] {
        let names =
            |kind: &'static str, count: usize| (0..count).map(move |index| format!("{kind}-{index:02}"));
        let labels: Vec<String> = names("met", met).collect();
        let labels: Vec<(&str, &str)> = labels.iter().map(|name| (name.as_str(), "")).collect();
        let asked = names("met", met).chain(names("failed", failed));
        let scheduling = Scheduling {
            node_selector: asked.map(|name| (name, String::new())).collect(),
            ..Scheduling::default()
        };
        let decision =
            Eligibility::compile(&scheduling, false).decide(table(&[node("n", &labels, &[])]).at(0));
        let of = |kind: &str| {
            decision
                .details
                .iter()
                .filter(|detail| detail.contains(kind))
                .count()
        };
        let more = decision.details.iter().find(|detail| detail.starts_with("and "));
        assert_eq!(
            (of("met-"), of("failed-"), more.map_or("", String::as_str)),
            told,
            "{met} and {failed}"
        );
    }
}

#[test]
fn of_many_values_the_first_are_shown() {
    for (values, told) in [
        (&["a", "b", "c"][..], "it asks for zone In [a, b, c], and"),
        (
            &["a", "b", "c", "d", "e"],
            "it asks for zone In [a, b, c, and 2 more], and",
        ),
    ] {
        let scheduling = with_terms(vec![labels_term(&[("zone", "In", values)])]);
        let decision = Eligibility::compile(&scheduling, false).decide(table(&[node("n", &[], &[])]).at(0));
        assert!(decision.message.contains(told), "{}", decision.message);
    }
}

#[test]
fn decisions_name_the_reason() {
    let terms = with_terms(vec![
        labels_term(&[("zone", "In", &["a", "b"])]),
        labels_term(&[("gpu", "Exists", &[])]),
        labels_term(&[("cores", "Gt", &["8"])]),
        fields_term("metadata.name", "In", &["node-2"]),
        labels_term(&[("zone", "Maybe", &[])]),
    ]);
    let one = |scheduling: &Scheduling, taints: &[&str]| {
        let subject = node("node-1", &[("zone", "c"), ("cores", "4")], taints);
        let decision = Eligibility::compile(scheduling, false).decide(table(&[subject]).at(0));
        let details = decision.details.iter().map(|detail| format!("\n  {detail}"));
        format!(
            "{:?}: {}{}",
            decision.constraint,
            decision.message,
            details.collect::<String>()
        )
    };
    let name = Scheduling {
        node_name: "node-2".to_owned(),
        ..Scheduling::default()
    };
    let selector = Scheduling {
        node_selector: pairs(&[("zone", "c"), ("disk", "ssd")]),
        ..Scheduling::default()
    };
    let single = with_terms(vec![labels_term(&[("zone", "NotIn", &["c"])])]);
    let text = [
        one(&Scheduling::default(), &[]),
        one(&name, &["a:NoExecute"]),
        one(&selector, &[]),
        one(&terms, &[]),
        one(&single, &[]),
        one(&with_terms(vec![]), &[]),
        one(
            &with_tolerations(&["ok Exists - -"]),
            &["ok:NoSchedule", "soft:PreferNoSchedule", "gpu=yes:NoSchedule"],
        ),
        one(
            &Scheduling::default(),
            &["a:NoSchedule", "b:NoExecute", "c=d:NoExecute"],
        ),
    ]
    .join("\n");
    insta::assert_snapshot!(text, @r#"
    Eligible: all constraints are met
    NodeName: the template's nodeName is node-2, not node-1
      the template's nodeName is node-2, not node-1
      taint a:NoExecute is not tolerated
    NodeSelector: nodeSelector asks for disk=ssd, and the node has no label disk
      nodeSelector zone=c is met
      nodeSelector asks for disk=ssd, and the node has no label disk
    NodeAffinity: none of the 5 terms of the required node affinity matches: term 1: it asks for zone In [a, b], and the node has zone=c; term 2: it asks for gpu Exists, and the node has no label gpu; term 3: it asks for cores Gt 8, and the node has cores=4; and 2 more
      required node affinity, term 1: it asks for zone In [a, b], and the node has zone=c
      required node affinity, term 2: it asks for gpu Exists, and the node has no label gpu
      required node affinity, term 3: it asks for cores Gt 8, and the node has cores=4
      required node affinity, term 4: it asks for metadata.name In [node-2], and it is node-1
      required node affinity, term 5: it can never match: operator "Maybe" is unknown
    NodeAffinity: the required node affinity does not match: it asks for zone NotIn [c], and the node has zone=c
      required node affinity, term 1: it asks for zone NotIn [c], and the node has zone=c
    NodeAffinity: the required node affinity has no terms, so that no node matches
      the required node affinity has no terms, so that no node matches
    TaintNoSchedule: taint gpu=yes:NoSchedule is not tolerated
      taint ok:NoSchedule is tolerated
      taint soft:PreferNoSchedule plays no part: its effect is only a preference
      taint gpu=yes:NoSchedule is not tolerated
    TaintNoExecute: taints b:NoExecute, c=d:NoExecute are not tolerated
      taint a:NoSchedule is not tolerated
      taint b:NoExecute is not tolerated
      taint c=d:NoExecute is not tolerated
    "#);
}

#[test]
fn a_decision_names_three_terms_and_counts_the_others() {
    let zones = ["a", "b", "c", "d"].map(|zone| labels_term(&[("zone", "In", &[zone])]));
    let messages = [1, 3, 4].map(|terms| {
        let scheduling = with_terms(zones[..terms].to_vec());
        Eligibility::compile(&scheduling, false)
            .decide(table(&[node("n", &[], &[])]).at(0))
            .message
    });
    insta::assert_snapshot!(messages.join("\n"), @r#"
    the required node affinity does not match: it asks for zone In [a], and the node has no label zone
    none of the 3 terms of the required node affinity matches: term 1: it asks for zone In [a], and the node has no label zone; term 2: it asks for zone In [b], and the node has no label zone; term 3: it asks for zone In [c], and the node has no label zone
    none of the 4 terms of the required node affinity matches: term 1: it asks for zone In [a], and the node has no label zone; term 2: it asks for zone In [b], and the node has no label zone; term 3: it asks for zone In [c], and the node has no label zone; and 1 more
    "#);
}

/// Templates with keys and values that often match those of [`any_node`].
fn any_scheduling() -> impl Strategy<Value = Scheduling> {
    let values = || proptest::collection::vec("[0-2]?", 0..3);
    let operator = prop_oneof![
        Just("In"),
        Just("NotIn"),
        Just("Exists"),
        Just("DoesNotExist"),
        Just("Gt"),
        Just("Lt"),
        Just("?"),
    ];
    let expression =
        ("[a-c]", operator.clone(), values()).prop_map(|(key, operator, values)| NodeSelectorRequirement {
            key,
            operator: operator.to_owned(),
            values,
        });
    let field = (
        prop_oneof![Just("metadata.name"), Just("x")],
        operator,
        proptest::collection::vec("n[0-2]", 0..3),
    )
        .prop_map(|(key, operator, values)| {
            requirement(
                key,
                operator,
                &values.iter().map(String::as_str).collect::<Vec<_>>(),
            )
        });
    let term = (
        proptest::collection::vec(expression, 0..4),
        proptest::collection::vec(field, 0..2),
    )
        .prop_map(|(match_expressions, match_fields)| NodeSelectorTerm {
            match_expressions,
            match_fields,
        });
    let toleration = (
        "[t-v]?",
        prop_oneof![Just(""), Just("Exists"), Just("Gt")],
        "[0-2]?",
    )
        .prop_map(|(key, operator, value)| Toleration {
            key,
            operator: operator.to_owned(),
            value,
            effect: String::new(),
        });
    (
        prop_oneof![9 => Just(String::new()), 1 => "n[0-2]"],
        proptest::collection::vec(("[a-c]", "[0-2]?"), 0..2),
        proptest::option::of(proptest::collection::vec(term, 0..12)),
        proptest::collection::vec(toleration, 0..3),
    )
        .prop_map(
            |(node_name, node_selector, required_terms, tolerations)| Scheduling {
                node_name,
                node_selector,
                required_terms,
                tolerations,
                host_network: false,
            },
        )
}

fn any_node() -> impl Strategy<Value = Node> {
    let effect = prop_oneof![
        Just(TaintEffect::NoSchedule),
        Just(TaintEffect::NoExecute),
        Just(TaintEffect::Other)
    ];
    let taint = ("[t-v]", "[0-2]?", effect).prop_map(|(key, value, effect)| crate::core::snapshot::Taint {
        key,
        value,
        effect,
    });
    let labels = proptest::collection::btree_map("[a-c]", "[0-2]?", 0..4);
    ("n[0-2]", labels, proptest::collection::vec(taint, 0..3)).prop_map(|(name, labels, taints)| Node {
        name,
        labels: labels.into_iter().collect(),
        taints,
        unschedulable: false,
        ready: None,
        ready_since: None,
        in_maintenance: false,
    })
}

proptest! {
    // D-8, D-21: cached results of classes equal computed ones, and so does the explanation.
    #[test]
    fn d_21_eligibility_does_not_depend_on_nodes_evaluated_before(
        scheduling in any_scheduling(),
        nodes in proptest::collection::vec(any_node(), 1..12),
    ) {
        let eligibility = Eligibility::compile(&scheduling, true);
        let nodes = table(&nodes);
        let fits = Fits::new(&eligibility).of(&nodes, Cancellation::new(&|| false)).expect("nothing asks to stop");
        for (node, fit) in nodes.iter().zip(fits) {
            let alone = eligibility.decide(node);
            prop_assert_eq!(fit, alone.fit, "{:?}", alone);
            prop_assert_eq!(fit, eligibility.evaluate(node), "{:?}", alone);
            prop_assert!(fit.keep || !fit.run, "run implies keep");
        }
    }
}
