//! Windows: the times at which running pods may be replaced (L-33).

use std::time::Duration;

use jiff::{
    SignedDuration, Timestamp, ToSpan as _, Zoned,
    civil::{Date, Time, Weekday},
    tz::{TimeZone, TimeZoneDatabase},
};

/// One entry of windows. It opens on each of `days` and closes on the same day, or on the next one if `end` is not after `start`.
#[derive(Debug, Clone, PartialEq)]
pub struct Window {
    days: Vec<Weekday>,
    start: Time,
    end: Time,
    zone: TimeZone,
}

/// The days of a week, as a policy names them.
const DAYS: [(&str, Weekday); 7] = [
    ("Mon", Weekday::Monday),
    ("Tue", Weekday::Tuesday),
    ("Wed", Weekday::Wednesday),
    ("Thu", Weekday::Thursday),
    ("Fri", Weekday::Friday),
    ("Sat", Weekday::Saturday),
    ("Sun", Weekday::Sunday),
];

impl Window {
    /// Reads a window. No days means every day. The times are `HH:MM`; both are required, or neither: then the window is open
    /// all day. `zone` is an IANA name; empty for UTC.
    ///
    /// # Errors
    /// The field, what was found, and what would be right.
    pub fn parse(
        days: &[String],
        start: Option<&str>,
        end: Option<&str>,
        zone: &str,
    ) -> Result<Self, String> {
        let day = |name: &String| {
            let found = DAYS.into_iter().find(|(known, _)| known == name);
            found.map(|(_, day)| day).ok_or_else(|| {
                format!("days has {name:?}: it must be one of Mon, Tue, Wed, Thu, Fri, Sat and Sun")
            })
        };
        let mut days = days.iter().map(day).collect::<Result<Vec<_>, _>>()?;
        if days.is_empty() {
            days.extend(DAYS.map(|(_, day)| day));
        }
        let (start, end) = match (start, end) {
            (Some(start), Some(end)) => (time("startTime", start)?, time("endTime", end)?),
            (None, None) => (Time::midnight(), Time::midnight()),
            (Some(start), None) => return Err(format!("startTime is {start:?} and endTime is missing")),
            (None, Some(end)) => return Err(format!("endTime is {end:?} and startTime is missing")),
        };
        if start == end && start != Time::midnight() {
            return Err(format!(
                "startTime and endTime are both {start}: the window never opens; leave out both for whole days"
            ));
        }
        let zone = match zone {
            "" | "UTC" => TimeZone::UTC,
            // The bundled database: a plan must not depend on the files of the machine.
            name => TimeZoneDatabase::bundled().get(name).map_err(|_| {
                format!("timeZone is {name:?}: it must be a name of the IANA time zone database, for example Europe/Berlin")
            })?,
        };
        Ok(Self {
            days,
            start,
            end,
            zone,
        })
    }

    /// The span of the window that opens on this date; `None` if none does. A time that the clock skips or repeats is the one that
    /// comes first after, or the first of both: a day has the hours that it has.
    fn on(&self, date: Date) -> Option<(Timestamp, Timestamp)> {
        if !self.days.contains(&date.weekday()) {
            return None;
        }
        let at = |date: Date, time: Time| {
            let zoned = self.zone.to_zoned(date.to_datetime(time)).ok()?;
            Some(zoned.timestamp())
        };
        let last = if self.end > self.start {
            date
        } else {
            date.tomorrow().ok()?
        };
        let (start, end) = (at(date, self.start)?, at(last, self.end)?);
        (start < end).then_some((start, end))
    }

    /// Whether the window is open, and if not, when it opens next.
    fn state(&self, now: Timestamp) -> State {
        let today = Zoned::new(now, self.zone.clone()).date();
        // From yesterday on, because that window may still be open. Eight days have every day of a week that is yet to come.
        let dates = (-1..=8).filter_map(|days| today.checked_add(i64::from(days).days()).ok());
        let spans = dates.filter_map(|date| self.on(date));
        let next = spans.into_iter().find(|(_, end)| *end > now);
        match next {
            Some((start, _)) if start <= now => State::Open,
            Some((start, _)) => State::OpensAt(start),
            None => State::Never,
        }
    }
}

enum State {
    Open,
    OpensAt(Timestamp),
    Never,
}

/// How long it takes until one of the windows opens: zero if one is open or if there are none, `None` if none opens within a week.
pub(crate) fn opens_in(windows: &[Window], now: Timestamp) -> Option<Duration> {
    if windows.is_empty() {
        return Some(Duration::ZERO);
    }
    let waits = windows.iter().filter_map(|window| match window.state(now) {
        State::Open => Some(Duration::ZERO),
        State::OpensAt(start) => Some(after(now, start)),
        State::Never => None,
    });
    waits.min()
}

/// How long after `now` this time is.
fn after(now: Timestamp, time: Timestamp) -> Duration {
    time.duration_since(now).max(SignedDuration::ZERO).unsigned_abs()
}

