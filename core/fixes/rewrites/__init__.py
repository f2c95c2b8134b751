"""One kind of rewrite per module; each is a function of a source text and a place that edits the text."""
