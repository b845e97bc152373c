//! Checks of stages, and windows of time.

use super::*;

fn checked(when: When) -> Spec {
    let check = Check {
        name: "errors".to_owned(),
        when,
        provider: Provider::Webhook {
            url: "http://hooks".to_owned(),
        },
        condition: Some(Condition::parse("result < 0.5").expect("a condition")),
        credential: String::new(),
        interval: Duration::from_secs(30),
        count: 2,
        failure_limit: 0,
        inconclusive_limit: 0,
        consecutive_error_limit: 0,
    };
    let mut spec = staged();
    spec.stages[0].checks = vec![check];
    spec
}

impl World {
    /// Makes the measurements that are asked for, with this result.
    fn measure(&mut self, result: &MeasurementResult) -> usize {
        let due = self.last.due.clone();
        let time = self.now;
        let made = due.iter().map(|request| Measurement {
            id: request.id.clone(),
            time,
            result: result.clone(),
        });
        self.measurements = made.collect();
        due.len()
    }
}

#[test]
fn l_31_l_32_checks_run_while_the_stage_soaks_and_hold_it() {
    let good = MeasurementResult::Value(serde_json::json!(0.1));
    let mut world = World::new(checked(When::WhileSoaking));
    world.run(1);
    assert_eq!(world.last.due.len(), 1, "the canaries are available");
    assert_eq!(world.measure(&good), 1);
    world.run(1);
    assert!(
        world.last.due.is_empty(),
        "the next one is due after the interval"
    );
    world.now = at(100);
    world.decide();
    assert_eq!(
        world.state(),
        State::Analyzing,
        "the soak is over, and a measurement is missing"
    );
    assert_eq!(world.measure(&good), 1);
    world.run(1);
    assert_eq!(world.stage_states()[0].1, StageState::Complete);
}

#[test]
fn l_26_a_failed_check_rejects_and_an_error_holds() {
    for (result, state) in [
        (
            MeasurementResult::Value(serde_json::json!(0.9)),
            State::RollingBack,
        ),
        (
            MeasurementResult::Error("refused".to_owned()),
            State::AnalysisHeld,
        ),
    ] {
        let mut world = World::new(checked(When::WhileSoaking));
        world.run(1);
        world.measure(&result);
        world.now = at(200);
        world.decide();
        world.decide();
        assert_eq!(world.state(), state, "{result:?}: {}", world.last.status.message);
    }
}

#[test]
fn l_31_a_check_that_errs_is_made_again_and_goes_on_when_there_is_an_answer() {
    let mut world = World::new(checked(When::WhileSoaking));
    world.run(1);
    for minute in 1..8 {
        world.measure(&MeasurementResult::Error("refused".to_owned()));
        world.now = at(minute * 60);
        world.decide();
        assert_eq!(world.state(), State::AnalysisHeld, "said at once");
        assert_eq!(world.last.due.len(), 1, "asked again after each interval");
    }
    let good = MeasurementResult::Value(serde_json::json!(0.1));
    for minute in 8..10 {
        world.measure(&good);
        world.now = at(minute * 60);
        world.decide();
    }
    world.run(3);
    assert_eq!(world.stage_states()[0].1, StageState::Complete);
}

#[test]
fn l_13_checks_before_a_stage_hold_its_begin() {
    let mut world = World::new(checked(When::BeforeStage));
    world.run(3);
    assert_eq!((world.state(), world.on("new").len()), (State::Analyzing, 0));
    for _ in 0..2 {
        world.measure(&MeasurementResult::Value(serde_json::json!(0.1)));
        world.run(3);
    }
    assert_eq!(world.on("new").len(), 2);
}

#[test]
fn l_33_outside_of_windows_nothing_is_replaced_but_a_rollback_is() {
    let window = Window::parse(&[], Some("12:00"), Some("13:00"), "UTC").expect("a window");
    let mut world = World::new(Spec {
        windows: vec![window],
        ..staged()
    });
    world.run(5);
    assert_eq!((world.state(), world.on("new").len()), (State::OutsideWindow, 0));
    assert!(
        world
            .last
            .again
            .iter()
            .any(|(left, _)| left.as_secs() == 7_200 - 50),
        "{:?}",
        world.last.again
    );
    world.now = at(7_200);
    world.run(1);
    assert_eq!(world.on("new").len(), 2);
    // The window closes: nothing more begins; but the way back is open.
    world.now = at(11_000);
    world.run(3);
    assert_eq!(world.on("new").len(), 2);
    world.policy.requests.rollback = Some(world.last.status.digest.clone());
    world.run(3);
    assert_eq!((world.state(), world.on("new").len()), (State::RolledBack, 0));
}
