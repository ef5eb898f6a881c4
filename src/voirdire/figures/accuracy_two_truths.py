"""Accuracy of a gate against the judge's own true score and against gold, cut by cut (TWM Figure A.2 b).

The judge's own true score is what repeated scoring would settle at; gold is what is true. What stands
between the two marks is what a coefficient that looks at the judge alone cannot see.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from voirdire.figures._axes import finite, folded, mark, plain, rule, signed
from voirdire.figures.base import Drawing, Rows
from voirdire.figures.svg import RAMP, WIDTH, clean, frame, label, num, paint
from voirdire.wording import number

MOST = 40
LEFT, RIGHT = 66.0, WIDTH - 150.0
PITCH = 46.0
TOP = 48.0
SIDES = (
    ("own", False, "against its own true score"),
    ("gold", True, "against gold"),
)


def _cuts(data: Mapping[str, Any]) -> tuple[list[Mapping[str, Any]], int]:
    found = list(data["cuts"])
    return found[:MOST], max(len(found) - MOST, 0)


def _least(cuts: list[Mapping[str, Any]]) -> float:
    """Where the axis starts: at a tenth, below all that is drawn."""
    values = [v for one in cuts for side, _, _ in SIDES if (v := finite(one.get(side))) is not None]
    return max(0.0, int(10 * min(values, default=0.0) - 0.5) / 10)


def svg(data: Mapping[str, Any], alt: str) -> str:
    """Draw two joined marks a cut as one ``<svg>`` element."""
    cuts, left_out = _cuts(data)
    least = _least(cuts)
    bottom = TOP + PITCH * len(cuts)

    def at_x(value: float) -> float:
        return LEFT + (min(max(value, least), 1.0) - least) / (1 - least) * (RIGHT - LEFT)

    body, x = list[str](), 7.0
    for _, gold, words in SIDES:
        body += [mark(gold, x, 10), label(words, x + 12, 14, size=12)]
        x += 200
    body.append(label("own less gold", WIDTH, 36, size=11, anchor="end", muted=True))
    for i in range(round(10 * least), 11):
        body.append(rule(at_x(i / 10), TOP - 4, at_x(i / 10), bottom))
        said = f"{i / 10:.1f}" if 0 < i < 10 else f"{i // 10}"
        body.append(label(said, at_x(i / 10), bottom + 16, size=11, anchor="middle", muted=True))
    body.append(rule(LEFT, bottom, RIGHT, bottom, opacity=0.6))
    for i, one in enumerate(cuts):
        body += _row(one, TOP + (i + 0.5) * PITCH, at_x)
    said = "accuracy of the gate"
    if least:
        said += f"; the axis starts at {least:.1f}"
    if left_out:
        said += f"; {left_out:,} more cuts are not drawn"
    body.append(label(said, RIGHT, bottom + 33, size=11, anchor="end", muted=True))
    return frame(body, title=DRAWING.title, alt=alt, height=bottom + 40)


def _row(one: Mapping[str, Any], y: float, at_x: Any) -> Iterator[str]:
    yield label("cut", 0, y + 4, size=11, muted=True)
    yield label(one["cut"], LEFT - 14, y + 4, size=12, anchor="end", width=LEFT - 40)
    values = {side: finite(one.get(side)) for side, _, _ in SIDES}
    own, gold = values["own"], values["gold"]
    if own is not None and gold is not None:
        yield (
            f'<line x1="{num(at_x(own))}" y1="{num(y)}" x2="{num(at_x(gold))}" y2="{num(y)}" '
            f'{paint("stroke", "ramp-9", RAMP[9][0])} stroke-width="3" stroke-opacity=".45"/>'
        )
        yield label(signed(own - gold, 3), WIDTH, y + 4, size=12, anchor="end")
    for side, is_gold, words in SIDES:
        value = values[side]
        if value is None:
            continue
        tip = f"cut {one['cut']}, {words}: {number(value)}"
        yield mark(is_gold, at_x(value), y, f"<title>{clean(tip)}</title>")
        other = gold if side == "own" else own
        right = other is None or value > other or (value == other and not is_gold)
        x = at_x(value) + (11 if right else -11)
        yield label(number(value), x, y + 4, size=11, anchor="start" if right else "end")


def lines(data: Mapping[str, Any], width: int, ascii_only: bool) -> tuple[str, ...]:
    """Draw one line a cut: both marks on a scale up to 1, with their values and difference."""
    cuts, left_out = _cuts(data)
    signs = {"own": "*", "gold": "o"} if ascii_only else {"own": "●", "gold": "◇"}
    join = "-" if ascii_only else "─"
    least = _least(cuts)
    side = min(max((len(str(c["cut"])) for c in cuts), default=1), 6)
    plot = max(min(width - side - 31, 50), 8)
    drawn = [f"{signs[name]} {words}" for name, _, words in SIDES]
    drawn.append(" " * (side + 6 + plot) + f"{'own':>7} {'gold':>7} {'diff.':>7}")
    for one in cuts:
        strip = [" "] * plot
        values = {name: finite(one.get(name)) for name, _, _ in SIDES}
        spots = {
            name: round((min(max(v, least), 1.0) - least) / (1 - least) * (plot - 1))
            for name, v in values.items()
            if v is not None
        }
        if len(spots) == 2:
            for i in range(min(spots.values()), max(spots.values())):
                strip[i] = join
        for name, spot in spots.items():
            strip[spot] = signs[name]
        own, gold = values["own"], values["gold"]
        said = [number(own), number(gold)]
        said.append("–" if own is None or gold is None else signed(own - gold, 3))
        numbers = " ".join(f"{plain(s, ascii_only):>7}" for s in said)
        cut = "".join(c for c in str(one["cut"])[:6] if c.isprintable())
        drawn.append(f"cut {cut:>{side}} {''.join(strip)} {numbers}".rstrip())
    drawn.append(" " * (side + 5) + f"{least:g}{'1':>{plot - len(f'{least:g}')}}")
    if left_out:
        drawn += folded(f"{left_out:,} more cuts are not drawn.", width)
    return tuple(drawn)


def table(data: Mapping[str, Any]) -> Rows:
    """One row a cut: both accuracies and their difference."""
    rows = []
    for one in data["cuts"]:
        own, gold = finite(one.get("own")), finite(one.get("gold"))
        less = None if own is None or gold is None else own - gold
        rows.append((one["cut"], own, gold, less))
    return ("cut", "own", "gold", "own_less_gold"), tuple(rows)


DRAWING = Drawing(
    name="accuracy_two_truths",
    title="Accuracy against the judge’s own true score and against gold",
    needs="no file: simulated banks",
    takes={
        "cuts": "one each: cut, own and gold, the accuracy of pass or fail against each in 0–1",
    },
    svg=svg,
    table=table,
    lines=lines,
)
