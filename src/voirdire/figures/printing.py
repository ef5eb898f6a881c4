"""Figures as files: the SVG that a figure draws, alone, as vector PDF, or as PNG.

The same ``<svg>`` element stands in a page and makes the files, so that there is one drawing. For PDF
and PNG its shapes are set with matplotlib at just their coordinates; no axes, ticks or layout of
matplotlib's are used. What is understood is what the figures use: rectangles, circles, lines, paths
of straight and Bézier pieces, text with spans, groups, patterns, clips, and colours with a CSS
variable in them. Anything else raises, since a figure must not lose a part without a word.
"""

from __future__ import annotations

import io
import math
import re
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any
from xml.etree import ElementTree

from voirdire.errors import MissingExtra, UsageError, VoirdireError
from voirdire.figures.svg import dark_variables

__all__ = ["check_installed", "missing_letters", "pdf", "png", "standalone"]

INK, PAPER = "#000000", "#ffffff"
INK_DARK, PAPER_DARK = "#e6e4df", "#15181c"
MARGIN = 6.0  # around a figure in a file, where no page gives it any
POINTS = 0.75  # of a CSS pixel, so that a figure is as large on paper as on a page at 100 %
MOST_PIXELS = 100_000_000

# The first is in matplotlib itself, so that files do not differ with the fonts of a machine; the
# others stand in for letters that it lacks, where they are installed.
FONTS = (
    "DejaVu Sans",
    "Noto Sans",
    "Noto Sans CJK SC",
    "Noto Sans CJK JP",
    "Noto Sans CJK KR",
    "Noto Sans SC",
    "Noto Sans JP",
    "Noto Sans KR",
    "Noto Sans Devanagari",
    "Noto Sans Thai",
    "WenQuanYi Zen Hei",
    "Microsoft YaHei",
    "Malgun Gothic",
    "Yu Gothic",
    "Hiragino Sans",
    "PingFang SC",
    "Arial Unicode MS",
)
# Everything of matplotlib's settings that shows in what is drawn here, whatever a user has set.
SETTINGS: Mapping[str, Any] = {
    "lines.scale_dashes": False,
    "patch.antialiased": True,
    "path.effects": [],
    "path.simplify": False,
    "path.sketch": None,
    "path.snap": False,
    "pdf.compression": 9,
    "pdf.fonttype": 42,
    "pdf.inheritcolor": False,
    "pdf.use14corefonts": False,
    "text.antialiased": True,
    "text.hinting": "no_hinting",
    "text.usetex": False,
}
_SVG = "{http://www.w3.org/2000/svg}"
_VARIABLE = re.compile(r"var\(\s*--([\w-]+)\s*(?:,\s*([^()]+?)\s*)?\)")
_NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"
_STEP = re.compile(rf"([A-Za-z])|({_NUMBER})")
_INHERITED = (
    "fill",
    "fill-opacity",
    "font-size",
    "font-weight",
    "stroke",
    "stroke-dasharray",
    "stroke-linecap",
    "stroke-linejoin",
    "stroke-opacity",
    "stroke-width",
    "text-anchor",
)
_OWN = {  # what each element may carry beside that
    "svg": {"viewBox", "width", "height", "role", "aria-label", "aria-labelledby", "font-family"},
    "g": set[str](),
    "rect": {"x", "y", "width", "height"},
    "circle": {"cx", "cy", "r"},
    "line": {"x1", "y1", "x2", "y2"},
    "path": {"d"},
    "text": {"x", "y"},
    "tspan": set[str](),
}
_SILENT = {"title", "desc", "defs"}
_ANYWHERE = {*_INHERITED, "id", "class", "style", "opacity", "transform", "clip-path"}
_STYLES = {*_INHERITED, "opacity", "unicode-bidi"}


def standalone(svg: str, *, dark: bool = False) -> bytes:
    """The figure as an SVG file: with a size, and with the colours of a dark page where asked."""
    root = ElementTree.fromstring(svg)
    left, top, width, height = _box(root)
    # A paper of its own, since a viewer may show it on any colour.
    style = f"background:{PAPER};color:{INK}"
    if dark:
        style = f"background:{PAPER_DARK};color:{INK_DARK};{dark_variables()}"
    size = f'<svg width="{width:g}" height="{height:g}" style="{style}"'
    box = f'viewBox="{left:g} {top:g} {width:g} {height:g}"'
    whole = re.sub(r'viewBox="[^"]*"', box, svg.replace("<svg", size, 1), count=1)
    return whole.encode("utf-8", "replace")


