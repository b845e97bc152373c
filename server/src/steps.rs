//! The steps of a call, as they are in its span.

use nodewise_telemetry::traces::Step;

/// From the message to what the planner reads.
pub(crate) const PARSE: Step = Step {
    name: "parse",
    duration: "nodewise.parse.duration",
};

/// What the planner does.
pub(crate) const DECIDE: Step = Step {
    name: "decide",
    duration: "nodewise.decide.duration",
};

/// From the planner's result to the message.
pub(crate) const RENDER: Step = Step {
    name: "render",
    duration: "nodewise.render.duration",
};
