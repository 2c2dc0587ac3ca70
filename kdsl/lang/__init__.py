"""Text to syntax tree and back: grammar, parser, tree, printer and loader. The only importer of lark."""