def pdf(svg: str, *, dark: bool = False) -> bytes:
    """The figure as one page of PDF, vectors and text, with its fonts: same figure, same bytes.

    Raises :class:`MissingExtra` without matplotlib.
    """
    page, title, alt = _page(svg, dark=dark, opaque=dark)
    about = {"Title": title, "Subject": alt, "Creator": "voirdire"}
    dates = {"CreationDate": None, "ModDate": None, "Producer": None}
    return _saved(page, "pdf", dpi=72, metadata={k: v for k, v in about.items() if v} | dates)


def png(svg: str, *, scale: float = 2.0, dark: bool = False) -> bytes:
    """The figure as PNG, ``scale`` pixels to a pixel of the page (2: for a screen of high density).

    Raises :class:`MissingExtra` without matplotlib, and :class:`UsageError` for a scale that gives
    no picture or an excessive one.
    """
    root = ElementTree.fromstring(svg)
    _, _, width, height = _box(root)
    if not (math.isfinite(scale) and scale > 0) or width * height * scale**2 > MOST_PIXELS:
        most = math.sqrt(MOST_PIXELS / (width * height))
        raise UsageError(
            f"{96 * scale:g} dots per inch: give a number above 0 and up to {96 * most:,.0f}."
        )
    page, title, alt = _page(svg, dark=dark, opaque=True)
    about = {"Title": title, "Description": alt, "Software": None}
    return _saved(page, "png", dpi=scale * 72 / POINTS, metadata=about)


def missing_letters(svg: str) -> tuple[str, ...]:
    """The letters of a figure for which no font is at hand; PDF and PNG show a box for each."""
    check_installed()
    from matplotlib import font_manager

    root = ElementTree.fromstring(svg)
    drawn = {c for e in root.iter(f"{_SVG}text") for t in _texts(e) for c in t if not c.isspace()}
    for family in _families():
        path = font_manager.findfont(font_manager.FontProperties(family=[family]))
        drawn -= {chr(c) for c in font_manager.get_font(path).get_charmap()}
    return tuple(sorted(drawn))


def check_installed() -> None:
    """Raise :class:`MissingExtra` where matplotlib is not installed, or older than what is needed."""
    try:
        import matplotlib
    except ModuleNotFoundError as error:
        if error.name != "matplotlib":
            raise
        raise MissingExtra(
            "PDF and PNG need matplotlib, which is not installed. Install it with: "
            "pip install 'voirdire[plots]'. SVG and CSV need nothing."
        ) from error
    found = tuple(int(part) for part in re.findall(r"\d+", matplotlib.__version__)[:2])
    if found < (3, 11):
        raise MissingExtra(
            f"PDF and PNG need matplotlib 3.11 or newer; {matplotlib.__version__} is installed. "
            "Install it with: pip install 'voirdire[plots]'"
        )


def _settings() -> Any:
    """matplotlib under the settings of this module, as a context."""
    import matplotlib as mpl

    settings: Any = dict(SETTINGS)
    return mpl.rc_context(settings)


def _families() -> list[str]:
    from matplotlib import font_manager

    known = set(font_manager.get_font_names())
    return [name for name in FONTS if name in known]


def _saved(page: Any, kind: str, **how: Any) -> bytes:
    held = io.BytesIO()
    with _settings(), warnings.catch_warnings():
        # Letters without a font show as boxes; missing_letters() names them.
        warnings.filterwarnings("ignore", message=".*Glyph", category=UserWarning)
        page.savefig(held, format=kind, **how)
    return held.getvalue()


# --- reading --------------------------------------------------------------------------------------


def _box(root: ElementTree.Element) -> tuple[float, float, float, float]:
    """Left, top, width and height of the figure with its margin."""
    x, y, width, height = (
        float(v) for v in re.split(r"[\s,]+", (root.get("viewBox") or "").strip())
    )
    return x - MARGIN, y - MARGIN, width + 2 * MARGIN, height + 2 * MARGIN


