"""What the pages need to look the same here as they do where the repository is shown.

Links to files outside docs/ (`[text](../host/src/flow.rs)`) become links into the repository if mkdocs.yml has a
repo_url, and names of files otherwise. `cargo xtask book` checks that these files exist.
"""
import posixpath
import re

OUTSIDE = re.compile(r"\[([^\]]+)\]\(((?:\.\./)+[^)\s#]*)(#[^)\s]*)?\)")
FENCE = re.compile(r"\s*(```+)")
ITEM = re.compile(r"(?:[-*]|\d+\.) ")


def on_page_markdown(markdown, page, config, **_):
    folder = posixpath.dirname(page.file.src_uri)

    def link(match):
        text, target = match.group(1), match.group(2)
        path = posixpath.normpath(posixpath.join("docs", folder, target))
        if path.startswith("docs/"):
            return match.group(0)
        if config.repo_url:
            return f"[{text}]({config.repo_url.rstrip('/')}/blob/main/{path})"
        name = text.strip("`").rstrip("/")
        return f"`{path}`" if path.endswith(name) else f"{text} (`{path}`)"

    lines, in_block = [], False
    for line in markdown.splitlines():
        if FENCE.match(line):
            in_block = not in_block
        elif not in_block:
            line = OUTSIDE.sub(link, line)
            # Lists may follow a paragraph without an empty line; Python's Markdown wants one.
            before = lines[-1] if lines else ""
            if ITEM.match(line) and before.strip() and not before.startswith(" ") and not ITEM.match(before):
                if not paragraph_of_item(lines):
                    lines.append("")
        lines.append(line)
    return "\n".join(lines)


def paragraph_of_item(lines):
    """Whether the lines before belong to an item of a list."""
    for line in reversed(lines):
        if not line.strip():
            return False
        if ITEM.match(line):
            return True
    return False
