"""What the pages need to look the same here as they do where the repository is shown.

Links to files outside docs/ (`[text](../host/src/flow.rs)`) become links into the repository if mkdocs.yml has a
repo_url, and names of files otherwise. A link to a file that does not exist is a warning, which is an error with
--strict; mkdocs itself checks the links between pages.
"""
import logging
import os
import posixpath
import re

# Documents in the top folder, which are not pages.
DOCUMENTS = ["README.md", "CONTRIBUTING.md", "CHANGELOG.md"]
LINK = re.compile(r"\]\(([^)\s#:]+)(#[^)\s]*)?\)")
CODE = re.compile(r"`[^`]*\]\([^`]*`")
log = logging.getLogger("mkdocs.hooks")
OUTSIDE = re.compile(r"\[([^\]]+)\]\(((?:\.\./)+[^)\s#]*)(#[^)\s]*)?\)")
FENCE = re.compile(r"\s*(```+)")
ITEM = re.compile(r"(?:[-*]|\d+\.) ")


def on_pre_build(config):
    top = os.path.dirname(config.config_file_path)
    for document in DOCUMENTS:
        with open(os.path.join(top, document), encoding="utf-8") as file:
            in_block = False
            for number, line in enumerate(file, 1):
                if FENCE.match(line):
                    in_block = not in_block
                elif not in_block:
                    for match in LINK.finditer(CODE.sub("", line)):
                        check(top, match.group(1), f"{document}:{number}")


def check(top, path, place):
    """Warns if a link leads to a file that does not exist."""
    if not os.path.exists(os.path.join(top, path)):
        log.warning("%s: %s does not exist", place, path)


def on_page_markdown(markdown, page, config, **_):
    folder = posixpath.dirname(page.file.src_uri)
    top = os.path.dirname(config.config_file_path)

    def link(match):
        text, target = match.group(1), match.group(2)
        path = posixpath.normpath(posixpath.join("docs", folder, target))
        if path.startswith("docs/"):
            return match.group(0)
        check(top, path, f"docs/{page.file.src_uri}")
        if config.repo_url:
            return f"[{text}]({config.repo_url.rstrip('/')}/blob/main/{path})"
        text = " ".join(text.split())
        name = text.strip("`").rstrip("/")
        return f"`{path}`" if path.endswith(name) else f"{text} (`{path}`)"

    # The text of a link may continue on the next line.
    parts = re.split(r"(^\s*```.*?^\s*```[^\n]*$)", markdown, flags=re.M | re.S)
    parts[::2] = [OUTSIDE.sub(link, part) for part in parts[::2]]
    lines, in_block = [], False
    for line in "".join(parts).splitlines():
        if FENCE.match(line):
            in_block = not in_block
        elif not in_block:
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
