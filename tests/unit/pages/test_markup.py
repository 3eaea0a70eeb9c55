"""Markup keeps what is said apart from tags."""

from radocraft.pages._markup import html, tag


def test_markup_keeps_text_apart_from_tags() -> None:
    assert html(tag("td", "a<b", None, ["c", tag("i", "d")], "&", title='"x"', hidden=False)) == (
        '<td title="&quot;x&quot;">a&lt;bc<i>d</i>&amp;</td>'
    )