fn time(field: &str, text: &str) -> Result<Time, String> {
    let parse = || {
        let (hour, minute) = text.split_once(':')?;
        let is_number = |part: &str| part.len() == 2 && part.bytes().all(|byte| byte.is_ascii_digit());
        if !is_number(hour) || !is_number(minute) {
            return None;
        }
        Time::new(hour.parse().ok()?, minute.parse().ok()?, 0, 0).ok()
    };
    parse()
        .ok_or_else(|| format!("{field} is {text:?}: it must be a time of day from \"00:00\" to \"23:59\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn window(days: &[&str], start: &str, end: &str, zone: &str) -> Window {
        let days: Vec<_> = days.iter().map(|day| (*day).to_owned()).collect();
        Window::parse(&days, Some(start), Some(end), zone).expect("a window")
    }

    fn minutes(windows: &[Window], now: &str) -> Option<u64> {
        let now: Timestamp = now.parse().expect("a time");
        opens_in(windows, now).map(|wait| wait.as_secs() / 60)
    }

    // 2026-11-02 is a Monday.
    #[test]
    fn l_33_a_window_opens_on_its_days_in_its_zone() {
        let office = [window(&["Mon", "Tue"], "09:00", "16:00", "Europe/Berlin")];
        for (now, wait) in [
            ("2026-11-02T07:59:00Z", Some(1)),
            ("2026-11-02T08:00:00Z", Some(0)),
            ("2026-11-02T14:59:00Z", Some(0)),
            ("2026-11-02T15:00:00Z", Some(17 * 60)),
            ("2026-11-03T15:00:00Z", Some(6 * 24 * 60 - 7 * 60)),
        ] {
            assert_eq!(minutes(&office, now), wait, "{now}");
        }
        assert_eq!(minutes(&[], "2026-11-02T07:59:00Z"), Some(0), "no window: always");
    }

    #[test]
    fn l_33_a_window_over_midnight_belongs_to_the_day_on_which_it_opens() {
        let night = [window(&["Fri"], "22:00", "04:00", "UTC")];
        for (now, wait) in [
            ("2026-11-06T21:59:00Z", Some(1)),
            ("2026-11-07T03:59:00Z", Some(0)),
            ("2026-11-07T04:00:00Z", Some(7 * 24 * 60 - 6 * 60)),
            ("2026-11-06T03:00:00Z", Some(19 * 60)),
        ] {
            assert_eq!(minutes(&night, now), wait, "{now}");
        }
    }

    // The clocks of Berlin skip 2:00 to 3:00 on 2026-03-29, and repeat it on 2026-10-25.
    #[test]
    fn l_33_a_day_of_the_clock_change_has_the_hours_it_has() {
        let night = [window(&[], "01:00", "04:00", "Europe/Berlin")];
        assert_eq!(minutes(&night, "2026-03-29T00:00:00Z"), Some(0));
        assert_eq!(minutes(&night, "2026-03-29T01:59:00Z"), Some(0));
        assert_eq!(
            minutes(&night, "2026-03-29T02:00:00Z"),
            Some(21 * 60),
            "two hours long"
        );
        assert_eq!(
            minutes(&night, "2026-10-25T02:59:00Z"),
            Some(0),
            "four hours long"
        );
        let skipped = [window(&["Sun"], "02:00", "03:00", "Europe/Berlin")];
        let wait = minutes(&skipped, "2026-03-29T00:30:00Z");
        assert_eq!(wait, Some(7 * 24 * 60 - 30), "no hour that does not exist");
    }

    #[test]
    fn a_wrong_window_says_what_would_be_right() {
        let parse = |days: &[&str], start, end, zone: &str| {
            let days: Vec<_> = days.iter().map(|day| (*day).to_owned()).collect();
            Window::parse(&days, start, end, zone).expect_err("a wrong window")
        };
        for (error, said) in [
            (
                parse(&["Monday"], Some("09:00"), Some("10:00"), ""),
                ["\"Monday\"", "Mon,"],
            ),
            (parse(&[], Some("9:00"), Some("10:00"), ""), ["\"9:00\"", "00:00"]),
            (
                parse(&[], Some("09:00"), Some("24:00"), ""),
                ["\"24:00\"", "23:59"],
            ),
            (
                parse(&[], Some("09:00"), None, ""),
                ["startTime", "endTime is missing"],
            ),
            (
                parse(&[], None, Some("09:00"), ""),
                ["endTime", "startTime is missing"],
            ),
            (
                parse(&[], Some("09:00"), Some("09:00"), ""),
                ["09:00", "never opens"],
            ),
            (parse(&[], None, None, "Mars/Base"), ["\"Mars/Base\"", "IANA"]),
        ] {
            assert!(said.iter().all(|part| error.contains(part)), "{error}");
        }
        let days = [window(&["Mon"], "00:00", "00:00", "")];
        assert_eq!(minutes(&days, "2026-11-02T23:59:00Z"), Some(0), "a whole day");
    }
}
