"""Φ(λ) at each cut: on the judge's verdicts, joined with the same coefficient on gold's.

Both describe the bank. What stands between the two marks is all that the judge's verdicts change.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from voirdire.figures._axes import (
    finite,
    folded,
    mark,
    name_of,
    plain,
    rule,
    signed,
    with_interval,
)
from voirdire.figures.base import Drawing, Rows
from voirdire.figures.svg import RAMP, WIDTH, clean, cut, frame, label, num, paint, text_width
from voirdire.wording import number

MOST = 40
LEFT, RIGHT = 66.0, WIDTH - 176.0
PITCH = 46.0


def _shown(data: Mapping[str, Any]) -> tuple[list[Mapping[str, Any]], int]:
    found = list(data["cuts"])
    return found[:MOST], max(len(found) - MOST, 0)


def _side(one: Mapping[str, Any], key: str) -> tuple[float | None, float | None, float | None]:
    side: Mapping[str, Any] = one.get(key) or {}
    return finite(side.get("value")), finite(side.get("low")), finite(side.get("high"))


def _difference(one: Mapping[str, Any]) -> str:
    value, low, high = _side(one, "difference")
    return "–" if value is None else with_interval(signed(value, 3), low, high, 3)


def _x(value: float) -> float:
    return LEFT + min(max(value, 0.0), 1.0) * (RIGHT - LEFT)


def svg(data: Mapping[str, Any], alt: str) -> str:
    """Draw two joined marks a cut as one ``<svg>`` element."""
    cuts, left_out = _shown(data)
    body = list(_legend(data))
    top = 48.0
    bottom = top + PITCH * len(cuts)
    for i in range(6):
        x = _x(i / 5)
        body.append(rule(x, top - 4, x, bottom))
        said = f"{i / 5:.1f}".rstrip("0").rstrip(".")
        body.append(label(said, x, bottom + 16, size=11, anchor="middle", muted=True))
    body.append(rule(LEFT, bottom, RIGHT, bottom, opacity=0.6))
    for i, one in enumerate(cuts):
        body += _row(data, one, top + (i + 0.5) * PITCH)
    said = "Φ(λ), a coefficient of the bank"
    if left_out:
        said += f"; {left_out:,} more cuts are not drawn"
    body.append(label(said, RIGHT, bottom + 33, size=11, anchor="end", muted=True))
    return frame(body, title=DRAWING.title, alt=alt, height=bottom + 40)


def _legend(data: Mapping[str, Any]) -> Iterator[str]:
    x = 7.0
    for key, gold, after in (("grader", False, "judge"), ("gold", True, "gold")):
        name, note = str(data[key]), "" if data[key] == after else after
        tail = text_width(f" {note}", 12) if note else 0.0
        yield mark(gold, x, 10)
        yield label(name, x + 12, 14, size=12, width=170 + tail, after=note)
        x += 12 + text_width(cut(name, 170, 12), 12) + tail + 24
    yield label("judge less gold", WIDTH, 36, size=11, anchor="end", muted=True)


def _row(data: Mapping[str, Any], one: Mapping[str, Any], y: float) -> Iterator[str]:
    yield label(one["cut"], LEFT - 14, y + 4, size=12, anchor="end", width=LEFT - 40)
    yield label("cut", 0, y + 4, size=11, muted=True)
    at = {"judge": y - 8, "gold": y + 8}
    values = {key: _side(one, key)[0] for key in at}
    if values["judge"] is not None and values["gold"] is not None:
        yield (
            f'<line x1="{num(_x(values["judge"]))}" y1="{num(at["judge"])}" '
            f'x2="{num(_x(values["gold"]))}" y2="{num(at["gold"])}" '
            f'{paint("stroke", "ramp-9", RAMP[9][0])} stroke-width="3" stroke-opacity=".45"/>'
        )
    for key, name in (("judge", data["grader"]), ("gold", data["gold"])):
        value, low, high = _side(one, key)
        if value is None:
            side: Mapping[str, Any] = one.get(key) or {}
            why = f"{name}: {side.get('reason') or 'not said'}"
            yield label(why, LEFT + 6, at[key] + 4, size=11, width=RIGHT - LEFT, muted=True)
            continue
        tip = f"{name}, cut {one['cut']}: {number(value)}"
        if low is not None and high is not None:
            tip += f" [{number(low)}, {number(high)}]"
            yield (
                f'<line x1="{num(_x(low))}" x2="{num(_x(high))}" y1="{num(at[key])}" '
                f'y2="{num(at[key])}" {paint("stroke", "ramp-7", RAMP[7][0])} stroke-width="1.4"'
                + (' stroke-dasharray="4 3"' if key == "gold" else "")
                + "/>"
            )
        yield mark(key == "gold", _x(value), at[key], f"<title>{clean(tip)}</title>")
    yield label(_difference(one), WIDTH, y + 4, size=12, anchor="end", width=WIDTH - RIGHT - 12)


def lines(data: Mapping[str, Any], width: int, ascii_only: bool) -> tuple[str, ...]:
    """Draw one line a cut: both marks on a scale from 0 to 1, with their values and difference."""
    cuts, left_out = _shown(data)
    judge, gold, join = ("*", "o", "-") if ascii_only else ("●", "◇", "─")
    side = min(max((len(str(c["cut"])) for c in cuts), default=1), 6)
    plot = max(min(width - side - 31, 50), 8)
    drawn = [
        f"{sign} {name_of(data[key], width - 2, ascii_only)}"
        for sign, key in ((judge, "grader"), (gold, "gold"))
    ]
    head = f"{'judge':>7} {'gold':>7} {'diff.':>7}"
    drawn.append(" " * (side + 6 + plot) + head)
    for one in cuts:
        strip = [" "] * plot
        spots = {
            key: round(min(max(v, 0.0), 1.0) * (plot - 1))
            for key in ("judge", "gold")
            if (v := _side(one, key)[0]) is not None
        }
        if len(spots) == 2:
            for i in range(min(spots.values()), max(spots.values())):
                strip[i] = join
        for key, sign in (("gold", gold), ("judge", judge)):
            if key in spots:
                strip[spots[key]] = sign
        difference = _side(one, "difference")[0]
        said = [number(_side(one, key)[0]) for key in ("judge", "gold")]
        said.append("–" if difference is None else signed(difference, 3))
        values = " ".join(f"{plain(s, ascii_only):>7}" for s in said)
        drawn.append(f"cut {str(one['cut'])[:6]:>{side}} {''.join(strip)} {values}".rstrip())
    drawn.append(" " * (side + 5) + f"0{'1':>{plot - 1}}")
    said_last = "Φ(λ), a coefficient of the bank; a mark of the judge may hide gold’s."
    drawn += folded(plain(said_last, ascii_only), width)
    if left_out:
        drawn.append(f"{left_out:,} more cuts are not drawn.")
    return tuple(drawn)


def table(data: Mapping[str, Any]) -> Rows:
    """Three rows a cut: on the judge's verdicts, on gold's, and the difference."""
    rows = []
    for one in data["cuts"]:
        for key, name in (("judge", data["grader"]), ("gold", data["gold"]), ("difference", "")):
            side: Mapping[str, Any] = one.get(key) or {}
            rows.append((one["cut"], key, name, *_side(one, key), side.get("reason") or ""))
    return ("cut", "on", "grader", "value", "low", "high", "reason"), tuple(rows)


DRAWING = Drawing(
    name="dependability_cuts",
    title="Φ(λ) on the judge’s verdicts and on gold’s",
    needs="a checklist with gold, and --cut C",
    takes={
        "grader": "the judge",
        "gold": "gold",
        "cuts": "one each: cut, and judge, gold and difference, each with value, low, high and, "
        "where there is no value, reason",
    },
    svg=svg,
    table=table,
    lines=lines,
)
