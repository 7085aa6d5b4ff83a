"""Build the documentation with Sphinx: ``make docs``."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sphinx import addnodes
from sphinx.errors import ExtensionError

sys.path.insert(0, str(Path(__file__).parent))

import generate

if TYPE_CHECKING:
    from sphinx.application import Sphinx

DOCS = Path(__file__).parent
SOURCE = "https://github.com/kg-memory/kg-memory/blob/main"
"""Where links to files outside of the documentation lead."""
OUTSIDE = re.compile(r"(?<=\]\()(?!\w+:|#|/)([^)\s#]+)(?=[)#])")
"""The target of a relative link."""

project = "kg-memory"
author = "The kg-memory maintainers"
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinxcontrib.mermaid"]
exclude_patterns = ["_build"]
html_theme = "furo"
html_title = "kg-memory"
html_copy_source = False
html_show_copyright = False
html_show_sphinx = False
myst_heading_anchors = 4
myst_enable_extensions = ["colon_fence"]
myst_fence_as_directive = ["mermaid"]
default_role = "code"  # docstrings mark code with one backtick
autodoc_default_options = {"members": True, "member-order": "bysource"}
autodoc_inherit_docstrings = False  # those of LangChain's interfaces are long, and not of this package
autodoc_typehints_format = "short"
autodoc_preserve_defaults = True


def link_outside(app: Sphinx, name: str, source: list[str]) -> None:
    """Lead links of the page *name* to files of the project to their source, and those to scripts to the cookbook."""
    page = Path(app.env.doc2path(name))

    def target(match: re.Match[str]) -> str:
        path = (page.parent / match[1]).resolve()
        if path.is_relative_to(DOCS) or not path.exists():
            return match[1]  # Sphinx says what is not there
        inside = path.relative_to(DOCS.parent).as_posix()
        if path.parent.name == "examples" and path.suffix == ".py":
            return "../" * name.count("/") + f"cookbook/{path.stem}.md"
        return f"{SOURCE}/{inside}"

    source[0] = OUTSIDE.sub(target, source[0])


def skip(_: Sphinx, __: str, name: str, what: Any, *___: Any) -> bool | None:
    """Leave out the async twin of a verb: it has the arguments of the sync one."""
    qualified = getattr(what, "__qualname__", "")
    owner = getattr(sys.modules.get(getattr(what, "__module__", "")), qualified.partition(".")[0], None)
    return True if name.startswith("a") and owner and hasattr(owner, name[1:]) else None


def name_pages(_: Sphinx, __: str, ___: str, ____: Any, _____: Any, lines: list[str]) -> None:
    """Link the pages that a docstring names by their files."""
    lines[:] = [generate.PAGE.sub(r":doc:`/\1`", line) for line in lines]


def finish(app: Sphinx, error: Exception | None) -> None:
    """Write the Markdown twin of each page beside it, and list all of them in llms.txt."""
    if error is None and app.builder.name == "html":
        twins = {name: _twin(app, name) for name in app.env.found_docs}
        for name, text in twins.items():
            Path(app.outdir, f"{name}.md").write_text(text, "utf-8")
        for picture in app.env.images:  # twins name them by their own paths
            Path(app.outdir, picture).parent.mkdir(parents=True, exist_ok=True)
            Path(app.outdir, picture).write_bytes(Path(app.srcdir, picture).read_bytes())
        Path(app.outdir, "llms.txt").write_text(_overview(app, twins), "utf-8")


def _twin(app: Sphinx, name: str) -> str:
    text = [Path(app.env.doc2path(name)).read_text("utf-8")]
    link_outside(app, name, text)
    return generate.document(text[0])


def _overview(app: Sphinx, twins: dict[str, str]) -> str:
    """Return llms.txt. Raises `ExtensionError` for pages that no table of contents names."""
    lines, listed = [f"# {project}", "", f"> {_first_sentence(twins['index'])}"], {"index"}
    for toctree in app.env.get_doctree("index").findall(addnodes.toctree):
        lines += ["", f"## {toctree['caption']}", ""]
        names = list(toctree["includefiles"])
        for name in names:  # grows on the way
            names[names.index(name) + 1 : names.index(name) + 1] = app.env.toctree_includes.get(name, [])
            lines.append(f"- [{app.env.titles[name].astext()}]({name}.md): {_first_sentence(twins[name])}")
        listed |= set(names)
    if missing := twins.keys() - listed:
        raise ExtensionError(f"no table of contents names {', '.join(sorted(missing))}: add them to docs/index.md")
    return "\n".join(lines) + "\n"


def _first_sentence(text: str) -> str:
    """Return the first sentence below the title of a page."""
    text = re.sub(r"^(`{3,}).*?^\1$|<!--.*?-->", "", text, flags=re.DOTALL | re.MULTILINE)
    paragraphs = (part.strip() for part in text.split("\n\n")[1:])
    first = next((part for part in paragraphs if part and part[0] not in "#|-"), "")
    return re.split(r"(?<=[.。])\s", " ".join(re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", first).split()))[0]


def setup(app: Sphinx) -> None:
    """Write the generated pages, and register what changes pages as they are read and built."""
    generate.write(DOCS)
    app.connect("source-read", link_outside)
    app.connect("autodoc-skip-member", skip)
    app.connect("autodoc-process-docstring", name_pages)
    app.connect("build-finished", finish)