def _texts(element: ElementTree.Element) -> Iterator[str]:
    """The text that an element draws, in order, without titles that show on hovering."""
    if element.text:
        yield element.text
    for child in element:
        if _name(child) not in _SILENT:
            yield from _texts(child)
        if child.tail:
            yield child.tail


def _name(element: ElementTree.Element) -> str:
    return str(element.tag).removeprefix(_SVG)


def _length(text: str | None, default: float = 0.0) -> float:
    return default if text is None else float(text.removesuffix("px"))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Pen:
    """What an element inherits: its presentation, where it stands, how far it shows through, its clip."""

    look: Mapping[str, str]
    place: Any
    opacity: float = 1.0
    clip: Any = None


@dataclass(kw_only=True)
class _Sheet:
    """One figure being set: matplotlib's page, the colours that hold, and the definitions."""

    page: Any
    base: Any
    ink: str
    variables: Mapping[str, str]
    defs: Mapping[str, ElementTree.Element]
    fonts: list[str]
    widths: dict[tuple[str, float, int], float] = field(default_factory=dict)


def _page(svg: str, *, dark: bool, opaque: bool) -> tuple[Any, str, str]:
    """The figure as a page of matplotlib, with its title and the text that stands for it."""
    check_installed()
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.transforms import Affine2D

    root = ElementTree.fromstring(svg)
    left, top, width, height = _box(root)
    with _settings():
        page = Figure(figsize=(width * POINTS / 72, height * POINTS / 72), dpi=72)
        FigureCanvasAgg(page)
        page.patch.set_facecolor(PAPER_DARK if dark else PAPER)
        page.patch.set_alpha(1.0 if opaque else 0.0)
        unit = POINTS / 72
        base = Affine2D().translate(-left, -top - height).scale(unit, -unit) + page.dpi_scale_trans
        sheet = _Sheet(
            page=page,
            base=base,
            ink=INK_DARK if dark else INK,
            variables=dict(re.findall(r"--([\w-]+):([^;]+);", dark_variables())) if dark else {},
            defs={i: e for e in root.iter() if (i := e.get("id")) is not None},
            fonts=_families(),
        )
        _element(sheet, root, _Pen(look={"fill": "#000000"}, place=Affine2D()))
    said = {_name(e): "".join(e.itertext()) for e in root if _name(e) in ("title", "desc")}
    return page, said.get("title", ""), said.get("desc", root.get("aria-label") or "")


# --- setting --------------------------------------------------------------------------------------


def _element(sheet: _Sheet, element: ElementTree.Element, pen: _Pen) -> None:
    name = _name(element)
    if name in _SILENT:
        return
    if name not in _OWN:
        raise VoirdireError(f"A figure uses <{name}>, which is not drawn as PDF or PNG. Write SVG.")
    pen = _changed(sheet, element, pen, name)
    match name:
        case "svg" | "g":
            for child in element:
                _element(sheet, child, pen)
        case "text":
            _text(sheet, element, pen)
        case _:
            _shape(sheet, _outline(element, name), pen)


def _changed(sheet: _Sheet, element: ElementTree.Element, pen: _Pen, name: str) -> _Pen:
    """The pen with what the element says of itself."""
    given = dict(element.attrib)
    for rule in (given.pop("style", "") or "").split(";"):
        key, colon, value = rule.partition(":")
        if colon:
            if key.strip() not in _STYLES:
                raise VoirdireError(f"A figure uses the style {key.strip()!r}, which is not drawn as "
                                    "PDF or PNG. Write SVG.")  # fmt: skip
            given[key.strip()] = value.strip()
    unknown = sorted(set(given) - _ANYWHERE - _OWN[name] - {"unicode-bidi"})
    if unknown:
        raise VoirdireError(
            f"A figure uses {unknown[0]!r} on <{name}>, which is not drawn as PDF or PNG. Write SVG."
        )
    look = dict(pen.look) | {k: _resolved(sheet, given[k]) for k in _INHERITED if k in given}
    place = pen.place
    if "transform" in given:
        place = _transform(given["transform"]) + place
    clip = pen.clip
    if "clip-path" in given:
        if clip is not None:
            raise VoirdireError("A figure has a clip in a clip, which is not drawn. Write SVG.")
        (inside,) = sheet.defs[_target(given["clip-path"])]
        clip = _outline(inside, _name(inside)).transformed(place)
    opacity = pen.opacity * float(given.get("opacity", 1))
    return replace(pen, look=look, place=place, clip=clip, opacity=opacity)


