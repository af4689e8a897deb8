"""Markdown to safe HTML: one function for every place that shows what a model wrote."""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import nh3
from django.utils.safestring import SafeString, mark_safe
from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token
from markdown_it.utils import EnvType, OptionsDict

TAGS = {
    "a",
    "blockquote",
    "br",
    "button",
    "code",
    "del",
    "div",
    "em",
    "hr",
    "li",
    "ol",
    "p",
    "pre",
    "s",
    "span",
} | {
    *("h3", "h4", "h5", "h6", "strong", "table", "tbody", "td", "th", "thead", "tr", "ul"),
}
ATTRIBUTES = {
    "a": {"href", "title"},
    "ol": {"start"},
    "pre": {"tabindex"},
    "div": {"tabindex"},
    "button": {"type"},
}
CLASSES = {
    "div": {"code", "code-bar", "wide"},
    "button": {"copy"},
    "td": {"center", "right"},
    "th": {"center", "right"},
}
SCHEMES = {"http", "https", "mailto", "tel", "sms"}


class _Renderer(RendererHTML):
    """HTML for our pages: no inline style (the content security policy forbids it), nothing from another host."""

    def fence(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        language = nh3.clean_text(tokens[idx].info.split(maxsplit=1)[0] if tokens[idx].info.strip() else "")
        code = nh3.clean_text(tokens[idx].content)
        return (
            f'<div class="code"><div class="code-bar"><span>{language}</span>'
            f'<button type="button" class="copy">Copy</button></div>'
            f'<pre tabindex="0"><code>{code}</code></pre></div>\n'
        )

    code_block = fence

    def image(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        """A picture would be fetched from elsewhere and tell that host who reads: a link to it is enough."""
        token = tokens[idx]
        label = self.renderInlineAsText(token.children or [], options, env) or "picture"
        return f'<a href="{nh3.clean_text(str(token.attrGet("src") or ""))}">{nh3.clean_text(label)}</a>'

    def heading_open(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        return f"<h{_below_page_headings(tokens[idx])}>"

    def heading_close(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        return f"</h{_below_page_headings(tokens[idx])}>\n"

    def table_open(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        return '<div class="wide" tabindex="0"><table>\n'

    def table_close(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        return "</table></div>\n"

    def th_open(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        return _cell(tokens[idx])

    td_open = th_open


def _below_page_headings(token: Token) -> int:
    """A reply's headings stand below the page's own h1 and h2."""
    return min(int(token.tag[1]) + 2, 6)


def _cell(token: Token) -> str:
    align = str(token.attrGet("style") or "").removeprefix("text-align:")
    return f'<{token.tag} class="{align}">' if align in ("center", "right") else f"<{token.tag}>"


_full = MarkdownIt("commonmark", {"html": False}, renderer_cls=_Renderer).enable(["table", "strikethrough"])
# Finds where blocks begin and end, without the dear part: the text inside them.
_outline = MarkdownIt("commonmark", {"html": False}).enable(["table"])
_outline.core.ruler.enableOnly(["normalize", "block"])


def render(markdown: str) -> SafeString:
    """Sanitised HTML of `markdown`. Finished blocks are rendered once, however often a growing text comes by."""
    env: dict[str, Any] = {}
    lines = markdown.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    tokens = _outline.parse("\n".join(lines), env)
    references = tuple(
        (label, found["href"], found.get("title", "")) for label, found in env.get("references", {}).items()
    )
    blocks = [token.map for token in tokens if token.level == 0 and token.map]
    return mark_safe("".join(_block("\n".join(lines[start:end]), references) for start, end in blocks))  # noqa: S308


@lru_cache(maxsize=4096)
def _block(text: str, references: tuple[tuple[str, str, str], ...]) -> str:
    env = {"references": {label: {"href": href, "title": title} for label, href, title in references}}
    return nh3.clean(
        _full.render(text, env),
        tags=TAGS,
        attributes=ATTRIBUTES,
        allowed_classes=CLASSES,
        url_schemes=SCHEMES,
        link_rel="noopener noreferrer nofollow",
    )
