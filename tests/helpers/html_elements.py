"""Parse the elements of an HTML text like a browser."""

from html.parser import HTMLParser


class Elements(HTMLParser):
    """The elements of a page. As in a browser, only </script> ends a script."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict]] = []
        self.texts: dict[int, str] = {}
        self.inside = -1
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))
        self.inside = len(self.found) - 1

    def handle_endtag(self, tag):
        self.inside = -1

    def handle_data(self, data):
        self.texts[self.inside] = self.texts.get(self.inside, "") + data

    def texts_of(self, *tags: str) -> list[str]:
        """Return the texts of all elements with one of these names."""
        return [self.texts.get(i, "") for i, (tag, _) in enumerate(self.found) if tag in tags]

    def scripts(self) -> dict[str | None, str]:
        """Return the texts of the script elements by id."""
        return {
            attributes.get("id"): self.texts.get(i, "")
            for i, (tag, attributes) in enumerate(self.found)
            if tag == "script"
        }