def _resolved(sheet: _Sheet, value: str) -> str:
    """A value with its CSS variable looked up, or with the fallback in its place."""
    return _VARIABLE.sub(lambda m: sheet.variables.get(m[1], m[2] or ""), value)


def _target(value: str) -> str:
    return value.removeprefix("url(#").removesuffix(")")


def _transform(text: str) -> Any:
    """``translate``, ``rotate`` (with or without a centre) and ``scale``, as they are read: outermost first."""
    from matplotlib.transforms import Affine2D

    made = Affine2D()
    for kind, inside in reversed(re.findall(r"(\w+)\(([^)]*)\)", text)):
        v = [float(x) for x in re.findall(_NUMBER, inside)]
        if kind == "translate":
            made = made.translate(v[0], v[1] if len(v) > 1 else 0.0)
        elif kind == "rotate":
            x, y = v[1:3] if len(v) > 2 else (0.0, 0.0)
            made = made.rotate_deg_around(x, y, v[0])
        elif kind == "scale":
            made = made.scale(v[0], v[-1])
        else:
            raise VoirdireError(
                f"A figure uses {kind}(), which is not drawn as PDF or PNG. Write SVG."
            )
    return made


def _outline(element: ElementTree.Element, name: str) -> Any:
    """The outline of a shape in the coordinates of the drawing."""
    from matplotlib.path import Path

    at = {k: _length(element.get(k)) for k in _OWN[name] - {"d"}}
    match name:
        case "rect":
            x, y, w, h = at["x"], at["y"], at["width"], at["height"]
            corners = [(x, y), (x + w, y), (x + w, y + h), (x, y + h), (x, y)]
            return Path(corners, closed=True)
        case "circle":
            return Path.circle((at["cx"], at["cy"]), at["r"])
        case "line":
            return Path([(at["x1"], at["y1"]), (at["x2"], at["y2"])])
        case "path":
            return _path(element.get("d") or "")
        case _:
            raise VoirdireError(f"A figure clips by <{name}>, which is not drawn. Write SVG.")


def _path(d: str) -> Any:
    """The outline that a ``d`` describes: M, L, H, V, C, Q and Z, absolute or relative."""
    from matplotlib.path import Path

    takes = {"M": 2, "L": 2, "H": 1, "V": 1, "C": 6, "Q": 4, "Z": 0}
    tokens = [(m[1], m[2]) for m in _STEP.finditer(d)]
    points, codes = list[tuple[float, float]](), list[Any]()
    x = y = start_x = start_y = 0.0
    i, command = 0, ""
    while i < len(tokens):
        letter = tokens[i][0]
        if letter:
            command, i = letter, i + 1
        kind = command.upper()
        if kind not in takes:
            raise VoirdireError(
                f"A path of a figure uses {command!r}, which is not drawn as PDF or PNG."
            )
        if kind == "Z":
            points.append((start_x, start_y))
            codes.append(Path.CLOSEPOLY)
            x, y = start_x, start_y
            continue
        values = [float(number) for _, number in tokens[i : i + takes[kind]]]
        i += takes[kind]
        from_x, from_y = (x, y) if command.islower() else (0.0, 0.0)
        if kind == "H":
            pairs = [(values[0] + from_x, y)]
        elif kind == "V":
            pairs = [(x, values[0] + from_y)]
        else:
            pairs = [(values[j] + from_x, values[j + 1] + from_y) for j in range(0, len(values), 2)]
        code = {"M": Path.MOVETO, "C": Path.CURVE4, "Q": Path.CURVE3}.get(kind, Path.LINETO)
        points += pairs
        codes += [code] * len(pairs)
        x, y = pairs[-1]
        if kind == "M":
            start_x, start_y = x, y
            command = "l" if command == "m" else "L"  # what follows without a letter
    return Path(points or [(0.0, 0.0)], codes or [Path.MOVETO])


