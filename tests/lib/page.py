"""HTML as a browser's parser sees it: elements with their attributes and texts. Says what a careful author would not write."""

from html.parser import HTMLParser

EMPTY = {"meta", "br", "link", "img", "input"}


class Element:
    def __init__(self, name, attributes, parent):
        self.name, self.attributes, self.parent, self.children = name, dict(attributes), parent, []

    def all(self, name=None, **attributes):
        for child in self.children:
            if isinstance(child, Element):
                if name in (None, child.name) and attributes.items() <= child.attributes.items():
                    yield child
                yield from child.all(name, **attributes)

    def text(self):
        return "".join(child if isinstance(child, str) else child.text() for child in self.children)


class Page(HTMLParser):
    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.root = self.at = Element("", (), None)
        self.wrong = []
        self.feed(text)
        self.close()
        if self.at is not self.root:
            self.wrong.append(f"<{self.at.name}> is not closed")

    def handle_starttag(self, name, attributes):
        element = Element(name, attributes, self.at)
        if len({key for key, _ in attributes}) < len(attributes):
            self.wrong.append(f"<{name}> has an attribute twice")
        self.at.children.append(element)
        if name not in EMPTY:
            self.at = element

    def handle_startendtag(self, name, attributes):
        self.at.children.append(Element(name, attributes, self.at))

    def handle_endtag(self, name):
        if self.at.name != name:
            self.wrong.append(f"</{name}> closes <{self.at.name}>")
        self.at = self.at.parent or self.root

    def handle_data(self, data):
        self.at.children.append(data)
