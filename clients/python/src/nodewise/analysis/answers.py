"""What Prometheus and webhooks answer, as conditions of a check read it."""

import json
import math
from typing import Any, NamedTuple

from .. import v1
from ..measurements import Result, require_short
from ..sanitize import one_line

_INFO = "PromQL info:"
"""Prometheus reports what is worth knowing about a query among the warnings, if it is older than version 3."""
_VERDICTS = {
    "pass": v1.ANALYSIS_VERDICT_PASS,
    "fail": v1.ANALYSIS_VERDICT_FAIL,
    "inconclusive": v1.ANALYSIS_VERDICT_INCONCLUSIVE,
}


class Answer(NamedTuple):
    """What was answered."""

    status: int
    body: bytes

    def require_success(self) -> None:
        """Raises `ValueError` if the status is none of success."""
        if not 200 <= self.status < 300:
            hint = ", and no redirect is followed" if 300 <= self.status < 400 else ""
            raise ValueError(f"it answered {self.status}{hint}")


def of_webhook(answer: Answer) -> Result:
    """The verdict of an answer, or its value as JSON: null if it is empty, and its text if it is no JSON. Raises
    `ValueError`.
    """
    answer.require_success()
    text = answer.body.decode(errors="replace").strip()
    # Before it is parsed, which may take many times its size.
    require_short(text)
    if not text:
        return "null"
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return _value(text)
    if not isinstance(value, dict) or not isinstance(value.get("verdict"), str):
        return text
    if value["verdict"] not in _VERDICTS:
        raise ValueError(f"its verdict is {value['verdict']!r}, and not pass, fail or inconclusive")
    message = value.get("message")
    return v1.MeasuredVerdict(
        verdict=_VERDICTS[value["verdict"]], message=one_line(message) if isinstance(message, str) else ""
    )


def of_prometheus(answer: Answer) -> Result:
    """The value of the only sample, or the list of the values of several. Raises `ValueError`."""
    try:
        said = json.loads(answer.body)
    except (ValueError, RecursionError):
        said = None
    said = said if isinstance(said, dict) else {}
    if said.get("status") == "error":
        # The API explains its refusals.
        raise ValueError(f"{said.get('errorType')}: {said.get('error')}")
    answer.require_success()
    if said.get("status") != "success":
        raise ValueError("its answer is not that of a Prometheus")
    warnings = said.get("warnings")
    for warning in warnings if isinstance(warnings, list) else ():
        # The result may be a part of what there is, and what is missing may be the bad part.
        if not str(warning).startswith(_INFO):
            raise ValueError(f"it warns that {warning!r}")
    data = said.get("data")
    kind, result = (data.get("resultType"), data.get("result")) if isinstance(data, dict) else (None, None)
    if kind == "scalar":
        return _value(_number(result, ""))
    if kind != "vector" or not isinstance(result, list):
        raise ValueError(f"the query gives a {kind}, and an instant vector or a scalar is needed")
    if not result:
        raise ValueError("the query has no result: no series matches")
    numbers = [_of_series(series) for series in result]
    return _value(numbers[0] if len(numbers) == 1 else numbers)


def _value(value: Any) -> str:
    """A value as JSON. Raises `ValueError` if it is too long."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    require_short(text)
    return text


def _of_series(series: Any) -> float:
    if not isinstance(series, dict):
        raise ValueError("its result cannot be read")
    metric = json.dumps(series["metric"]) if series.get("metric") else ""
    if "value" not in series:
        raise ValueError(f"{metric} is a histogram, and a number is needed")
    return _number(series["value"], metric)


def _number(sample: Any, metric: str) -> float:
    """The number of a sample: a time and a number as text. A condition would be false for NaN, which is no measurement
    of anything: often nothing was counted yet (0 / 0).
    """
    text = sample[1] if isinstance(sample, list) and len(sample) == 2 else None
    try:
        number = float(text) if isinstance(text, str) else math.nan
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        of = f" of {metric}" if metric else ""
        raise ValueError(f"the value{of} is {text}, about which no condition can decide: the query must give a number")
    return number