def _colour(sheet: _Sheet, pen: _Pen, kind: str) -> Any:
    """A fill or stroke as RGBA; ``None`` for none, a pattern as its element."""
    from matplotlib.colors import to_rgba

    value = pen.look.get(kind, "none").strip()
    if value == "none":
        return None
    if value.startswith("url("):
        return sheet.defs[_target(value)]
    if value == "currentColor":
        value = sheet.ink
    return to_rgba(value, float(pen.look.get(f"{kind}-opacity", 1)) * pen.opacity)


def _shape(sheet: _Sheet, outline: Any, pen: _Pen) -> None:
    """Fill, then stroke."""
    fill, stroke = _colour(sheet, pen, "fill"), _colour(sheet, pen, "stroke")
    if isinstance(fill, ElementTree.Element):
        _pattern(sheet, fill, outline, pen)
        fill = None
    width = _length(pen.look.get("stroke-width"), 1.0) * POINTS
    if fill is not None:
        _add(sheet, outline, pen, facecolor=fill, edgecolor="none", linewidth=0)
    if stroke is None or not width:
        return
    dashes = [float(v) * POINTS for v in re.findall(_NUMBER, pen.look.get("stroke-dasharray", ""))]
    _add(
        sheet,
        outline,
        pen,
        facecolor="none",
        edgecolor=stroke,
        linewidth=width,
        linestyle=(0, dashes * (1 + len(dashes) % 2)) if dashes else "solid",
        capstyle={"square": "projecting"}.get(cap := pen.look.get("stroke-linecap", "butt"), cap),
        joinstyle=pen.look.get("stroke-linejoin", "miter"),
    )


def _add(sheet: _Sheet, outline: Any, pen: _Pen, *, clip: Any = None, **look: Any) -> None:
    from matplotlib.patches import PathPatch

    patch = PathPatch(outline, transform=pen.place + sheet.base, snap=False, **look)
    sheet.page.add_artist(patch)
    if clip is not None:
        patch.set_clip_path(clip, pen.place + sheet.base)
    elif pen.clip is not None:
        patch.set_clip_path(pen.clip, sheet.base)
    else:
        patch.set_clip_on(False)


def _pattern(sheet: _Sheet, pattern: ElementTree.Element, outline: Any, pen: _Pen) -> None:
    """Repeat the tiles of a pattern over a shape, clipped to it.

    A part that spans its tile is drawn as one stripe, or as one area: seams between tiles would show.
    """
    from matplotlib.path import Path

    across, down = _length(pattern.get("width")), _length(pattern.get("height"))
    turned = _transform(pattern.get("patternTransform", ""))
    box = outline.transformed(turned.inverted()).get_extents()
    if box.width <= 0 and box.height <= 0:
        return
    columns = range(math.floor(box.x0 / across), math.ceil(box.x1 / across) + 1)
    rows = range(math.floor(box.y0 / down), math.ceil(box.y1 / down) + 1)
    inner = replace(pen, look={"fill": "#000000"}, opacity=pen.opacity)
    for part in pattern:
        name = _name(part)
        if name in _SILENT:
            continue
        pen_of_part = _changed(sheet, part, inner, name)
        fill = _colour(sheet, pen_of_part, "fill")
        if fill is None:
            continue
        whole_x = name == "rect" and _length(part.get("width")) >= across
        whole_y = name == "rect" and _length(part.get("height")) >= down
        if whole_x and whole_y:
            _add(sheet, outline, pen, facecolor=fill, edgecolor="none", linewidth=0)
            continue
        shape = _outline(part, name)
        pieces = [
            _stretched(shape, i * across, j * down, across * len(columns) if whole_x else 0,
                       down * len(rows) if whole_y else 0)
            for i in (columns[:1] if whole_x else columns)
            for j in (rows[:1] if whole_y else rows)
        ]  # fmt: skip
        tiles = Path.make_compound_path(*pieces).transformed(turned)
        _add(sheet, tiles, pen, clip=outline, facecolor=fill, edgecolor="none", linewidth=0)


