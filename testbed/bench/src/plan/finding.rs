//! The table, goals and charts for the times.

use anyhow::{Context as _, Result};

use super::Times;
use crate::figure::figure;
use crate::measure::Spread;
use crate::report::{Bar, Chart, Finding, Series, Shape, Target};

/// The goals.
const FASTER_FROM_SCRATCH: f64 = 300.0;
/// The goal after a change, and the size of the cluster that it is for.
const FASTER_AFTER_A_CHANGE: (usize, f64) = (5_000, 5_000.0);
const LONGEST_MS: f64 = 5.0;
/// The limit for the cost of a node in the largest cluster compared with the smallest, for the cost to count as linear.
const LINEAR: f64 = 1.5;

const ABOUT: &str = "\
One DaemonSet in a settled cluster: every node has a ready pod of the current revision, and there is nothing to do. One thread \
on one core. In each round all sides take turns at every size, and a value is the mean of a round.

- *upstream* is `syncHandler` of Kubernetes' own DaemonSet controller, unmodified, with client-go's own indexers filled with \
these objects, `GOMAXPROCS=1` and Go's default settings of the garbage collector. There are no other pods, nothing is logged, \
and no API call is made.
- *from scratch* is `nodewise_planner::daemonset::plan`: every decision is made anew from the decoded snapshot. Decoding, which also sorts \
the content of a bucket and checks that the names of pods are unique, is not included. Upstream's time does not include decoding \
either: both sides have the objects in memory. The section about gRPC includes everything.
- *after one pod changed* is the work of the server between decoding a request and writing the response when it remembers the \
last plan: it updates the names of the pods (`PlanCache::identify`), then `plan_until` decides. Each time a pod becomes unready or \
ready, so every plan finds another bucket, and every second plan writes a status. Decoding that bucket is not included. \
Upstream's sync does not depend on what changed, so it is measured without a change.";

/// The table, the goals and the charts.
pub(super) fn finding(times: &[Times]) -> Result<Finding> {
    let rows = times.iter().map(Times::row).collect();
    let mut targets: Vec<_> = times.iter().flat_map(Times::targets).collect();
    let (least, most) = times.first().zip(times.last()).context("nothing was measured")?;
    let nodes = figure(count(most.nodes));
    targets.push(Target::at_most(
        format!("{nodes} nodes, from scratch"),
        LONGEST_MS,
        most.scratch.median() / 1e3,
        "ms",
    ));
    targets.push(Target::at_most(
        format!(
            "a node of {nodes}, from scratch, against one of {}",
            figure(count(least.nodes))
        ),
        LINEAR,
        most.ns_per_node() / least.ns_per_node(),
        "times the cost",
    ));
    Ok(Finding {
        title: "Deciding, on one thread".to_owned(),
        about: ABOUT.to_owned(),
        columns: [
            "nodes",
            "upstream, µs per sync",
            "from scratch, µs",
            "ns per node",
            "times faster",
            "after one pod changed, µs",
            "times faster",
        ]
        .map(str::to_owned)
        .to_vec(),
        rows,
        targets,
        charts: vec![bars(times), lines(times)],
    })
}

impl Times {
    fn ns_per_node(&self) -> f64 {
        self.scratch.median() * 1e3 / count(self.nodes)
    }

    /// How many times faster than upstream these times of Nodewise are.
    fn faster(&self, ours: &Spread) -> Option<f64> {
        self.upstream
            .as_ref()
            .map(|upstream| upstream.median() / ours.median())
    }

    fn row(&self) -> Vec<String> {
        let faster = |ours| self.faster(ours).map_or_else(|| "–".to_owned(), figure);
        vec![
            figure(count(self.nodes)),
            self.upstream
                .as_ref()
                .map_or_else(|| "–".to_owned(), Spread::to_string),
            self.scratch.to_string(),
            figure(self.ns_per_node()),
            faster(&self.scratch),
            self.changed.to_string(),
            faster(&self.changed),
        ]
    }

    fn targets(&self) -> impl Iterator<Item = Target> {
        let nodes = figure(count(self.nodes));
        let target = |how: &str, goal, ours| {
            let what = format!("{nodes} nodes, {how}, against upstream");
            self.faster(ours)
                .map(|faster| Target::at_least(what, goal, faster, "times faster"))
        };
        let (size, faster) = FASTER_AFTER_A_CHANGE;
        let changed = target("after one pod changed", faster, &self.changed);
        let scratch = target("from scratch", FASTER_FROM_SCRATCH, &self.scratch);
        scratch.into_iter().chain(changed.filter(|_| self.nodes == size))
    }

