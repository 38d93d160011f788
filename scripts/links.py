"""Check the links of a built site: python scripts/links.py SITE

Every link and picture within the site must lead to a file, and to an element if it has a #. No page may load anything
from another host, so that the site works without a network. Links to other hosts are not followed.
"""

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urldefrag, urlsplit

LOADED = {"img": "src", "script": "src", "source": "src", "iframe": "src", "link": "href"}
RELATIONS = {"canonical", "next", "prev"}  # of <link>: not loaded


class Page(HTMLParser):
    """The ids of a page, its links, and what it loads."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.links: set[str] = set()
        self.loaded: set[str] = set()
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Record an element."""
        found = {name: value for name, value in attrs if value}
        self.ids |= {found[name] for name in ("id", "name") if name in found}
        if tag == "a" and "href" in found:
            self.links.add(found["href"])
        if tag in LOADED and LOADED[tag] in found and found.get("rel") not in RELATIONS:
            self.loaded.add(found[LOADED[tag]])


def problems(site: Path) -> list[str]:
    """Every link that leads nowhere, and everything that is loaded from another host."""
    pages = {path: Page(path) for path in sorted(site.rglob("*.html"))}
    found = []
    for path, page in pages.items():
        name = path.relative_to(site)
        found += [f"{name}: loads {one}" for one in sorted(page.loaded) if _is_elsewhere(one)]
        for link in sorted(page.links | page.loaded):
            if not _is_elsewhere(link) and not link.startswith("data:"):
                target, anchor = _target(site, path, link)
                if not target.is_file():
                    found.append(f"{name}: {link} leads to no file")
                elif anchor and target in pages and anchor not in pages[target].ids:
                    found.append(f"{name}: {link} leads to no element")
    return found


def _is_elsewhere(link: str) -> bool:
    parts = urlsplit(link)
    return bool(parts.netloc) or parts.scheme in ("mailto", "https", "http")


def _target(site: Path, page: Path, link: str) -> tuple[Path, str]:
    address, anchor = urldefrag(link)
    words = unquote(urlsplit(address).path)
    target = site / words.lstrip("/") if words.startswith("/") else (page.parent / words).resolve() if words else page
    return (target / "index.html" if target.is_dir() else target), unquote(anchor)


if __name__ == "__main__":
    wrong = problems(Path(sys.argv[1]).resolve())
    print("\n".join(wrong) or "links: passed")
    sys.exit(bool(wrong))