def _stretched(shape: Any, x: float, y: float, wide: float, tall: float) -> Any:
    """A tile's shape at its place; a stripe is as long as all its tiles together."""
    from matplotlib.path import Path

    box = shape.get_extents()
    moved = shape.vertices.copy()
    if wide:
        moved[:, 0] = (moved[:, 0] > box.x0) * wide
    if tall:
        moved[:, 1] = (moved[:, 1] > box.y0) * tall
    moved += (x, y)
    return Path(moved, shape.codes)


# --- text -----------------------------------------------------------------------------------------


def _text(sheet: _Sheet, element: ElementTree.Element, pen: _Pen) -> None:
    """Set the spans of a text element one after the other, from where its anchor says."""
    runs = _collapsed(list(_runs(sheet, element, pen)))
    widths = [_width(sheet, said, one) for said, one in runs]
    anchor = pen.look.get("text-anchor", "start")
    x, y = _length(element.get("x")), _length(element.get("y"))
    x -= {"start": 0.0, "middle": 0.5, "end": 1.0}[anchor] * sum(widths)
    for (said, one), width in zip(runs, widths, strict=True):
        _set(sheet, said, one, x, y)
        x += width


def _runs(sheet: _Sheet, element: ElementTree.Element, pen: _Pen) -> Iterator[tuple[str, _Pen]]:
    if element.text:
        yield element.text, pen
    for child in element:
        name = _name(child)
        if name == "tspan":
            yield from _runs(sheet, child, _changed(sheet, child, pen, name))
        elif name not in _SILENT:
            raise VoirdireError(f"A figure uses <{name}> in a text, which is not drawn. Write SVG.")
        if child.tail:
            yield child.tail, pen


def _collapsed(runs: list[tuple[str, _Pen]]) -> list[tuple[str, _Pen]]:
    """Runs as a browser shows them: white space is one space, and none at the start."""
    made, spaced = list[tuple[str, _Pen]](), True
    for said, pen in runs:
        said = re.sub(r"[ \t\r\n]+", " ", said)
        said = said[1:] if spaced and said.startswith(" ") else said
        spaced = said.endswith(" ") if said else spaced
        made.append((said, pen))
    while made and not made[-1][0].strip(" "):
        made.pop()
    if made:
        made[-1] = (made[-1][0].rstrip(" "), made[-1][1])
    return made


def _font(sheet: _Sheet, pen: _Pen) -> Any:
    from matplotlib.font_manager import FontProperties

    return FontProperties(
        family=sheet.fonts,
        size=_length(pen.look.get("font-size"), 16.0) * POINTS,
        weight=700 if _length(pen.look.get("font-weight"), 400.0) >= 600 else 400,
    )


def _width(sheet: _Sheet, text: str, pen: _Pen) -> float:
    """How far a text moves the pen, spaces at its ends with it."""
    from matplotlib.textpath import TextToPath

    font = _font(sheet, pen)
    key = (text, font.get_size_in_points(), int(font.get_weight()))
    if key not in sheet.widths:
        measure = TextToPath().get_text_width_height_descent
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=".*Glyph", category=UserWarning)
            # Bars at both ends, since what is measured is ink, which leaves spaces out.
            ends = measure("||", font, False)[0]
            sheet.widths[key] = (measure(f"|{text}|", font, False)[0] - ends) / POINTS
    return sheet.widths[key]


def _set(sheet: _Sheet, text: str, pen: _Pen, x: float, y: float) -> None:
    from matplotlib.text import Text

    if not text.strip():
        return
    (at_x, at_y), (end_x, end_y) = pen.place.transform([(x, y), (x + 1.0, y)])
    artist = Text(
        at_x,
        at_y,
        text,
        color=_colour(sheet, pen, "fill"),
        fontproperties=_font(sheet, pen),
        ha="left",
        va="baseline",
        rotation=-math.degrees(math.atan2(end_y - at_y, end_x - at_x)),
        rotation_mode="anchor",
        parse_math=False,
        transform=sheet.base,
        clip_on=False,
    )
    sheet.page.add_artist(artist)
    artist.set_clip_on(False)