    /// The times of each side, with their names.
    fn parts(&self) -> impl Iterator<Item = (&'static str, &Spread)> {
        let upstream = self.upstream.iter().map(|values| ("upstream", values));
        let ours = [
            ("Nodewise, from scratch", &self.scratch),
            ("Nodewise, after one pod changed", &self.changed),
        ];
        upstream.chain(ours)
    }
}

fn bars(times: &[Times]) -> Chart {
    let both = times.iter().filter(|times| times.upstream.is_some());
    let bars = both.flat_map(|times| {
        times.parts().map(|(who, values)| Bar {
            group: format!("{} nodes", figure(count(times.nodes))),
            who: who.to_owned(),
            values: values.clone(),
        })
    });
    Chart {
        file: "plan".to_owned(),
        title: "Deciding for one DaemonSet at rest, on one thread".to_owned(),
        unit: "µs, less is better".to_owned(),
        logarithmic: true,
        shape: Shape::Bars(bars.collect()),
    }
}

fn lines(times: &[Times]) -> Chart {
    let mut series: Vec<Series> = Vec::new();
    for times in times {
        for (who, values) in times.parts() {
            let point = (count(times.nodes), values.clone());
            match series.iter_mut().find(|series| series.who == who) {
                Some(series) => series.points.push(point),
                None => series.push(Series {
                    who: who.to_owned(),
                    points: vec![point],
                }),
            }
        }
    }
    Chart {
        file: "plan-sizes".to_owned(),
        title: "Deciding for one DaemonSet at rest, by the size of the cluster".to_owned(),
        unit: "µs, less is better".to_owned(),
        logarithmic: true,
        shape: Shape::Lines {
            of: "nodes".to_owned(),
            series,
        },
    }
}

#[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
fn count(nodes: usize) -> f64 {
    nodes as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spread(values: [f64; 3]) -> Spread {
        Spread::of(values).expect("numbers")
    }

    fn measured() -> [Times; 3] {
        let times = |nodes, upstream, scratch, changed| Times {
            nodes,
            upstream,
            scratch: spread(scratch),
            changed: spread(changed),
        };
        [
            times(
                1_000,
                Some(spread([30e3, 31e3, 35e3])),
                [99.0, 100.0, 101.0],
                [9.0, 10.0, 12.0],
            ),
            times(
                5_000,
                Some(spread([150e3, 160e3, 170e3])),
                [590.0, 600.0, 610.0],
                [39.0, 40.0, 50.0],
            ),
            times(100_000, None, [14e3, 15e3, 16e3], [100.0, 200.0, 300.0]),
        ]
    }

    #[test]
    fn finding_has_rows_and_goals() -> Result<()> {
        let finding = finding(&measured())?;
        assert!(finding.rows.iter().all(|row| row.len() == finding.columns.len()));
        assert_eq!(
            finding.rows[0],
            [
                "1,000",
                "31,000 (30,000–35,000)",
                "100 (99–101)",
                "100",
                "310",
                "10 (9–12)",
                "3,100"
            ]
        );
        assert_eq!(finding.rows[2][1], "–");
        let told: Vec<_> = finding
            .targets
            .iter()
            .map(|target| (target.what.as_str(), target.measured.as_str(), target.reached))
            .collect();
        assert_eq!(
            told,
            [
                (
                    "1,000 nodes, from scratch, against upstream",
                    "310 times faster",
                    true
                ),
                (
                    "5,000 nodes, from scratch, against upstream",
                    "267 times faster",
                    false
                ),
                (
                    "5,000 nodes, after one pod changed, against upstream",
                    "4,000 times faster",
                    false
                ),
                ("100,000 nodes, from scratch", "15 ms", false),
                (
                    "a node of 100,000, from scratch, against one of 1,000",
                    "1.5 times the cost",
                    true
                ),
            ]
        );
        Ok(())
    }

    #[test]
    fn charts_contain_all_series() {
        let Shape::Bars(bars) = bars(&measured()).shape else {
            panic!("no bars");
        };
        assert_eq!(bars.len(), 6, "those with upstream");
        let Shape::Lines { series, .. } = lines(&measured()).shape else {
            panic!("no lines");
        };
        let lengths: Vec<_> = series.iter().map(|series| series.points.len()).collect();
        assert_eq!(lengths, [2, 3, 3]);
    }
}
