"""How the documentation is built: Sphinx over MyST pages, with the reference made from the code.

`make docs` builds it. Nothing on a page is loaded from elsewhere: formulas are MathML.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))
sys.path.insert(0, str(HERE.parent / "src"))

import generated  # noqa: E402  (stands beside this file)

import voirdire  # noqa: E402

project = "voirdire"
author = "the voirdire authors"
copyright = "the voirdire authors, Apache-2.0"
release = version = voirdire.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.intersphinx"]
intersphinx_mapping: dict[str, Any] = {}  # links to other projects would need the network
exclude_patterns = ["_build"]
myst_enable_extensions = ["dollarmath", "deflist"]
myst_heading_anchors = 4
suppress_warnings = ["misc.highlighting_failure"]  # console blocks elide output with …
autodoc_typehints = "signature"
autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
add_module_names = False
python_use_unqualified_type_names = True
default_role = "code"

html_theme = "furo"
html_title = f"voirdire {version}"
html_copy_source = False
html_show_sphinx = False
html_last_updated_fmt = None
html_static_path = ["_static"]
html_css_files = ["voirdire.css"]
html_theme_options = {
    "light_css_variables": {"color-brand-primary": "#1f5f99", "color-brand-content": "#1f5f99"},
    "dark_css_variables": {"color-brand-primary": "#8fc1ee", "color-brand-content": "#8fc1ee"},
}
html_math_renderer = "mathml"


def _mathml(display: str) -> Any:
    """A visitor that writes a formula as MathML, which browsers set without any script."""

    def visit(self: Any, node: Any) -> None:
        from docutils.nodes import SkipNode
        from latex2mathml.converter import convert

        # As narrow accents they strike through the letters in some browsers.
        tex = node.astext().replace(r"\hat{", r"\widehat{").replace(r"\bar{", r"\overline{")
        self.body.append(convert(tex, display=display))
        raise SkipNode

    return visit


def setup(app: Any) -> None:
    """Make the reference pages, and set formulas as MathML."""
    app.add_html_math_renderer("mathml", (_mathml("inline"), None), (_mathml("block"), None))
    app.connect("builder-inited", lambda app: generated.write(Path(app.srcdir) / "reference"))
